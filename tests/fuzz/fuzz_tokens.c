#include <string.h>

#include "data/stranger.h"
#include "data/tokens.h"
#include "fuzz.h"

static void check_tokens(const zero_bytes *tokens, size_t begin, int width, int64_t vocab)
{
    FUZZ_LAW((tokens->len - begin) % (size_t)width == 0);
    for (size_t at = begin; at < tokens->len; at += (size_t)width) {
        uint16_t narrow = 0;
        uint32_t wide = 0;
        const unsigned char *token = tokens->bytes + at;
        memcpy(width == 2 ? (void *)&narrow : (void *)&wide, token,
               width == 1 ? 0 : (size_t)width);
        FUZZ_LAW((width == 1 ? *token : width == 2 ? narrow : wide) < vocab);
    }
}

/* Reads the file in this format, after the tokens of another file. */
static void take(const char *path, zero_tokens_format format, int64_t vocab,
                 const uint8_t *data, size_t size)
{
    zero_bytes tokens = {0};
    const zero_tokens_limit limit = {vocab, NULL};
    FUZZ_LAW(zero_bytes_append(&tokens, "\1\0", 2) == ZERO_OK);
    FUZZ_LAW(zero_bytes_append(&tokens, data, size) == ZERO_OK);
    zero_status st = zero_tokens_take(path, format, limit, 2, &tokens);
    fuzz_check_refusal(st);
    if (st == ZERO_OK) check_tokens(&tokens, 2, zero_tokens_width(format), vocab);
    FUZZ_LAW(memcmp(tokens.bytes, "\1\0", 2) == 0);
    zero_bytes_destroy(&tokens);
}

/* In all formats: the file may be replaced after it was recognised. */
static void take_as_all(const char *path, int64_t vocab, const uint8_t *data, size_t size)
{
    const zero_tokens_format formats[] = {
        {ZERO_TOKENS_LLMC, 2, false}, {ZERO_TOKENS_LLAMA3, 4, false},
        {ZERO_TOKENS_RAW, 1, false},  {ZERO_TOKENS_RAW, 2, true},
        {ZERO_TOKENS_RAW, 2, false},  {ZERO_TOKENS_RAW, 4, false},
        {ZERO_TOKENS_RAW, 8, false}};
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++)
        take(path, formats[i], vocab, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const paths[] = {"f.bin", "f.txt", "f.jsonl", "f.json"};
    static const int64_t vocabs[] = {1, 65, 50257, 65536, 128256};
    for (int p = 0; p < 4; p++)
        for (int bytes = 0; bytes <= 8; bytes = bytes ? 2 * bytes : 1) {
            zero_tokens_format format;
            zero_status st = zero_tokens_recognise(paths[p], data, size, bytes, &format);
            fuzz_check_refusal(st);
            FUZZ_LAW(st != ZERO_OK || bytes == 0 || format.bytes == bytes);
        }
    for (int v = 0; v < 5; v++) take_as_all("f.bin", vocabs[v], data, size);
    int bytes = 0;
    zero_status st = zero_tokens_read_index("f.idx", data, size, &bytes);
    fuzz_check_refusal(st);
    FUZZ_LAW(st != ZERO_OK || bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8);
    FUZZ_LAW(zero_stranger_mark(data, size) <= size);
    (void)zero_stranger_is_binary(data, size);
    return 0;
}
