#include "data/encode.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/grow.h"
#include "data/cuts.h"

int zero_encode_width(const zero_tokenizer *tok)
{
    return tok->vocab <= 65536 ? 2 : 4;
}

/* Where tokens go. The bytes of the text that have tokens already are counted only for a
 * tokenizer that lacks bytes. */
typedef struct {
    const zero_tokenizer *tok;
    const unsigned char *text;
    size_t at;
    zero_bytes *out;
} sink;

static zero_status check_known(sink *s, size_t width, int64_t n, const int32_t *tokens)
{
    const bool has_characters = s->tok->characters != NULL;
    if (!has_characters && !s->tok->lacks_bytes) return ZERO_OK;
    for (int64_t i = 0; i < n; i++) {
        if (tokens[i] >= 0) continue;
        const size_t at = s->at + zero_tokenizer_span(s->tok, i, tokens);
        if (!has_characters)
            return zero_tokenizer_refuse_byte(s->tok, "the text", s->text[at], at);
        return zero_fail(
            ZERO_ERR_INVALID,
            "character %zu of the text is not among those of the model's tokenizer",
            s->out->len / width + (size_t)i + 1);
    }
    if (!has_characters) s->at += zero_tokenizer_span(s->tok, n, tokens);
    return ZERO_OK;
}

static zero_status append_narrow(void *arg, int64_t n, const int32_t *tokens)
{
    sink *s = arg;
    zero_bytes *out = s->out;
    ZERO_TRY(check_known(s, sizeof(uint16_t), n, tokens));
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
    sink *s = arg;
    ZERO_TRY(check_known(s, sizeof *tokens, n, tokens));
    return zero_bytes_append(s->out, tokens, (size_t)n * sizeof *tokens);
}

static zero_status encode(const zero_tokenizer *tok, const unsigned char *text, size_t len,
                          zero_bytes *tokens)
{
    zero_token_sink append = zero_encode_width(tok) == 2 ? append_narrow : append_wide;
    sink s = {.tok = tok, .text = text, .out = tokens};
    return zero_tokenizer_encode_to(tok, text, len, append, &s);
}

/* ---- by threads ---- */

static bool are_without_border(const zero_added *added)
{
    for (int64_t i = 0; i < added->n; i++) {
        const zero_added_token *t = &added->tokens[i];
        if (zero_cut_at(t->text, t->len, 0) < t->len) return false;
    }
    return true;
}

bool zero_encode_may_cut(const zero_tokenizer *tok)
{
    if (!tok->is_foreign) return true;
    for (int i = 0; i < tok->n_patterns; i++)
        if (!zero_pattern_is_known(tok->patterns[i])) return false;
    const bool has_pieces = tok->n_patterns > 0 || tok->cuts_as_own;
    return has_pieces && are_without_border(&tok->added[0]) &&
           are_without_border(&tok->added[1]);
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
    zero_status st = encode(j->tok, text, len, &j->parts[i]);
    if (st != ZERO_OK) j->n_failed++;
    if (st == ZERO_ERR_NOMEM) j->is_full = true;
}

/* Each part is freed as soon as it is copied, so only one part is in memory twice. */
static zero_status join(const job *j, zero_bytes *tokens)
{
    size_t bytes = 0;
    for (int64_t i = 0; i < j->n; i++) bytes += j->parts[i].len;
    ZERO_TRY(zero_bytes_reserve(tokens, bytes));
    for (int64_t i = 0; i < j->n; i++) {
        ZERO_TRY(zero_bytes_append(tokens, j->parts[i].bytes, j->parts[i].len));
        zero_bytes_destroy(&j->parts[i]);
    }
    return ZERO_OK;
}

/* Sets *done unless a part failed. */
static zero_status encode_by_threads(job *j, const zero_bytes *text, int threads,
                                     zero_bytes *tokens, bool *done)
{
    ZERO_TRY(zero_new(&j->parts, j->n, "parts of a text"));
    /* All parts together, and the copy of one, are no more than the tokens may have. */
    const size_t left = tokens->most > 0 ? tokens->most - tokens->len : 0;
    for (int64_t i = 0; i < j->n; i++)
        j->parts[i].most = left > 0 ? left / (size_t)(j->n + 1) + 1 : 0;
    zero_status st = zero_cut_run(text->bytes, text->len, j->n, threads, encode_part, j);
    *done = st == ZERO_OK && j->n_failed == 0;
    if (st == ZERO_OK && j->is_full)
        st = zero_fail(ZERO_ERR_NOMEM, "no memory for the tokens of a part of a text");
    if (*done) st = join(j, tokens);
    for (int64_t i = 0; i < j->n; i++) zero_bytes_destroy(&j->parts[i]);
    free(j->parts);
    return st;
}

zero_status zero_encode_text(const zero_tokenizer *tok, const zero_bytes *text, int threads,
                             zero_bytes *tokens)
{
    job j = {.tok = tok, .n = zero_cut_parts(text->len, threads)};
    bool done = false;
    if (j.n > 1 && zero_encode_may_cut(tok))
        ZERO_TRY(encode_by_threads(&j, text, threads, tokens, &done));
    /* After a failure one thread finds its place in the whole text, for the message. */
    return done ? ZERO_OK : encode(tok, text->bytes, text->len, tokens);
}
