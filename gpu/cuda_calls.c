/* cuda_calls.c - the table: each of its calls queues one kernel, or a few. Partial sums lie in the
 * backend's workspace; no call needs zero_math's scratch. */
#include "gpu/cuda.h"

#include <assert.h>

static void clear(const zero_math *math, int64_t n, float *x)
{
    zero_cuda *c = zero_cuda_begin(math);
    if (!c) return;
    zero_cuda_clear(c->compute, n, x);
    zero_cuda_end(math, "clear");
}

static void add_bias(const zero_math *math, const zero_bias *b)
{
    zero_cuda *c = zero_cuda_begin(math);
    if (!c) return;
    zero_cuda_add_bias(c->compute, b);
    zero_cuda_end(math, "add_bias");
}

static void bias_backward(const zero_math *math, const zero_bias_grad *b)
{
    zero_cuda *c = zero_cuda_begin(math);
    if (!c) return;
    zero_cuda_bias_backward(c->compute, b, c->room);
    zero_cuda_end(math, "bias_backward");
}

static void add_branch(const zero_math *math, const zero_branch *b)
{
    zero_cuda *c = zero_cuda_begin(math);
    if (!c) return;
    zero_cuda_add_branch(c->compute, b);
    zero_cuda_end(math, "add_branch");
}

static void dropout(const zero_math *math, const zero_dropout *d, zero_type rows_type,
                    int64_t B, int64_t n, const void *x, void *y)
{
    zero_cuda *c = zero_cuda_begin(math);
    if (!c) return;
    zero_cuda_dropout(c->compute, d, rows_type, B, n, x, y);
    zero_cuda_end(math, "dropout");
}

static void bias_gelu(const zero_math *math, const zero_bias *b)
{
    zero_cuda *c = zero_cuda_begin(math);
    if (!c) return;
    zero_cuda_bias_gelu(c->compute, b);
    zero_cuda_end(math, "bias_gelu");
}

static void bias_gelu_backward(const zero_math *math, const zero_bias_grad *b)
{
    zero_cuda *c = zero_cuda_begin(math);
    if (!c) return;
    zero_cuda_bias_gelu_backward(c->compute, b, c->room);
    zero_cuda_end(math, "bias_gelu_backward");
}

static void layernorm(const zero_math *math, const zero_layernorm_args *n)
{
    zero_cuda *c = zero_cuda_begin(math);
    if (!c) return;
    zero_cuda_layernorm(c->compute, n);
    zero_cuda_end(math, "layernorm");
}

static void layernorm_backward(const zero_math *math, const zero_layernorm_grad_args *n)
{
    zero_cuda *c = zero_cuda_begin(math);
    if (!c) return;
    zero_cuda_layernorm_backward(c->compute, n, c->room);
    zero_cuda_end(math, "layernorm_backward");
}

static void swiglu(const zero_math *math, const zero_swiglu *s)
{
    zero_cuda *c = zero_cuda_begin(math);
    if (!c) return;
    zero_cuda_swiglu(c->compute, s);
    zero_cuda_end(math, "swiglu");
}

static void swiglu_backward(const zero_math *math, const zero_swiglu *s)
{
    zero_cuda *c = zero_cuda_begin(math);
    if (!c) return;
    zero_cuda_swiglu_backward(c->compute, s);
    zero_cuda_end(math, "swiglu_backward");
}

static void turn(const zero_math *math, const zero_turn *t)
{
    zero_cuda *c = zero_cuda_begin(math);
    if (!c) return;
    zero_cuda_turn(c->compute, t);
    zero_cuda_end(math, "turn");
}

static void turn_backward(const zero_math *math, const zero_turn *t)
{
    zero_cuda *c = zero_cuda_begin(math);
    if (!c) return;
    zero_cuda_turn_backward(c->compute, t, c->room);
    zero_cuda_end(math, "turn_backward");
}

/* A number for each query is in the backend's own room; everything else is made again where it is needed. */
static int64_t attention_workspace(const zero_attention *a)
{
    (void)a;
    return 0;
}

