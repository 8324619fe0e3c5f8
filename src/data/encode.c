#include "data/encode.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/number.h"
#include "data/cuts.h"
#include "math/threads.h"

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

static zero_status encode(const zero_tokenizer *tok, const unsigned char *text, size_t len,
                          zero_bytes *tokens)
{
    zero_token_sink append = zero_encode_width(tok) == 2 ? append_narrow : append_wide;
    return zero_tokenizer_encode_to(tok, text, len, append, tokens);
}

/* ---- by threads ---- */

/* Several for each thread, because threads may have cores of different speed. */
enum { PARTS_EACH = 4 };

typedef struct {
    const unsigned char *text;
    size_t len;
    zero_bytes tokens; /* owned */
} part;

typedef struct {
    const zero_tokenizer *tok;
    part *parts; /* [n] owned */
    int64_t n;
    _Atomic int64_t next; /* the part that the next thread takes */
    _Atomic int64_t n_failed;
} job;

/* Parts of about equal length; a text with few borders has empty ones. */
static void cut(const zero_bytes *text, job *j)
{
    size_t begin = 0;
    for (int64_t i = 0; i < j->n; i++) {
        const size_t wish = text->len / (size_t)j->n * (size_t)(i + 1);
        const size_t end =
            i + 1 == j->n ? text->len
                          : zero_cut_at(text->bytes, text->len, zero_max_size(wish, begin));
        j->parts[i] = (part){.text = text->bytes + begin, .len = end - begin};
        begin = end;
    }
}

static void encode_parts(int thread, void *arg)
{
    job *j = arg;
    (void)thread;
    for (int64_t i; (i = atomic_fetch_add(&j->next, 1)) < j->n;) {
        part *p = &j->parts[i];
        if (encode(j->tok, p->text, p->len, &p->tokens) != ZERO_OK)
            atomic_fetch_add(&j->n_failed, 1);
    }
}

static zero_status join(const job *j, zero_bytes *tokens)
{
    size_t bytes = 0;
    for (int64_t i = 0; i < j->n; i++) bytes += j->parts[i].tokens.len;
    ZERO_TRY(zero_bytes_reserve(tokens, bytes));
    for (int64_t i = 0; i < j->n; i++)
        ZERO_TRY(
            zero_bytes_append(tokens, j->parts[i].tokens.bytes, j->parts[i].tokens.len));
    return ZERO_OK;
}

/* Sets *done unless a part failed. */
static zero_status encode_by_threads(job *j, const zero_bytes *text, int threads,
                                     zero_bytes *tokens, bool *done)
{
    zero_status st = ZERO_OK;
    j->parts = calloc((size_t)j->n, sizeof *j->parts);
    if (!j->parts)
        return zero_fail(ZERO_ERR_NOMEM, "no memory for %" PRId64 " parts of a text", j->n);
    cut(text, j);
    zero_cpu_each_thread(threads, encode_parts, j);
    *done = j->n_failed == 0;
    if (*done) st = join(j, tokens);
    for (int64_t i = 0; i < j->n; i++) zero_bytes_destroy(&j->parts[i].tokens);
    free(j->parts);
    return st;
}

zero_status zero_encode_text(const zero_tokenizer *tok, const zero_bytes *text, int threads,
                             zero_bytes *tokens)
{
    job j = {.tok = tok};
    bool done = false;
    j.n = zero_min((int64_t)PARTS_EACH * threads, (int64_t)(text->len / ZERO_ENCODE_PART));
    if (threads > 1 && j.n > 1 && zero_tokenizer_may_cut(tok))
        ZERO_TRY(encode_by_threads(&j, text, threads, tokens, &done));
    /* After a failure one thread finds its place in the whole text, for the message. */
    return done ? ZERO_OK : encode(tok, text->bytes, text->len, tokens);
}
