#include "data/normal.h"

#include <utf8proc.h>

/* The first byte of U+0300, before which no character joins another or has other forms. */
enum { MAY_JOIN = 0xcc };

static size_t next_that_may_join(const zero_bytes *text, size_t at)
{
    while (at < text->len && text->bytes[at] < MAY_JOIN) at++;
    return at;
}

static zero_status compose(const zero_bytes *text, zero_bytes *made)
{
    for (size_t at = 0; at < text->len;) {
        size_t begin = next_that_may_join(text, at), end = begin;
        if (begin < text->len) end++;
        /* What it may join is one character before it. */
        if (end > begin && begin > at) begin--;
        while (begin > at && (text->bytes[begin] & 0xc0) == 0x80) begin--;
        while (end < text->len && text->bytes[end] >= 0x80) end++;
        ZERO_TRY(zero_bytes_append(made, text->bytes + at, begin - at));
        if (end > begin) {
            /* Appends bytes of which only the first may be ASCII. */
            const unsigned char *run = text->bytes + begin;
            size_t len = end - begin;
            ZERO_FREED utf8proc_uint8_t *composed = NULL;
            const utf8proc_ssize_t n = utf8proc_map(run, (utf8proc_ssize_t)len, &composed,
                                                    UTF8PROC_STABLE | UTF8PROC_COMPOSE);
            ZERO_FAIL_IF(n == UTF8PROC_ERROR_NOMEM, ZERO_ERR_NOMEM,
                         "no memory to normalize a text");
            ZERO_TRY(n < 0 ? zero_bytes_append(made, run, len)
                           : zero_bytes_append(made, composed, (size_t)n));
        }
        at = end;
    }
    return ZERO_OK;
}

size_t zero_normal_unmark(const unsigned char *text, size_t len, unsigned char *out)
{
    size_t n = 0;
    for (size_t at = 0; at < len; n++) {
        const bool is_mark = len - at >= 3 && memcmp(text + at, "\u2581", 3) == 0;
        out[n] = is_mark ? ' ' : text[at];
        at += is_mark ? 3 : 1;
    }
    return n;
}

zero_status zero_normal_form(const zero_tokenizer *tok, bool early, bool begins,
                             zero_bytes *text, zero_bytes *made)
{
    const bool composes = early && tok->composes;
    const bool has_marks = tok->has_marks && tok->marks_early == early;
    if (text->len == 0) return ZERO_OK;
    if (!has_marks && !(composes && next_that_may_join(text, 0) < text->len))
        return ZERO_OK;
    made->len = 0;
    ZERO_TRY(zero_bytes_append(made, " ", 1));
    ZERO_TRY(composes ? compose(text, made)
                      : zero_bytes_append(made, text->bytes, text->len));
    if (has_marks) made->len = zero_normal_unmark(made->bytes, made->len, made->bytes);
    const bool has_own = made->bytes[1] == ' ' && tok->blank != ZERO_BLANK_ALWAYS;
    const bool keeps = has_marks && begins && tok->blank != ZERO_BLANK_NEVER && !has_own;
    *text = (zero_bytes){.bytes = made->bytes + !keeps, .len = made->len - !keeps};
    return ZERO_OK;
}
