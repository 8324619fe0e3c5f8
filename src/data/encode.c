#include "data/encode.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "data/piece.h"

#define AT_ONCE ((size_t)1 << 16) /* bytes */

static zero_status append_narrow(zero_bytes *out, const int32_t *tokens, int64_t n)
{
    ZERO_TRY(zero_bytes_reserve(out, (size_t)n * sizeof(uint16_t)));
    for (int64_t i = 0; i < n; i++) {
        uint16_t narrow = (uint16_t)tokens[i];
        memcpy(out->bytes + out->len, &narrow, sizeof narrow);
        out->len += sizeof narrow;
    }
    return ZERO_OK;
}

/* The end of a block: between two characters, or two pieces. */
static size_t block_end(const zero_tokenizer *tok, const zero_bytes *text, size_t at)
{
    size_t end = at;
    if (!tok->characters) {
        while (end < text->len && end - at < AT_ONCE)
            end = zero_piece_end(text->bytes, text->len, end);
        return end;
    }
    end = text->len - at < AT_ONCE ? text->len : at + AT_ONCE;
    while (end < text->len && (text->bytes[end] & 0xc0) == 0x80) end++;
    return end;
}

/* Blocks are cut so that each encodes alone. All tokens at once, as int32, would take four times
 * the text. */
static zero_status encode_blocks(const zero_tokenizer *tok, const zero_bytes *text,
                                 int32_t *block, zero_bytes *out)
{
    for (size_t at = 0, end; at < text->len; at = end) {
        end = block_end(tok, text, at);
        int64_t n = zero_tokenizer_encode(tok, text->bytes + at, end - at, block);
        ZERO_TRY(append_narrow(out, block, n));
    }
    return ZERO_OK;
}

zero_status zero_encode_text(const zero_tokenizer *tok, const zero_bytes *text,
                             zero_bytes *tokens)
{
    int32_t *block = malloc((AT_ONCE + ZERO_PIECE_MAX) * sizeof *block);
    if (!block) return zero_fail(ZERO_ERR_NOMEM, "no memory for a block of tokens");
    zero_status st = encode_blocks(tok, text, block, tokens);
    free(block);
    return st;
}
