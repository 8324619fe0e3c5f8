#include "report/print_text.h"

#include "base/fail.h"
#include "base/utf8.h"
#include "io/bytes.h"

/* The length of the UTF-8 character at p; 0 if it is invalid or controls a terminal, which
 * must not obey an untrained model. */
static size_t printable(const unsigned char *p, size_t n)
{
    uint32_t c = 0;
    size_t len = zero_utf8_read(p, n, &c);
    bool is_control = c < 0x20 || (c >= 0x7f && c < 0xa0);
    if (c == '\n' || c == '\t') return len;
    /* Directions that a text may change for what follows it. Its letters' own
     * directions, and the characters that join them, belong to many languages. */
    return is_control || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ? 0
                                                                                      : len;
}

/* The bytes that one '?' stands for. */
static size_t skipped(const unsigned char *p, size_t n)
{
    size_t len = zero_utf8_length(p, n);
    return len > 0 ? len : 1;
}

static void print_text(const unsigned char *text, size_t n, FILE *out)
{
    while (n > 0) {
        size_t len = printable(text, n);
        if (len > 0) fwrite(text, 1, len, out);
        if (len == 0) fputc('?', out);
        if (len == 0) len = skipped(text, n);
        text += len;
        n -= len;
    }
}

/* A character may span tokens, so all tokens are decoded before any byte is judged. */
zero_status zero_print_tokens(const zero_tokenizer *tokenizer, const int32_t *tokens,
                              int64_t n, bool raw, FILE *out)
{
    zero_bytes text = {0};
    zero_status st = zero_tokenizer_decode_all(tokenizer, n, tokens, &text);
    if (st == ZERO_OK && raw) fwrite(text.bytes, 1, text.len, out);
    if (st == ZERO_OK && !raw) print_text(text.bytes, text.len, out);
    zero_bytes_destroy(&text);
    return st;
}
