/* gpt2_block.c - one transformer block; rows = B*T.
 *
 *     x ── norm 1 ── qkv ── attention ── proj ── drop ──(+ x)── middle
 *     middle ── norm 2 ── fc ── gelu ── fcproj ── drop ──(+ middle)── out
 *
 * Forward keeps for backward what struct saved lists. The gradient stream holds d(out) on entry
 * and d(x) at the end: the residual path is the stream itself. */
#include "nn/gpt2.h"
#include "nn/layers.h"

#include <stdio.h>

#include "math/backends.h"

enum { DROP_ATTENTION, DROP_PROJ, DROP_FCPROJ, DROPS_PER_BLOCK };

struct saved {
    float *norm1, *qkv, *attended, *middle, *norm2, *fc, *gelu; /* [rows, C] (3C, 4C, 4C) */
    float *lse;                                                 /* [B,H,T] */
    float *moments1, *moments2;                                 /* [2, rows] */
};

static int64_t saved_floats(const zero_gpt2_shape *s, int64_t rows)
{
    return rows * (15 * s->hidden + s->heads + 4);
}

static struct saved cut_saved(const zero_gpt2_shape *s, int64_t rows, float *memory)
{
    int64_t n = rows * s->hidden;
    struct saved v;
    v.norm1 = memory;
    v.qkv = v.norm1 + n;
    v.attended = v.qkv + 3 * n;
    v.middle = v.attended + n;
    v.norm2 = v.middle + n;
    v.fc = v.norm2 + n;
    v.gelu = v.fc + 4 * n;
    v.lse = v.gelu + 4 * n;
    v.moments1 = v.lse + rows * s->heads;
    v.moments2 = v.moments1 + 2 * rows;
    return v;
}

/* Matrix products only; attention's two count as if nothing were masked. Narayanan et al.
 * 2104.04473, appendix. */
static double flops(const zero_gpt2_shape *s, int64_t B, int64_t T)
{
    double rows = (double)(B * T), C = (double)s->hidden;
    return 2.0 * rows * 12.0 * C * C + 4.0 * rows * (double)T * C;
}

/* The last product is [rows, 4C] by [4C, C]. */
static double last_flops(const zero_gpt2_shape *s, int64_t rows)
{
    return 2.0 * (double)rows * 4.0 * (double)s->hidden * (double)s->hidden;
}

static zero_unit_sizes sizes(const zero_unit *u, int64_t B, int64_t T)
{
    const zero_gpt2_shape *s = zero_gpt2_shape_of(u);
    int64_t n = B * T * s->hidden;
    int64_t attention = zero_attention_workspace(
        &(zero_attention){.B = B, .T = T, .C = s->hidden, .H = s->heads});
    return (zero_unit_sizes){.out = n,
                             .saved = saved_floats(s, B * T),
                             .forward_work = attention,
                             .backward_work = 6 * n + attention,
                             .flops = flops(s, B, T),
                             .recompute_flops = flops(s, B, T) - last_flops(s, B * T)};
}

static zero_dropout mask(const zero_unit *u, const zero_call *c, int which)
{
    return zero_gpt2_mask(u, c, 1 + DROPS_PER_BLOCK * u->index + which);
}

/* out = x + drop(in W + b) */
static void add_branch(const zero_linear *l, int which, const float *in, const float *x,
                       float *out)
{
    const zero_call *c = l->call;
    zero_linear_product(l, in, out);
    c->backend->add_branch(c->math,
                           &(zero_branch){.dropout = mask(l->unit, c, which),
                                          .B = c->batch->B,
                                          .T = c->batch->T,
                                          .cols = zero_gpt2_shape_of(l->unit)->hidden,
                                          .type = c->type,
                                          .bias = zero_linear_bias(l),
                                          .residual = x,
                                          .in = out,
                                          .out = out});
}

/* before = in W + b, after = gelu(before) */
static void add_gelu(const zero_linear *l, const float *in, float *before, float *after)
{
    const zero_call *c = l->call;
    zero_linear_product(l, in, before);
    c->backend->bias_gelu(c->math, l->rows, 4 * zero_gpt2_shape_of(l->unit)->hidden,
                          c->type, zero_linear_bias(l), before, after);
}

/* Turns d(after) in `d` into d(before), and computes the gradients of W, b and in from it. */
static void gelu_backward(const zero_linear *l, const float *in, const float *before,
                          float *d, float *d_in)
{
    const zero_call *c = l->call;
    c->backend->bias_gelu_backward(c->math, l->rows,
                                   4 * zero_gpt2_shape_of(l->unit)->hidden, before, d, d,
                                   c->accumulate[l->group], zero_linear_bias_grad(l));
    zero_linear_product_backward(l, in, d, d_in);
}

