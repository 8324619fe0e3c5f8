/* calls.c - calls of the fake device on rows and matrices: how each is recorded, and how it is
 * executed by the cpu backend. Flat ranges are in fake_flat.c. */
#include "fake/calls.h"

#include "base/number.h"
#include "fake/arrays.h"
#include "math/cpu.h"

static const zero_backend *const cpu = &zero_backend_cpu;

/* ---- products and biases ---- */

static void execute_gemm(zero_fake *f, zero_fake_args *a)
{
    cpu->gemm(&f->math, &a->gemm);
}

/* Elements from the first one to the last one. */
static int64_t extent(int64_t rows, int64_t cols, int64_t stride)
{
    return rows > 0 && cols > 0 ? (rows - 1) * (stride ? stride : cols) + cols : 0;
}

void zero_fake_gemm(const zero_math *math, const zero_gemm *g)
{
    arrays of = begin(math, "gemm", execute_gemm);
    zero_gemm *to = &of.args->gemm;
    *to = *g;
    to->a = typed(of, g->a_type, g->a,
                  g->transpose_a ? extent(g->k, g->m, g->lda) : extent(g->m, g->k, g->lda));
    to->b = typed(of, g->b_type, g->b,
                  g->transpose_b ? extent(g->n, g->k, g->ldb) : extent(g->k, g->n, g->ldb));
    to->c = typed(of, g->c_type, g->c, extent(g->m, g->n, g->ldc));
    zero_fake_commit(math);
}

static void execute_add_bias(zero_fake *f, zero_fake_args *a)
{
    cpu->add_bias(&f->math, &a->bias);
}

static void execute_bias_gelu(zero_fake *f, zero_fake_args *a)
{
    cpu->bias_gelu(&f->math, &a->bias);
}

/* add_bias() has no y. */
static void record_bias(arrays of, const zero_bias *b)
{
    zero_bias *to = &of.args->bias;
    *to = *b;
    to->bias = typed(of, b->type, b->bias, b->cols);
    to->x = typed(of, b->rows_type, b->x, b->rows * b->cols);
    to->y = b->y ? typed(of, b->rows_type, b->y, b->rows * b->cols) : NULL;
}

void zero_fake_add_bias(const zero_math *math, const zero_bias *b)
{
    record_bias(begin(math, "add_bias", execute_add_bias), b);
    zero_fake_commit(math);
}

void zero_fake_bias_gelu(const zero_math *math, const zero_bias *b)
{
    record_bias(begin(math, "bias_gelu", execute_bias_gelu), b);
    zero_fake_commit(math);
}

static void execute_bias_backward(zero_fake *f, zero_fake_args *a)
{
    cpu->bias_backward(&f->math, &a->bias_backward);
}

static void execute_bias_gelu_backward(zero_fake *f, zero_fake_args *a)
{
    cpu->bias_gelu_backward(&f->math, &a->bias_backward);
}

/* bias_backward() has neither x nor dx. */
static void record_bias_grad(arrays of, const zero_bias_grad *b)
{
    const int64_t n = b->rows * b->cols;
    zero_bias_grad *to = &of.args->bias_backward;
    *to = *b;
    to->x = b->x ? typed(of, b->rows_type, b->x, n) : NULL;
    to->dy = typed(of, b->rows_type, b->dy, n);
    to->dx = b->dx ? typed(of, b->rows_type, b->dx, n) : NULL;
    to->dbias = floats(of, b->dbias, b->cols);
}

void zero_fake_bias_backward(const zero_math *math, const zero_bias_grad *b)
{
    record_bias_grad(begin(math, "bias_backward", execute_bias_backward), b);
    zero_fake_commit(math);
}

void zero_fake_bias_gelu_backward(const zero_math *math, const zero_bias_grad *b)
{
    record_bias_grad(begin(math, "bias_gelu_backward", execute_bias_gelu_backward), b);
    zero_fake_commit(math);
}

/* ---- dropout ---- */

static void execute_add_branch(zero_fake *f, zero_fake_args *a)
{
    cpu->add_branch(&f->math, &a->branch);
}

void zero_fake_add_branch(const zero_math *math, const zero_branch *b)
{
    arrays of = begin(math, "add_branch", execute_add_branch);
    const int64_t n = b->B * b->T * b->cols;
    zero_branch *to = &of.args->branch;
    *to = *b;
    to->bias = b->bias ? typed(of, b->type, b->bias, b->cols) : NULL;
    to->residual = typed(of, b->rows_type, b->residual, n);
    to->in = typed(of, b->rows_type, b->in, n);
    to->out = typed(of, b->rows_type, b->out, n);
    zero_fake_commit(math);
}

