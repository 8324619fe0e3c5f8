#include "data/encode.h"

#include <stdatomic.h>

#include "base/grow.h"
#include "data/ascii.h"
#include "data/cuts.h"

int zero_encode_width(const zero_tokenizer *tok)
{
    return tok->vocab <= 65536 ? 2 : 4;
}

/* Where tokens go. The bytes of the text that have tokens already are counted only for a
 * tokenizer that lacks bytes. */
typedef struct {
    const zero_tokenizer *tok;
    size_t at;
    zero_bytes *out;
} sink;

static zero_status append(void *arg, int64_t n, const int32_t *tokens)
{
    sink *s = arg;
    zero_bytes *out = s->out;
    const size_t width = (size_t)zero_encode_width(s->tok);
    const bool has_characters = s->tok->characters, lacks = s->tok->lacks_bytes;
    for (int64_t i = 0; (has_characters || lacks) && i < n; i++) {
        if (tokens[i] >= 0) continue;
        const size_t at = s->at + zero_tokenizer_span(s->tok, i, tokens);
        if (!has_characters)
            return zero_tokenizer_refuse_byte(s->tok, "the text",
                                              (unsigned char)(-1 - tokens[i]), at);
        return zero_fail(
            ZERO_ERR_INVALID,
            "character %zu of the text is not among those of the model's tokenizer",
            s->out->len / width + (size_t)i + 1);
    }
    if (!has_characters && lacks) s->at += zero_tokenizer_span(s->tok, n, tokens);
    if (width == sizeof *tokens) return zero_bytes_append(out, tokens, (size_t)n * width);
    ZERO_TRY(zero_bytes_reserve(out, (size_t)n * width));
    for (int64_t i = 0; i < n; i++, out->len += width) {
        const uint16_t narrow = (uint16_t)tokens[i];
        memcpy(out->bytes + out->len, &narrow, sizeof narrow);
    }
    return ZERO_OK;
}

static zero_status encode(const zero_tokenizer *tok, bool is_rest,
                          const unsigned char *text, size_t len, zero_bytes *tokens)
{
    sink s = {.tok = tok, .out = tokens};
    return zero_tokenizer_encode_to(tok, is_rest, text, len, append, &s);
}

/* ---- by threads ---- */

/* Added tokens with no border in or after them: where blanks are put before what follows a
 * token, a part would have to know that it does. */
static bool are_within(const zero_tokenizer *tok, const zero_added *added)
{
    const bool blanks = tok->blank == ZERO_BLANK_EACH || tok->blank == ZERO_BLANK_ALWAYS;
    for (int64_t i = 0; i < added->n; i++) {
        const zero_added_token *t = &added->tokens[i];
        const unsigned char *text = (const unsigned char *)t->text;
        const bool ends =
            blanks && zero_ascii_class_of(text[t->len - 1]) == ZERO_ASCII_LETTER;
        if (ends || zero_cut_at(text, t->len, 0) < t->len) return false;
    }
    return true;
}

bool zero_encode_may_cut(const zero_tokenizer *tok)
{
    if (!tok->is_foreign) return true;
    for (int i = 0; i < tok->n_patterns; i++)
        if (!zero_pattern_is_known(tok->patterns[i])) return false;
    const bool has_pieces = tok->n_patterns > 0 || tok->cuts_as_own ||
                            (tok->has_marks && !tok->joins_words && !tok->joins_lines);
    return has_pieces && are_within(tok, &tok->added[0]) && are_within(tok, &tok->added[1]);
}

typedef struct {
    const zero_tokenizer *tok;
    zero_bytes *parts; /* [n] tokens; owned */
    int64_t n;
    _Atomic int64_t n_failed;
    atomic_bool is_full; /* a part had no memory */
} job;

static void encode_part(void *arg, int64_t i, const unsigned char *text, size_t len)
{
    job *j = arg;
    zero_status st = encode(j->tok, i > 0, text, len, &j->parts[i]);
    if (st != ZERO_OK) j->n_failed++;
    if (st == ZERO_ERR_NOMEM) j->is_full = true;
}

zero_status zero_encode_text(const zero_tokenizer *tok, const zero_bytes *text, int threads,
                             zero_bytes *tokens)
{
    job j = {.tok = tok, .n = zero_cut_parts(text->len, threads)};
    bool done = false;
    if (j.n > 1 && zero_encode_may_cut(tok)) {
        ZERO_TRY(zero_new(&j.parts, j.n, "parts of a text"));
        /* All parts together, and the copy of one, are no more than the tokens may have. */
        const size_t left = tokens->most > 0 ? tokens->most - tokens->len : 0;
        for (int64_t i = 0; i < j.n; i++)
            j.parts[i].most = left > 0 ? left / (size_t)(j.n + 1) + 1 : 0;
        zero_status st =
            zero_cut_run(text->bytes, text->len, j.n, threads, encode_part, &j);
        done = st == ZERO_OK && j.n_failed == 0;
        if (st == ZERO_OK && j.is_full)
            st = zero_fail(ZERO_ERR_NOMEM, "no memory for the tokens of a part of a text");
        size_t bytes = 0;
        for (int64_t i = 0; i < j.n; i++) bytes += j.parts[i].len;
        if (done) st = zero_bytes_reserve(tokens, bytes);
        /* Each is freed as soon as it is copied, so only one is in memory twice. */
        for (int64_t i = 0; i < j.n; i++) {
            if (done && st == ZERO_OK)
                st = zero_bytes_append(tokens, j.parts[i].bytes, j.parts[i].len);
            zero_bytes_destroy(&j.parts[i]);
        }
        free(j.parts);
        ZERO_TRY(st);
    }
    /* After a failure one thread finds its place in the whole text, for the message. */
    return done ? ZERO_OK : encode(tok, false, text->bytes, text->len, tokens);
}