/* The gradient of a branch before its dropout: the stream itself, or its masked copy. */
static const float *branch_gradient(const zero_unit *u, const zero_call *c, int which,
                                    float *copy)
{
    zero_dropout d = mask(u, c, which);
    if (d.p <= 0.0f) return c->stream;
    c->backend->dropout(c->math, &d, c->batch->B,
                        c->batch->T * zero_gpt2_shape_of(u)->hidden, c->stream, copy);
    return copy;
}

static zero_linear linear(const zero_unit *u, const zero_call *c, int weight)
{
    return (zero_linear){
        .unit = u, .call = c, .weight = weight, .rows = c->batch->B * c->batch->T};
}

static zero_layer_norm norm(const zero_unit *u, const zero_call *c, int gain)
{
    return (zero_layer_norm){
        .unit = u, .call = c, .gain = gain, .rows = c->batch->B * c->batch->T};
}

/* The forward call; backward adds dout and dqkv, and has its workspace elsewhere. */
static zero_attention attention_of(const zero_unit *u, const zero_call *c,
                                   const struct saved *s)
{
    return (zero_attention){.B = c->batch->B,
                            .T = c->batch->T,
                            .C = zero_gpt2_shape_of(u)->hidden,
                            .H = zero_gpt2_shape_of(u)->heads,
                            .dropout = mask(u, c, DROP_ATTENTION),
                            .factors = c->type,
                            .qkv = s->qkv,
                            .out = s->attended,
                            .lse = s->lse,
                            .work = c->work};
}

static void forward(const zero_unit *u, const zero_call *c)
{
    struct saved s = cut_saved(zero_gpt2_shape_of(u), c->batch->B * c->batch->T, c->saved);
    zero_attention attention = attention_of(u, c, &s);
    zero_layer_norm norm1 = norm(u, c, ZERO_LN1_GAIN), norm2 = norm(u, c, ZERO_LN2_GAIN);
    zero_linear qkv = linear(u, c, ZERO_QKV_WEIGHT), proj = linear(u, c, ZERO_PROJ_WEIGHT);
    zero_linear fc = linear(u, c, ZERO_FC_WEIGHT),
                fcproj = linear(u, c, ZERO_FCPROJ_WEIGHT);

    zero_layer_norm_forward(&norm1, c->in, s.norm1, s.moments1);
    zero_linear_forward(&qkv, s.norm1, s.qkv);
    c->backend->attention(c->math, &attention);
    add_branch(&proj, DROP_PROJ, s.attended, c->in, s.middle);

    zero_layer_norm_forward(&norm2, s.middle, s.norm2, s.moments2);
    add_gelu(&fc, s.norm2, s.fc, s.gelu);
    if (!c->out) return; /* recomputed: the last product gives nothing that is saved */
    add_branch(&fcproj, DROP_FCPROJ, s.gelu, s.middle, c->out);
}

static void backward(const zero_unit *u, const zero_call *c)
{
    int64_t rows = c->batch->B * c->batch->T, n = rows * zero_gpt2_shape_of(u)->hidden;
    struct saved s = cut_saved(zero_gpt2_shape_of(u), rows, c->saved);
    float *wide = c->work;        /* [rows, 4C]: d(fc), later d(qkv) */
    float *narrow = wide + 4 * n; /* [rows, C] */
    float *masked = narrow + n;   /* [rows, C] */
    zero_attention attention = attention_of(u, c, &s);
    attention.work = masked + n;
    attention.dout = narrow;
    attention.dqkv = wide;
    zero_layer_norm norm1 = norm(u, c, ZERO_LN1_GAIN), norm2 = norm(u, c, ZERO_LN2_GAIN);
    zero_linear qkv = linear(u, c, ZERO_QKV_WEIGHT), proj = linear(u, c, ZERO_PROJ_WEIGHT);
    zero_linear fc = linear(u, c, ZERO_FC_WEIGHT),
                fcproj = linear(u, c, ZERO_FCPROJ_WEIGHT);

    const float *branch = branch_gradient(u, c, DROP_FCPROJ, masked);
    zero_linear_backward(&fcproj, s.gelu, branch, wide);
    gelu_backward(&fc, s.norm2, s.fc, wide, narrow);
    zero_layer_norm_backward(&norm2, s.middle, s.moments2, narrow, c->stream);

    branch = branch_gradient(u, c, DROP_PROJ, masked);
    zero_linear_backward(&proj, s.attended, branch, narrow);
    c->backend->attention_backward(c->math, &attention);
    zero_linear_backward(&qkv, s.norm1, wide, narrow);
    zero_layer_norm_backward(&norm1, c->in, s.moments1, narrow, c->stream);
}

void zero_gpt2_block_unit(zero_unit *unit)
{
    snprintf(unit->name, sizeof unit->name, "block %d", unit->index);
    unit->sizes = sizes;
    unit->forward = forward;
    unit->backward = backward;
    unit->computes_by_layers = true;
    unit->recompute_without_out = true;
}
