#include "data/encode.h"

#include <string.h>

#include "base/fail.h"

int zero_encode_width(const zero_tokenizer *tok)
{
    return tok->vocab <= 65536 ? 2 : 4;
}

/* Only the tokenizer of characters lacks any. */
static zero_status check_known(const zero_bytes *out, size_t width, int64_t n,
                               const int32_t *tokens)
{
    for (int64_t i = 0; i < n; i++)
        if (tokens[i] < 0)
            return zero_fail(ZERO_ERR_INVALID,
                             "character %zu of the text is not among those of the model's "
                             "tokenizer",
                             out->len / width + (size_t)i + 1);
    return ZERO_OK;
}

static zero_status append_narrow(void *arg, int64_t n, const int32_t *tokens)
{
    zero_bytes *out = arg;
    ZERO_TRY(check_known(out, sizeof(uint16_t), n, tokens));
    ZERO_TRY(zero_bytes_reserve(out, (size_t)n * sizeof(uint16_t)));
    for (int64_t i = 0; i < n; i++) {
        uint16_t narrow = (uint16_t)tokens[i];
        memcpy(out->bytes + out->len, &narrow, sizeof narrow);
        out->len += sizeof narrow;
    }
    return ZERO_OK;
}

static zero_status append_wide(void *arg, int64_t n, const int32_t *tokens)
{
    return zero_bytes_append(arg, tokens, (size_t)n * sizeof *tokens);
}

zero_status zero_encode_text(const zero_tokenizer *tok, const zero_bytes *text,
                             zero_bytes *tokens)
{
    zero_token_sink append = zero_encode_width(tok) == 2 ? append_narrow : append_wide;
    return zero_tokenizer_encode_to(tok, text->bytes, text->len, append, tokens);
}