static void execute_dropout(zero_fake *f, zero_fake_args *a)
{
    cpu->dropout(&f->math, &a->masked.dropout, a->masked.rows_type, a->masked.B,
                 a->masked.n, a->masked.in, a->masked.out);
}

void zero_fake_dropout(const zero_math *math, const zero_dropout *d, zero_type rows_type,
                       int64_t B, int64_t n, const void *x, void *y)
{
    arrays of = begin(math, "dropout", execute_dropout);
    of.args->masked.dropout = *d;
    of.args->masked.rows_type = rows_type;
    of.args->masked.B = B, of.args->masked.n = n;
    of.args->masked.in = typed(of, rows_type, x, B * n);
    of.args->masked.out = typed(of, rows_type, y, B * n);
    zero_fake_commit(math);
}

/* ---- layer norm ---- */

static void execute_layernorm(zero_fake *f, zero_fake_args *a)
{
    cpu->layernorm(&f->math, &a->layernorm);
}

void zero_fake_layernorm(const zero_math *math, const zero_layernorm_args *n)
{
    arrays of = begin(math, "layernorm", execute_layernorm);
    zero_layernorm_args *to = &of.args->layernorm;
    *to = *n;
    to->x = typed(of, n->rows_type, n->x, n->rows * n->C);
    to->gain = typed(of, n->type, n->gain, n->C);
    to->bias = n->bias ? typed(of, n->type, n->bias, n->C) : NULL;
    to->y = typed(of, n->rows_type, n->y, n->rows * n->C);
    to->mean = n->mean ? floats(of, n->mean, n->rows) : NULL;
    to->rstd = floats(of, n->rstd, n->rows);
    zero_fake_commit(math);
}

static void execute_layernorm_backward(zero_fake *f, zero_fake_args *a)
{
    cpu->layernorm_backward(&f->math, &a->layernorm_backward);
}

void zero_fake_layernorm_backward(const zero_math *math, const zero_layernorm_grad_args *n)
{
    arrays of = begin(math, "layernorm_backward", execute_layernorm_backward);
    zero_layernorm_grad_args *to = &of.args->layernorm_backward;
    *to = *n;
    to->x = typed(of, n->rows_type, n->x, n->rows * n->C);
    to->gain = typed(of, n->type, n->gain, n->C);
    to->mean = n->mean ? floats(of, n->mean, n->rows) : NULL;
    to->rstd = floats(of, n->rstd, n->rows);
    to->dy = typed(of, n->rows_type, n->dy, n->rows * n->C);
    to->dx = typed(of, n->rows_type, n->dx, n->rows * n->C);
    to->dgain = floats(of, n->dgain, n->C);
    to->dbias = n->dbias ? floats(of, n->dbias, n->C) : NULL;
    zero_fake_commit(math);
}

/* ---- what LLaMA's blocks add ---- */

static void execute_swiglu(zero_fake *f, zero_fake_args *a)
{
    cpu->swiglu(&f->math, &a->swiglu);
}

static void execute_swiglu_backward(zero_fake *f, zero_fake_args *a)
{
    cpu->swiglu_backward(&f->math, &a->swiglu);
}

static void record_swiglu(arrays of, const zero_swiglu *s)
{
    zero_swiglu *to = &of.args->swiglu;
    *to = *s;
    to->x = typed(of, s->rows_type, s->x, 2 * s->rows * s->F);
    to->y = s->y ? typed(of, s->rows_type, s->y, s->rows * s->F) : NULL;
    to->d = s->d ? typed(of, s->rows_type, s->d, 2 * s->rows * s->F) : NULL;
}

void zero_fake_swiglu(const zero_math *math, const zero_swiglu *s)
{
    record_swiglu(begin(math, "swiglu", execute_swiglu), s);
    zero_fake_commit(math);
}

void zero_fake_swiglu_backward(const zero_math *math, const zero_swiglu *s)
{
    record_swiglu(begin(math, "swiglu_backward", execute_swiglu_backward), s);
    zero_fake_commit(math);
}

/* n heads of each row of the call. */
static void *heads(arrays of, zero_type type, const zero_heads *x, int64_t rows, int64_t n,
                   int64_t D)
{
    return x->x ? typed(of, type, x->x, zero_heads_extent(x, rows, n, D)) : NULL;
}

static void execute_turn(zero_fake *f, zero_fake_args *a)
{
    cpu->turn(&f->math, &a->turn);
}

static void execute_turn_backward(zero_fake *f, zero_fake_args *a)
{
    cpu->turn_backward(&f->math, &a->turn);
}

