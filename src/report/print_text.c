#include "report/print_text.h"

#include "base/utf8.h"

/* Without what controls a terminal, which must not obey an untrained model, and directions
 * that a text may change for what follows it. Its letters' own directions, and the
 * characters that join them, belong to many languages. */
static void print_text(const unsigned char *text, size_t n, FILE *out)
{
    while (n > 0) {
        uint32_t c = 0;
        size_t len = zero_utf8_read(text, n, &c);
        bool is_control = c != '\n' && c != '\t' && (c < 0x20 || (c >= 0x7f && c < 0xa0));
        bool turns = (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
        if (len == 0 || is_control || turns)
            fputc('?', out);
        else
            fwrite(text, 1, len, out);
        if (len == 0) len = 1;
        text += len;
        n -= len;
    }
}

/* A character may span tokens, so all tokens are decoded before any byte is judged. */
zero_status zero_print_tokens(const zero_tokenizer *tokenizer, const int32_t *tokens,
                              int64_t n, bool raw, FILE *out)
{
    ZERO_AT_END(zero_bytes_destroy) zero_bytes text = {0};
    ZERO_TRY(zero_tokenizer_decode_all(tokenizer, n, tokens, &text));
    if (raw)
        fwrite(text.bytes, 1, text.len, out);
    else
        print_text(text.bytes, text.len, out);
    return ZERO_OK;
}
