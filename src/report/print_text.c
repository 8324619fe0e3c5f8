#include "report/print_text.h"

#include "base/fail.h"
#include "io/bytes.h"

/* The length of the UTF-8 character at p; 0 if it is invalid or controls a terminal, which must
 * not obey an untrained model. */
static size_t printable(const unsigned char *p, size_t n)
{
    if (*p == '\n' || *p == '\t' || (*p >= 0x20 && *p < 0x7f)) return 1;
    size_t len = *p >= 0xc2 && *p < 0xe0 ? 2 : *p >= 0xe0 && *p < 0xf0 ? 3 : 4;
    if (*p < 0xc2 || *p > 0xf4 || len > n) return 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    unsigned first_two = (unsigned)*p << 8 | p[1];
    bool is_control = first_two < 0xc2a0; /* C1 */
    bool is_overlong = (len == 3 && first_two < 0xe0a0) || (len == 4 && first_two < 0xf090);
    bool is_surrogate = first_two >= 0xeda0 && first_two < 0xee80;
    bool is_beyond = first_two > 0xf48f;
    return is_control || is_overlong || is_surrogate || is_beyond ? 0 : len;
}

void zero_print_text(const unsigned char *text, size_t n, FILE *out)
{
    while (n > 0) {
        size_t len = printable(text, n);
        if (len > 0) fwrite(text, 1, len, out);
        if (len == 0) fputc('?', out);
        text += len > 0 ? len : 1;
        n -= len > 0 ? len : 1;
    }
}

static zero_status decode(const zero_tokenizer *tokenizer, const int32_t *tokens, int64_t n,
                          zero_bytes *text)
{
    for (int64_t i = 0; i < n; i++) {
        size_t len;
        const unsigned char *part = zero_tokenizer_decode(tokenizer, tokens[i], &len);
        ZERO_TRY(zero_bytes_append(text, part, len));
    }
    return ZERO_OK;
}

/* A character may span tokens, so all tokens are decoded before any byte is judged. */
zero_status zero_print_tokens(const zero_tokenizer *tokenizer, const int32_t *tokens,
                              int64_t n, bool raw, FILE *out)
{
    zero_bytes text = {0};
    zero_status st = decode(tokenizer, tokens, n, &text);
    if (st == ZERO_OK && raw) fwrite(text.bytes, 1, text.len, out);
    if (st == ZERO_OK && !raw) zero_print_text(text.bytes, text.len, out);
    zero_bytes_destroy(&text);
    return st;
}
