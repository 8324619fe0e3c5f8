/* calls.c - calls of the fake device: each is recorded with pointers that can be read, and made
 * later by the cpu backend. And its table. */
#include <assert.h>
#include <string.h>

#include "base/number.h"
#include "fake/device.h"
#include "math/cpu.h"

static const zero_backend *const cpu = &zero_backend_cpu;

/* The call that is being recorded. */
typedef struct {
    zero_fake *fake;
    const char *name;
    zero_fake_args *args;
    int64_t *past;
} arrays;

static arrays begin(const zero_math *math, const char *name,
                    void (*execute)(zero_fake *f, zero_fake_args *a))
{
    zero_fake *f = zero_fake_of(math);
    zero_fake_call *call = zero_fake_begin(f, name, execute);
    return (arrays){f, name, &call->args, call->past};
}

static void *typed(arrays of, zero_type type, const void *x, int64_t n)
{
    return zero_fake_at(of.fake, of.name, x, (size_t)n * zero_type_size(type));
}

static float *floats(arrays of, const float *x, int64_t n)
{
    return (float *)typed(of, ZERO_FP32, x, n);
}

static int32_t *integers(arrays of, const int32_t *x, int64_t n)
{
    return (int32_t *)zero_fake_at(of.fake, of.name, x, (size_t)n * sizeof *x);
}

/* NULL stays. */
static void *optional(arrays of, zero_type type, const void *x, int64_t n)
{
    return x ? typed(of, type, x, n) : NULL;
}

/* The host's numbers, which it may change as soon as the call returns. */
static const int64_t *past_of(arrays of, const int64_t *past, int64_t B)
{
    if (!past) return NULL;
    assert(B <= ZERO_CACHED_TEXTS);
    memcpy(of.past, past, (size_t)B * sizeof *past);
    return of.past;
}

/* Makes a recorded call. */
#define EXECUTE(operation, ...) \
    static void execute_##operation(zero_fake *f, zero_fake_args *a) \
    { \
        cpu->operation(&f->math, __VA_ARGS__); \
    }