static void record_turn(arrays of, const zero_turn *t)
{
    const int64_t rows = t->B * t->T;
    zero_turn *to = &of.args->turn;
    *to = *t;
    to->past = past_of(of, t->past, t->B);
    to->q.x = heads(of, t->rows_type, &t->q, rows, t->H, t->D);
    to->k.x = heads(of, t->rows_type, &t->k, rows, t->K, t->D);
    to->to_q.x = heads(of, t->rows_type, &t->to_q, rows, t->H, t->D);
    to->to_k.x = heads(of, t->rows_type, &t->to_k, rows, t->K, t->D);
    to->dq.x = heads(of, t->rows_type, &t->dq, rows, t->H, t->D);
    to->dk.x = heads(of, t->rows_type, &t->dk, rows, t->K, t->D);
    if (!t->gain_q) return;
    to->gain_q = typed(of, t->type, t->gain_q, t->D);
    to->gain_k = typed(of, t->type, t->gain_k, t->D);
    to->rstd = floats(of, t->rstd, rows * (t->H + t->K));
    to->sums = t->sums ? floats(of, t->sums, 2 * t->slices * t->D) : NULL;
}

void zero_fake_turn(const zero_math *math, const zero_turn *t)
{
    record_turn(begin(math, "turn", execute_turn), t);
    zero_fake_commit(math);
}

void zero_fake_turn_backward(const zero_math *math, const zero_turn *t)
{
    record_turn(begin(math, "turn_backward", execute_turn_backward), t);
    zero_fake_commit(math);
}

/* ---- attention ---- */

static void execute_attention(zero_fake *f, zero_fake_args *a)
{
    zero_cpu_attention(&f->math, &a->attention);
}

static void execute_attention_backward(zero_fake *f, zero_fake_args *a)
{
    zero_cpu_attention_backward(&f->math, &a->attention);
}

/* The arrays that both directions use. */
static zero_attention *record_attention(arrays of, const zero_attention *a)
{
    zero_attention *to = &of.args->attention;
    *to = *a;
    to->q.x = heads(of, a->rows_type, &a->q, a->B * a->T, a->H, a->D);
    to->k.x = heads(of, a->rows_type, &a->k, a->B * a->T, a->K, a->D);
    to->v.x = heads(of, a->rows_type, &a->v, a->B * a->T, a->K, a->D);
    to->out = typed(of, a->rows_type, a->out, a->B * a->T * a->H * a->D);
    to->lse = floats(of, a->lse, a->B * a->H * a->T);
    to->work = floats(of, a->work, zero_cpu_attention_workspace(a));
    to->dout = to->dq.x = to->dk.x = to->dv.x = NULL;
    return to;
}

void zero_fake_attention(const zero_math *math, const zero_attention *a)
{
    record_attention(begin(math, "attention", execute_attention), a);
    zero_fake_commit(math);
}

void zero_fake_attention_backward(const zero_math *math, const zero_attention *a)
{
    arrays of = begin(math, "attention_backward", execute_attention_backward);
    zero_attention *to = record_attention(of, a);
    to->dout = typed(of, a->rows_type, a->dout, a->B * a->T * a->H * a->D);
    to->dq.x = heads(of, a->rows_type, &a->dq, a->B * a->T, a->H, a->D);
    to->dk.x = heads(of, a->rows_type, &a->dk, a->B * a->T, a->K, a->D);
    to->dv.x = heads(of, a->rows_type, &a->dv, a->B * a->T, a->K, a->D);
    zero_fake_commit(math);
}

/* ---- keys and values that are kept ---- */

static void execute_remember(zero_fake *f, zero_fake_args *a)
{
    cpu->remember(&f->math, &a->cached);
}

static void execute_recall(zero_fake *f, zero_fake_args *a)
{
    cpu->recall(&f->math, &a->cached);
}

static zero_cached *record_cached(arrays of, const zero_cached *a)
{
    zero_cached *to = &of.args->cached;
    *to = *a;
    to->past = past_of(of, a->past, a->B);
    to->q.x = to->k.x = to->v.x = to->out = NULL;
    to->cache = floats(of, a->cache,
                       a->B * zero_cache_floats(a->rows_type, a->room, a->H, a->K, a->D));
    return to;
}

void zero_fake_remember(const zero_math *math, const zero_cached *a)
{
    arrays of = begin(math, "remember", execute_remember);
    zero_cached *to = record_cached(of, a);
    to->k.x = heads(of, a->rows_type, &a->k, a->B * a->T, a->K, a->D);
    to->v.x = heads(of, a->rows_type, &a->v, a->B * a->T, a->K, a->D);
    zero_fake_commit(math);
}

