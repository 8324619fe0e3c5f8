#include <string.h>

#include "data/tokenizer_file.h"
#include "fuzz.h"

static void check_any_bytes_come_back(const zero_tokenizer *tok, const uint8_t *data,
                                      size_t size)
{
    const size_t most = zero_tokenizer_most(tok, size);
    const bool is_changed =
        tok->composes || tok->has_marks; /* normalized: no bytes to compare */
    int32_t *tokens = malloc((most + 1) * sizeof *tokens);
    FUZZ_LAW(tokens != NULL);
    int64_t n = 0;
    zero_status st = zero_tokenizer_encode(tok, data, size, tokens, &n);
    fuzz_check_refusal(st); /* a pattern may give up */
    if (st != ZERO_OK) n = 0;
    size_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        size_t len = 0;
        if (tok->characters && tokens[i] < 0) { /* unknown: the law ends here */
            at = size;
            break;
        }
        at += tokens[i] < 0; /* a byte that the tokenizer lacks */
        if (tokens[i] < 0) continue;
        FUZZ_LAW(tokens[i] >= 0 && tokens[i] < tok->vocab);
        const unsigned char *bytes = zero_tokenizer_decode(tok, tokens[i], &len);
        FUZZ_LAW(is_changed || (len <= size - at && memcmp(bytes, data + at, len) == 0));
        at += len;
    }
    FUZZ_LAW((size_t)n <= most && (is_changed || at == size || st != ZERO_OK));
    free(tokens);
}

static void check_round_trip(const zero_tokenizer *tok)
{
    zero_bytes text = {0}, again = {0};
    zero_tokenizer back = {0};
    FUZZ_LAW(zero_tokenizer_write(tok, &text) == ZERO_OK);
    FUZZ_LAW(zero_tokenizer_parse_file("f", text.bytes, text.len, &back) == ZERO_OK);
    FUZZ_LAW(zero_tokenizer_write(&back, &again) == ZERO_OK);
    FUZZ_LAW(text.len == again.len && memcmp(text.bytes, again.bytes, text.len) == 0);
    zero_tokenizer_destroy(&back);
    zero_bytes_destroy(&again);
    zero_bytes_destroy(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zero_tokenizer tok = {0};
    zero_status st = zero_tokenizer_parse_file("f", data, size, &tok);
    fuzz_check_refusal(st);
    if (st != ZERO_OK) return 0;
    check_any_bytes_come_back(&tok, data, size);
    check_round_trip(&tok);
    zero_tokenizer_destroy(&tok);
    return 0;
}
