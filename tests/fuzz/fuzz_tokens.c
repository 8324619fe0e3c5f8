#include <string.h>

#include "data/tokens.h"
#include "fuzz.h"

static void check_tokens(const zero_bytes *tokens, size_t begin, int width, int64_t vocab)
{
    FUZZ_LAW((tokens->len - begin) % (size_t)width == 0);
    for (size_t at = begin; at < tokens->len; at += (size_t)width) {
        uint16_t narrow = 0;
        uint32_t wide = 0;
        memcpy(width == 2 ? (void *)&narrow : (void *)&wide, tokens->bytes + at,
               (size_t)width);
        FUZZ_LAW((width == 2 ? narrow : wide) < vocab);
    }
}

/* Reads the file as this kind, after the tokens of another file. */
static void take(const char *path, zero_tokens_kind kind, int64_t vocab,
                 const uint8_t *data, size_t size)
{
    zero_bytes tokens = {0};
    FUZZ_LAW(zero_bytes_append(&tokens, "\1\0", 2) == ZERO_OK);
    FUZZ_LAW(zero_bytes_append(&tokens, data, size) == ZERO_OK);
    zero_status st = zero_tokens_take(path, kind, vocab, 2, &tokens);
    fuzz_check_refusal(st);
    if (st == ZERO_OK) check_tokens(&tokens, 2, zero_tokens_width(kind), vocab);
    FUZZ_LAW(memcmp(tokens.bytes, "\1\0", 2) == 0);
    zero_bytes_destroy(&tokens);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const paths[] = {"f.bin", "f.txt"};
    static const int64_t vocabs[] = {1, 65, 50257, 65536, 128256};
    for (int p = 0; p < 2; p++) {
        zero_tokens_kind kind;
        fuzz_check_refusal(zero_tokens_recognise(paths[p], data, size, &kind));
        for (int v = 0; v < 5; v++) /* also as another kind: the file may be replaced */
            for (kind = ZERO_TOKENS_LLMC; kind <= ZERO_TOKENS_NANOGPT; kind++)
                take(paths[p], kind, vocabs[v], data, size);
    }
    return 0;
}