/* A call of one argument, which `translate` is given as the caller's. */
#define CALL(operation, arguments, member, translate) \
    EXECUTE(operation, &a->member) \
    static void operation(const zero_math *math, const arguments *x) \
    { \
        const arrays of = begin(math, #operation, execute_##operation); \
        of.args->member = *x; \
        translate(of, &of.args->member); \
        zero_fake_commit(math); \
    }

/* Arrays of n elements among the arguments, *x; SOME: that may be missing. */
#define FLOATS(member, n)       x->member = floats(of, x->member, n)
#define SOME_FLOATS(member, n)  x->member = optional(of, ZERO_FP32, x->member, n)
#define ROWS(member, n)         x->member = typed(of, x->rows_type, x->member, n)
#define SOME_ROWS(member, n)    x->member = optional(of, x->rows_type, x->member, n)
#define WEIGHTS(member, n)      x->member = typed(of, x->type, x->member, n)
#define SOME_WEIGHTS(member, n) x->member = optional(of, x->type, x->member, n)

/* ---- products and rows ---- */

/* Elements from the first one to the last one. */
static int64_t extent(int64_t rows, int64_t cols, int64_t stride)
{
    return rows > 0 && cols > 0 ? (rows - 1) * (stride ? stride : cols) + cols : 0;
}

static void set_gemm(arrays of, zero_gemm *x)
{
    x->a = typed(of, x->a_type, x->a,
                 x->transpose_a ? extent(x->k, x->m, x->lda) : extent(x->m, x->k, x->lda));
    x->b = typed(of, x->b_type, x->b,
                 x->transpose_b ? extent(x->n, x->k, x->ldb) : extent(x->k, x->n, x->ldb));
    x->c = typed(of, x->c_type, x->c, extent(x->m, x->n, x->ldc));
}

/* add_bias() has no y. */
static void set_bias(arrays of, zero_bias *x)
{
    WEIGHTS(bias, x->cols);
    ROWS(x, x->rows * x->cols);
    SOME_ROWS(y, x->rows * x->cols);
}

/* bias_backward() has neither x nor dx. */
static void set_bias_grad(arrays of, zero_bias_grad *x)
{
    const int64_t n = x->rows * x->cols;
    SOME_ROWS(x, n);
    ROWS(dy, n);
    SOME_ROWS(dx, n);
    FLOATS(dbias, x->cols);
}

CALL(gemm, zero_gemm, gemm, set_gemm)
CALL(add_bias, zero_bias, bias, set_bias)
CALL(bias_gelu, zero_bias, bias, set_bias)
CALL(bias_backward, zero_bias_grad, bias_backward, set_bias_grad)
CALL(bias_gelu_backward, zero_bias_grad, bias_backward, set_bias_grad)

static void set_branch(arrays of, zero_branch *x)
{
    const int64_t n = x->B * x->T * x->cols;
    SOME_WEIGHTS(bias, x->cols);
    ROWS(residual, n);
    ROWS(in, n);
    ROWS(out, n);
}

CALL(add_branch, zero_branch, branch, set_branch)

EXECUTE(dropout, &a->masked.dropout, a->masked.rows_type, a->masked.B, a->masked.n,
        a->masked.in, a->masked.out)

static void dropout(const zero_math *math, const zero_dropout *d, zero_type rows_type,
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

static void set_layernorm(arrays of, zero_layernorm_args *x)
{
    ROWS(x, x->rows * x->C);
    WEIGHTS(gain, x->C);
    SOME_WEIGHTS(bias, x->C);
    ROWS(y, x->rows * x->C);
    SOME_FLOATS(mean, x->rows);
    FLOATS(rstd, x->rows);
}

static void set_layernorm_grad(arrays of, zero_layernorm_grad_args *x)
{
    ROWS(x, x->rows * x->C);
    WEIGHTS(gain, x->C);
    SOME_FLOATS(mean, x->rows);
    FLOATS(rstd, x->rows);
    ROWS(dy, x->rows * x->C);
    ROWS(dx, x->rows * x->C);
    FLOATS(dgain, x->C);
    SOME_FLOATS(dbias, x->C);
}

CALL(layernorm, zero_layernorm_args, layernorm, set_layernorm)
CALL(layernorm_backward, zero_layernorm_grad_args, layernorm_backward, set_layernorm_grad)

static void set_swiglu(arrays of, zero_swiglu *x)
{
    ROWS(x, 2 * x->rows * x->F);
    SOME_ROWS(y, x->rows * x->F);
    SOME_ROWS(d, 2 * x->rows * x->F);
}

CALL(swiglu, zero_swiglu, swiglu, set_swiglu)
CALL(swiglu_backward, zero_swiglu, swiglu, set_swiglu)

/* Heads of each of some rows of the call. */
static void set_heads(arrays of, zero_type type, zero_heads *x, int64_t rows, int64_t n,
                      int64_t D)
{
    x->x = optional(of, type, x->x, x->x ? zero_heads_extent(x, rows, n, D) : 0);
}

#define HEADS(member, rows, n) set_heads(of, x->rows_type, &x->member, rows, x->n, x->D)

static void set_turn(arrays of, zero_turn *x)
{
    const int64_t rows = x->B * x->T;
    x->past = past_of(of, x->past, x->B);
    HEADS(q, rows, H);
    HEADS(k, rows, K);
    HEADS(to_q, rows, H);
    HEADS(to_k, rows, K);
    HEADS(dq, rows, H);
    HEADS(dk, rows, K);
    if (!x->gain_q) return;
    WEIGHTS(gain_q, x->D);
    WEIGHTS(gain_k, x->D);
    FLOATS(rstd, rows * (x->H + x->K));
    SOME_FLOATS(sums, 2 * x->slices * x->D);
}

CALL(turn, zero_turn, turn, set_turn)
CALL(turn_backward, zero_turn, turn, set_turn)

/* ---- attention, keys and values ---- */

/* The arrays that both directions use. */
static void set_both(arrays of, zero_attention *x)
{
    FLOATS(work, zero_cpu_attention_workspace(x));
    HEADS(q, x->B * x->T, H);
    HEADS(k, x->B * x->T, K);
    HEADS(v, x->B * x->T, K);
    ROWS(out, x->B * x->T * x->H * x->D);
    FLOATS(lse, x->B * x->H * x->T);
}

static void set_attention(arrays of, zero_attention *x)
{
    set_both(of, x);
    x->dout = x->dq.x = x->dk.x = x->dv.x = NULL;
}

static void set_attention_grad(arrays of, zero_attention *x)
{
    set_both(of, x);
    ROWS(dout, x->B * x->T * x->H * x->D);
    HEADS(dq, x->B * x->T, H);
    HEADS(dk, x->B * x->T, K);
    HEADS(dv, x->B * x->T, K);
}

CALL(attention, zero_attention, attention, set_attention)
CALL(attention_backward, zero_attention, attention, set_attention_grad)

static void set_cache(arrays of, zero_cached *x)
{
    x->past = past_of(of, x->past, x->B);
    FLOATS(cache, x->B * zero_cache_floats(x->rows_type, x->room, x->H, x->K, x->D));
}

static void set_remember(arrays of, zero_cached *x)
{
    set_cache(of, x);
    HEADS(k, x->B * x->T, K);
    HEADS(v, x->B * x->T, K);
    x->q.x = x->out = NULL;
}

static void set_recall(arrays of, zero_cached *x)
{
    set_cache(of, x);
    HEADS(q, x->B, H);
    ROWS(out, x->B * x->H * x->D);
    x->k.x = x->v.x = NULL;
}

CALL(remember, zero_cached, cached, set_remember)
CALL(recall, zero_cached, cached, set_recall)

/* ---- tokens: the host cannot check them, so they are checked when they are read ---- */

static bool check_tokens(zero_fake *f, const char *call, const int32_t *tokens, int64_t n,
                         int64_t least, int64_t limit)
{
    for (int64_t i = 0; i < n; i++) {
        if (tokens[i] >= least && tokens[i] < limit) continue;
        zero_fake_fail(f, zero_fail(ZERO_ERR_INVALID,
                                    "%s of the fake device read token %d at position %lld; "
                                    "it needs %lld to %lld",
                                    call, tokens[i], (long long)i, (long long)least,
                                    (long long)limit - 1));
        return false;
    }
    return true;
}

/* Tokens are less than that: the rows of a table to the end of its block, or any number if ranks
 * share the words. */
static int64_t limit_of(arrays of, int64_t words, const void *table, size_t row_bytes)
{
    const zero_fake_block *b = zero_fake_block_of(of.fake, table, row_bytes);
    if (words > 0) return (int64_t)INT32_MAX + 1;
    return b ? (int64_t)((size_t)(b->seen + b->bytes - (const char *)table) / row_bytes)
             : 0;
}

static void execute_embedding(zero_fake *f, zero_fake_args *a)
{
    const zero_embedding *e = &a->embedding.of;
    if (check_tokens(f, "embedding", e->tokens, e->B * e->T, 0, a->embedding.limit))
        cpu->embedding(&f->math, e);
}

static void embedding(const zero_math *math, const zero_embedding *e)
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
    to->wpe = optional(of, e->type, e->wpe, positions * e->C);
    to->out = typed(of, e->rows_type, e->out, e->B * e->T * e->C);
    of.args->embedding.limit =
        limit_of(of, e->words, e->wte, (size_t)e->C * zero_type_size(e->type));
    zero_fake_commit(math);
}

static void execute_embedding_backward(zero_fake *f, zero_fake_args *a)
{
    const zero_embedding_grad *e = &a->embedding_backward.of;
    if (check_tokens(f, "embedding_backward", e->tokens, e->B * e->T, 0,
                     a->embedding_backward.limit))
        cpu->embedding_backward(&f->math, e);
}

static void embedding_backward(const zero_math *math, const zero_embedding_grad *e)
{
    arrays of = begin(math, "embedding_backward", execute_embedding_backward);
    zero_embedding_grad *to = &of.args->embedding_backward.of;
    *to = *e;
    to->tokens = integers(of, e->tokens, e->B * e->T);
    to->dout = typed(of, e->rows_type, e->dout, e->B * e->T * e->C);
    to->dwte = floats(of, e->dwte, zero_max(e->words, 1) * e->C);
    to->dwpe = optional(of, ZERO_FP32, e->dwpe, e->T * e->C);
    of.args->embedding_backward.limit =
        limit_of(of, e->words, e->dwte, (size_t)e->C * sizeof *e->dwte);
    zero_fake_commit(math);
}

static void execute_cross_entropy(zero_fake *f, zero_fake_args *a)
{
    const zero_cross_entropy *e = &a->cross_entropy;
    if (check_tokens(f, "cross_entropy", e->targets, e->rows, -1, e->V))
        cpu->cross_entropy(&f->math, e);
}

static void cross_entropy(const zero_math *math, const zero_cross_entropy *e)
{
    arrays of = begin(math, "cross_entropy", execute_cross_entropy);
    zero_cross_entropy *to = &of.args->cross_entropy;
    *to = *e;
    to->targets = integers(of, e->targets, e->rows);
    to->logits = floats(of, e->logits, e->rows * zero_logits_stride(e));
    to->loss = floats(of, e->loss, e->rows);
    zero_fake_commit(math);
}

/* ---- flat ranges ---- */

EXECUTE(clear, a->flat.n, a->flat.out)
EXECUTE(adamw, &a->adamw.recipe, &a->adamw.arrays)
EXECUTE(sum_squares, a->flat.type, a->flat.n, a->flat.in, a->flat.out)
EXECUTE(round, a->flat.type, a->flat.n, a->flat.in, a->flat.out)
EXECUTE(accumulate, a->flat.type, a->flat.n, a->flat.in, a->flat.leaf, a->flat.out)

static void clear(const zero_math *math, int64_t n, float *x)
{
    arrays of = begin(math, "clear", execute_clear);
    of.args->flat.n = n;
    of.args->flat.out = floats(of, x, n);
    zero_fake_commit(math);
}

static void adamw(const zero_math *math, const zero_adamw *h, const zero_adamw_arrays *a)
{
    arrays of = begin(math, "adamw", execute_adamw);
    of.args->adamw.recipe = *h;
    zero_adamw_arrays *to = &of.args->adamw.arrays;
    *to = *a;
    to->grad = typed(of, a->type, a->grad, a->n);
    to->master = floats(of, a->master, a->n);
    to->m = floats(of, a->m, a->n);
    to->v = floats(of, a->v, a->n);
    to->param = a->type == ZERO_FP32 ? NULL : typed(of, a->type, a->param, a->n);
    if (a->changed)
        to->changed = zero_fake_at(of.fake, of.name, a->changed, sizeof *a->changed);
    zero_fake_commit(math);
}

static void sum_squares(const zero_math *math, zero_type type, int64_t n, const void *x,
                        double *sum)
{
    arrays of = begin(math, "sum_squares", execute_sum_squares);
    of.args->flat.n = n, of.args->flat.type = type;
    of.args->flat.in = typed(of, type, x, n);
    of.args->flat.out = zero_fake_at(of.fake, of.name, sum, sizeof *sum);
    zero_fake_commit(math);
}

static void round_numbers(const zero_math *math, zero_type type, int64_t n, const float *in,
                          void *out)
{
    arrays of = begin(math, "round", execute_round);
    of.args->flat.n = n, of.args->flat.type = type;
    of.args->flat.in = floats(of, in, n);
    of.args->flat.out = typed(of, type, out, n);
    zero_fake_commit(math);
}

static void accumulate(const zero_math *math, zero_type type, int64_t n, const float *sum,
                       const float *leaf, float *out)
{
    arrays of = begin(math, "accumulate", execute_accumulate);
    of.args->flat.n = n, of.args->flat.type = type;
    of.args->flat.in = optional(of, ZERO_FP32, sum, n);
    of.args->flat.leaf = floats(of, leaf, n);
    of.args->flat.out = floats(of, out, n);
    zero_fake_commit(math);
}

const zero_backend zero_backend_fake = {
    .name = "fake",
    .about = "the cpu backend behind memory that the host cannot touch, for tests",
    .open = zero_fake_open,
    .close = zero_fake_close,
    .sync = zero_fake_sync,
    .memory = &zero_fake_memory,
    .clear = clear,
    .gemm = gemm,
    .add_bias = add_bias,
    .bias_backward = bias_backward,
    .add_branch = add_branch,
    .dropout = dropout,
    .bias_gelu = bias_gelu,
    .bias_gelu_backward = bias_gelu_backward,
    .layernorm = layernorm,
    .layernorm_backward = layernorm_backward,
    .swiglu = swiglu,
    .swiglu_backward = swiglu_backward,
    .turn = turn,
    .turn_backward = turn_backward,
    .attention_workspace = zero_cpu_attention_workspace,
    .attention = attention,
    .attention_backward = attention_backward,
    .remember = remember,
    .recall = recall,
    .embedding = embedding,
    .embedding_backward = embedding_backward,
    .cross_entropy = cross_entropy,
    .adamw = adamw,
    .sum_squares = sum_squares,
    .round = round_numbers,
    .accumulate = accumulate,
};