void zero_fake_recall(const zero_math *math, const zero_cached *a)
{
    arrays of = begin(math, "recall", execute_recall);
    zero_cached *to = record_cached(of, a);
    to->q.x = heads(of, a->rows_type, &a->q, a->B, a->H, a->D);
    to->out = typed(of, a->rows_type, a->out, a->B * a->H * a->D);
    zero_fake_commit(math);
}

/* ---- tokens: the host cannot check them, so they are checked when they are read ---- */

static bool check_tokens(zero_fake *f, const char *call, const int32_t *tokens, int64_t n,
                         int64_t limit)
{
    for (int64_t i = 0; i < n; i++) {
        if (tokens[i] >= 0 && tokens[i] < limit) continue;
        zero_fake_fail(f, zero_fail(ZERO_ERR_INVALID,
                                    "%s of the fake device read token %d at position %lld; "
                                    "it needs 0 to %lld",
                                    call, tokens[i], (long long)i, (long long)limit - 1));
        return false;
    }
    return true;
}

/* Tokens are less than that: the rows of a table, or any number if ranks share the words. */
static int64_t limit_of(arrays of, int64_t words, const void *table, size_t row_bytes)
{
    return words > 0 ? (int64_t)INT32_MAX + 1 : rows_from(of, table, row_bytes);
}

static void execute_embedding(zero_fake *f, zero_fake_args *a)
{
    const zero_embedding *e = &a->embedding.of;
    if (check_tokens(f, "embedding", e->tokens, e->B * e->T, a->embedding.limit))
        cpu->embedding(&f->math, e);
}

void zero_fake_embedding(const zero_math *math, const zero_embedding *e)
{
    arrays of = begin(math, "embedding", execute_embedding);
    zero_embedding *to = &of.args->embedding.of;
    *to = *e;
    to->tokens = integers(of, e->tokens, e->B * e->T);
    to->wte = typed(of, e->type, e->wte, zero_max(e->words, 1) * e->C);
    int64_t positions = e->T; /* rows of wpe, at least */
    for (int64_t b = 0; e->past && b < e->B; b++)
        positions = zero_max(positions, e->past[b] + e->T);
    to->past = past_of(of, e->past, e->B);
    to->wpe = e->wpe ? typed(of, e->type, e->wpe, positions * e->C) : NULL;
    to->out = typed(of, e->rows_type, e->out, e->B * e->T * e->C);
    of.args->embedding.limit =
        limit_of(of, e->words, e->wte, (size_t)e->C * zero_type_size(e->type));
    zero_fake_commit(math);
}

static void execute_embedding_backward(zero_fake *f, zero_fake_args *a)
{
    const zero_embedding_grad *e = &a->embedding_backward.of;
    if (check_tokens(f, "embedding_backward", e->tokens, e->B * e->T,
                     a->embedding_backward.limit))
        cpu->embedding_backward(&f->math, e);
}

void zero_fake_embedding_backward(const zero_math *math, const zero_embedding_grad *e)
{
    arrays of = begin(math, "embedding_backward", execute_embedding_backward);
    zero_embedding_grad *to = &of.args->embedding_backward.of;
    *to = *e;
    to->tokens = integers(of, e->tokens, e->B * e->T);
    to->dout = typed(of, e->rows_type, e->dout, e->B * e->T * e->C);
    to->dwte = floats(of, e->dwte, zero_max(e->words, 1) * e->C);
    to->dwpe = e->dwpe ? floats(of, e->dwpe, e->T * e->C) : NULL;
    of.args->embedding_backward.limit =
        limit_of(of, e->words, e->dwte, (size_t)e->C * sizeof *e->dwte);
    zero_fake_commit(math);
}

static void execute_cross_entropy(zero_fake *f, zero_fake_args *a)
{
    const zero_cross_entropy *e = &a->cross_entropy;
    if (check_tokens(f, "cross_entropy", e->targets, e->rows, e->V))
        cpu->cross_entropy(&f->math, e);
}

void zero_fake_cross_entropy(const zero_math *math, const zero_cross_entropy *e)
{
    arrays of = begin(math, "cross_entropy", execute_cross_entropy);
    zero_cross_entropy *to = &of.args->cross_entropy;
    *to = *e;
    to->targets = integers(of, e->targets, e->rows);
    to->logits = floats(of, e->logits, e->rows * zero_logits_stride(e));
    to->loss = floats(of, e->loss, e->rows);
    zero_fake_commit(math);
}