static void attention(const zero_math *math, const zero_attention *a)
{
    zero_cuda *c = zero_cuda_begin(math);
    if (!c) return;
    zero_cuda_attention(c->compute, c->capability, a);
    zero_cuda_end(math, "attention");
}

static void attention_backward(const zero_math *math, const zero_attention *a)
{
    zero_cuda *c = zero_cuda_begin(math);
    if (!c) return;
    zero_cuda_attention_backward(c->compute, c->capability, a, c->room);
    zero_cuda_end(math, "attention_backward");
}

static void remember(const zero_math *math, const zero_cached *a)
{
    zero_cuda *c = zero_cuda_begin(math);
    if (!c) return;
    zero_cuda_remember(c->compute, a);
    zero_cuda_end(math, "remember");
}

static void recall(const zero_math *math, const zero_cached *a)
{
    zero_cuda *c = zero_cuda_begin(math);
    if (!c) return;
    zero_cuda_recall(c->compute, a);
    zero_cuda_end(math, "recall");
}

static void embedding(const zero_math *math, const zero_embedding *e)
{
    zero_cuda *c = zero_cuda_begin(math);
    assert(e->words == 0); /* no model is shared by ranks with devices */
    if (!c) return;
    zero_cuda_embedding(c->compute, e);
    zero_cuda_end(math, "embedding");
}

static void embedding_backward(const zero_math *math, const zero_embedding_grad *e)
{
    zero_cuda *c = zero_cuda_begin(math);
    assert(e->words == 0);
    if (!c) return;
    zero_cuda_embedding_backward(c->compute, e);
    zero_cuda_end(math, "embedding_backward");
}

static void cross_entropy(const zero_math *math, const zero_cross_entropy *e)
{
    zero_cuda *c = zero_cuda_begin(math);
    if (!c) return;
    zero_cuda_cross_entropy(c->compute, e);
    zero_cuda_end(math, "cross_entropy");
}

static void adamw(const zero_math *math, const zero_adamw *h, const zero_adamw_arrays *a)
{
    zero_cuda *c = zero_cuda_begin(math);
    if (!c) return;
    zero_cuda_adamw(c->compute, h, a);
    zero_cuda_end(math, "adamw");
}

static void sum_squares(const zero_math *math, zero_type type, int64_t n, const void *x,
                        double *sum)
{
    zero_cuda *c = zero_cuda_begin(math);
    if (!c) return;
    zero_cuda_sum_squares(c->compute, type, n, x, c->room, sum);
    zero_cuda_end(math, "sum_squares");
}

static void round_to(const zero_math *math, zero_type type, int64_t n, const float *in,
                     void *out)
{
    zero_cuda *c = zero_cuda_begin(math);
    if (!c) return;
    zero_cuda_round(c->compute, type, n, in, out);
    zero_cuda_end(math, "round");
}

static void accumulate_leaf(const zero_math *math, zero_type type, int64_t n,
                            const float *sum, const float *leaf, float *out)
{
    zero_cuda *c = zero_cuda_begin(math);
    if (!c) return;
    zero_cuda_accumulate(c->compute, type, n, sum, leaf, out);
    zero_cuda_end(math, "accumulate");
}

const zero_backend zero_backend_cuda = {
    .name = ZERO_CUDA_NAME,
    .about = "one GPU per rank, or a part of one",
    .open = zero_cuda_open,
    .close = zero_cuda_close,
    .sync = zero_cuda_sync,
    .accepts = zero_cuda_accepts,
    .memory = &zero_cuda_memory,
    .stopwatch = &zero_cuda_stopwatch,
    .yardstick = &zero_cuda_yardstick,
    .fused = &zero_cuda_fused,
    .halves_logits = true,
    .gemm = zero_cuda_gemm,
    .attention_workspace = attention_workspace,
    .clear = clear,
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
    .attention = attention,
    .attention_backward = attention_backward,
    .remember = remember,
    .recall = recall,
    .embedding = embedding,
    .embedding_backward = embedding_backward,
    .cross_entropy = cross_entropy,
    .adamw = adamw,
    .sum_squares = sum_squares,
    .round = round_to,
    .accumulate = accumulate_leaf,
};
