/* block.c - one transformer block; rows = B*T.
 *
 *     x ── norm 1 ── qkv ── attention ── proj ──|── drop ──(+ x)── middle
 *     middle ── norm 2 ── fc ── gelu ── fcproj ──|── drop ──(+ middle)── out
 *
 * Forward keeps for backward what struct saved lists. The gradient stream holds d(out) on
 * entry and d(x) at the end: the residual path is the stream itself.
 *
 * A rank of a shared model has H/T of the heads and 4C/T of the MLP's channels. Its proj
 * and fcproj therefore give terms of a sum over the ranks, and so do d(norm1) and d(norm2)
 * in backward. At each | the ranks join, which cuts a pass into parts. A whole call
 * computes the same parts in order, with `joint` and `joined` in its own memory.
 *
 *     forward     attend | feed | leave                recomputed: attend | feed
 *     backward    feed_input | feed_weights, attend_input | attend_weights, enter
 *
 * Gradients of weights need no sum: they are computed while the ranks join. */
#include "nn/layers.h"
#include "nn/shape.h"
#include "nn/share.h"

#include <assert.h>
#include <stdio.h>

#include "math/backends.h"

enum { DROP_ATTENTION, DROP_PROJ, DROP_FCPROJ, DROPS_PER_BLOCK };

/* This rank's heads, and their channels: all of them in a whole model. */
static int64_t own_heads(const zero_unit *u)
{
    return zero_shape_of(u)->heads / u->share.ranks;
}

static int64_t own_channels(const zero_unit *u)
{
    return zero_shape_of(u)->hidden / u->share.ranks;
}

/* The first two rows are of the type of activations, the others fp32. */
struct saved {
    void *norm1, *middle, *norm2;     /* [rows, C] */
    void *qkv, *attended, *fc, *gelu; /* [rows, 3C/T], C/T, 4C/T, 4C/T */
    float *lse;                       /* [B,H/T,T] */
    float *moments1, *moments2;       /* [2, rows] */
};

static int64_t saved_floats(const zero_unit *u, int64_t rows)
{
    int64_t n = rows * zero_shape_of(u)->hidden, own = rows * own_channels(u);
    return 3 * zero_unit_room(u, n) + zero_unit_room(u, 3 * own) + zero_unit_room(u, own) +
           2 * zero_unit_room(u, 4 * own) + rows * (own_heads(u) + 4);
}

/* An array of n activations at *at, which moves past it. */
static void *cut(const zero_unit *u, int64_t n, float **at)
{
    void *x = *at;
    *at += zero_unit_room(u, n);
    return x;
}

static struct saved cut_saved(const zero_unit *u, int64_t rows, float *memory)
{
    int64_t n = rows * zero_shape_of(u)->hidden, own = rows * own_channels(u);
    struct saved v;
    if (!memory) return (struct saved){0};
    v.norm1 = cut(u, n, &memory);
    v.qkv = cut(u, 3 * own, &memory);
    v.attended = cut(u, own, &memory);
    v.middle = cut(u, n, &memory);
    v.norm2 = cut(u, n, &memory);
    v.fc = cut(u, 4 * own, &memory);
    v.gelu = cut(u, 4 * own, &memory);
    v.lse = memory;
    v.moments1 = v.lse + rows * own_heads(u);
    v.moments2 = v.moments1 + 2 * rows;
    return v;
}

/* Matrix products only; attention's two count as if nothing were masked. Narayanan et al.
 * 2104.04473, appendix. A shared model deals them evenly. */
static double flops(const zero_unit *u, int64_t B, int64_t T)
{
    const zero_shape *s = zero_shape_of(u);
    double rows = (double)(B * T), C = (double)s->hidden, ranks = (double)u->share.ranks;
    return (2.0 * rows * 12.0 * C * C + 4.0 * rows * (double)T * C) / ranks;
}

/* The last product is [rows, 4C/T] by [4C/T, C]. */
static double last_flops(const zero_unit *u, int64_t rows)
{
    return 2.0 * (double)rows * 4.0 * (double)own_channels(u) *
           (double)zero_shape_of(u)->hidden;
}

/* ---- a call ---- */

typedef struct {
    const zero_unit *unit;
    const zero_call *call;
    int64_t rows, n, own; /* n = rows*C, own = rows*C/T */
    struct saved s;
    void *wide;          /* backward: [rows, 4C/T]: d(fc), later d(qkv) */
    void *masked;        /* backward: [rows, C] */
    float *attending;    /* workspace */
    zero_type join_type; /* of the two: fp32 where ranks add */
    void *joint;         /* [rows, C]: written by the parts that join */
    const void *joined;  /* [rows, C]: read by the parts that follow a join */
} pass;

static pass begin(const zero_unit *u, const zero_call *c)
{
    int64_t rows = c->batch->B * c->batch->T;
    return (pass){.unit = u,
                  .call = c,
                  .rows = rows,
                  .n = rows * zero_shape_of(u)->hidden,
                  .own = rows * own_channels(u),
                  .s = cut_saved(u, rows, c->saved),
                  .attending = c->work,
                  .join_type = zero_share_has_parts(&u->share) ? ZERO_FP32 : u->activations,
                  .joint = c->joint,
                  .joined = c->joined};
}

/* The result of a join as activations: in `room`, [rows, C], unless it is of their type. */
static const void *take_joined(const pass *p, void *room)
{
    const zero_call *c = p->call;
    if (p->join_type == p->unit->activations) return p->joined;
    c->backend->round(c->math, p->unit->activations, p->n, p->joined, room);
    return room;
}

static zero_dropout mask(const pass *p, int which)
{
    return zero_unit_mask(p->unit, p->call, 1 + DROPS_PER_BLOCK * p->unit->index + which);
}

static zero_linear linear(const pass *p, int weight)
{
    return (zero_linear){
        .unit = p->unit, .call = p->call, .weight = weight, .rows = p->rows};
}

static zero_layer_norm norm(const pass *p, int gain)
{
    return (zero_layer_norm){
        .unit = p->unit, .call = p->call, .gain = gain, .rows = p->rows};
}

/* The forward call; backward adds dout. */
static zero_attention attention_of(const pass *p)
{
    const int64_t H = own_heads(p->unit);
    zero_attention a = {.B = p->call->batch->B,
                        .T = p->call->batch->T,
                        .H = H,
                        .K = H,
                        .D = own_channels(p->unit) / H,
                        .first_head = p->unit->share.rank * H,
                        .dropout = mask(p, DROP_ATTENTION),
                        .factors = p->call->type,
                        .rows_type = p->unit->activations,
                        .out = p->s.attended,
                        .lse = p->s.lse,
                        .work = p->attending};
    zero_attention_rows(&a, p->s.qkv, p->wide);
    return a;
}

/* The keys and values of earlier positions: NULL as long as nothing is kept. */
static zero_cached cached_of(const pass *p, const zero_attention *a)
{
    const zero_batch *b = p->call->batch;
    return (zero_cached){.B = b->B,
                         .T = b->T,
                         .H = a->H,
                         .K = a->K,
                         .D = a->D,
                         .room = b->room,
                         .past = b->past,
                         .rows_type = p->unit->activations,
                         .q = a->q,
                         .k = a->k,
                         .v = a->v,
                         .cache = p->call->cache,
                         .out = p->s.attended};
}

/* ---- forward ---- */

/* A token's query meets what was kept; the queries of a whole text meet its own keys. */
static void mix(const pass *p)
{
    const zero_call *c = p->call;
    const zero_attention attention = attention_of(p);
    const zero_cached cached = cached_of(p, &attention);
    if (c->cache) c->backend->remember(c->math, &cached);
    if (c->batch->past)
        c->backend->recall(c->math, &cached);
    else
        c->backend->attention(c->math, &attention);
}

/* The product of a branch's last layer, where ranks add it; else it is made where the
 * branch ends. */
static void begin_join(const pass *p, const zero_linear *l, const void *x)
{
    if (zero_share_has_parts(&p->unit->share))
        zero_linear_product(l, x, p->join_type, p->joint);
}

static void attend(const pass *p)
{
    const zero_call *c = p->call;
    const zero_layer_norm norm1 = norm(p, ZERO_LN1_GAIN);
    const zero_linear qkv = linear(p, ZERO_QKV_WEIGHT), proj = linear(p, ZERO_PROJ_WEIGHT);
    zero_layer_norm_forward(&norm1, c->in, p->s.norm1, p->s.moments1);
    zero_linear_forward(&qkv, p->s.norm1, p->s.qkv);
    mix(p);
    begin_join(p, &proj, p->s.attended);
}

/* out = residual + drop(x W + b) of a linear layer that ends a branch; x W is joined where
 * ranks add. */
static void add_branch(const pass *p, int weight, int which, const void *x,
                       const void *residual, void *out)
{
    const zero_call *c = p->call;
    const zero_linear l = linear(p, weight);
    zero_branch b = {.dropout = mask(p, which),
                     .B = c->batch->B,
                     .T = c->batch->T,
                     .cols = zero_shape_of(p->unit)->hidden,
                     .type = c->type,
                     .rows_type = p->unit->activations,
                     .bias = zero_linear_bias(&l),
                     .residual = residual,
                     .in = out,
                     .out = out};
    if (!zero_share_has_parts(&p->unit->share)) {
        zero_linear_branch(&l, x, &b);
        return;
    }
    b.in = take_joined(p, out);
    c->backend->add_branch(c->math, &b);
}

static void feed(const pass *p)
{
    const zero_layer_norm norm2 = norm(p, ZERO_LN2_GAIN);
    const zero_linear fc = linear(p, ZERO_FC_WEIGHT),
                      fcproj = linear(p, ZERO_FCPROJ_WEIGHT);
    add_branch(p, ZERO_PROJ_WEIGHT, DROP_PROJ, p->s.attended, p->call->in, p->s.middle);
    zero_layer_norm_forward(&norm2, p->s.middle, p->s.norm2, p->s.moments2);
    zero_linear_gelu(&fc, p->s.norm2, p->s.fc, p->s.gelu);
    if (!p->call->out)
        return; /* recomputed: the last product gives nothing that is saved */
    begin_join(p, &fcproj, p->s.gelu);
}

static void leave(const pass *p)
{
    add_branch(p, ZERO_FCPROJ_WEIGHT, DROP_FCPROJ, p->s.gelu, p->s.middle, p->call->out);
}

/* ---- backward ---- */

/* The gradient of a branch before its dropout: the stream itself, or its masked copy. */
static const void *branch_gradient(const pass *p, int which)
{
    return mask(p, which).p > 0.0f ? p->masked : p->call->stream;
}

static void mask_branch_gradient(const pass *p, int which)
{
    const zero_call *c = p->call;
    const zero_dropout d = mask(p, which);
    if (d.p > 0.0f)
        c->backend->dropout(c->math, &d, p->unit->activations, c->batch->B,
                            p->n / c->batch->B, c->stream, p->masked);
}

static void feed_input(const pass *p)
{
    const zero_linear fc = linear(p, ZERO_FC_WEIGHT),
                      fcproj = linear(p, ZERO_FCPROJ_WEIGHT);
    mask_branch_gradient(p, DROP_FCPROJ);
    zero_linear_gelu_backward(&fcproj, branch_gradient(p, DROP_FCPROJ), &fc, p->s.fc,
                              p->wide);
    zero_linear_input_gradient(&fc, p->wide, p->join_type, p->joint);
}

static void feed_weights(const pass *p)
{
    const zero_linear fc = linear(p, ZERO_FC_WEIGHT),
                      fcproj = linear(p, ZERO_FCPROJ_WEIGHT);
    zero_linear_weight_gradient(&fc, p->s.norm2, p->wide);
    zero_linear_parameter_gradients(&fcproj, p->s.gelu, branch_gradient(p, DROP_FCPROJ));
}

/* `joint` has d(attended), of the type of activations, until it gets d(norm1). `masked` is
 * free until the branch's gradient is there. */
static void attend_input(const pass *p)
{
    const zero_call *c = p->call;
    const zero_layer_norm norm2 = norm(p, ZERO_LN2_GAIN);
    const zero_linear qkv = linear(p, ZERO_QKV_WEIGHT), proj = linear(p, ZERO_PROJ_WEIGHT);
    zero_attention attention = attention_of(p);
    attention.dout = p->joint;
    zero_layer_norm_backward(&norm2, p->s.middle, p->s.moments2, take_joined(p, p->masked),
                             c->stream);
    mask_branch_gradient(p, DROP_PROJ);
    zero_linear_input_gradient(&proj, branch_gradient(p, DROP_PROJ), p->unit->activations,
                               p->joint);
    c->backend->attention_backward(c->math, &attention);
    zero_linear_input_gradient(&qkv, p->wide, p->join_type, p->joint);
}

static void attend_weights(const pass *p)
{
    const zero_linear qkv = linear(p, ZERO_QKV_WEIGHT), proj = linear(p, ZERO_PROJ_WEIGHT);
    zero_linear_parameter_gradients(&qkv, p->s.norm1, p->wide);
    zero_linear_parameter_gradients(&proj, p->s.attended, branch_gradient(p, DROP_PROJ));
}

static void enter(const pass *p)
{
    const zero_layer_norm norm1 = norm(p, ZERO_LN1_GAIN);
    zero_layer_norm_backward(&norm1, p->call->in, p->s.moments1, take_joined(p, p->masked),
                             p->call->stream);
}

/* ---- the unit ---- */

enum { FORWARD_PARTS = 3, RECOMPUTED_PARTS = 2, BACKWARD_PARTS = 5 };

typedef void part_of_pass(const pass *p);

static part_of_pass *const forward_parts[FORWARD_PARTS] = {attend, feed, leave};
static part_of_pass *const backward_parts[BACKWARD_PARTS] = {
    feed_input, feed_weights, attend_input, attend_weights, enter};

static zero_unit_part part(const zero_unit *u, zero_pass way, int64_t B, int64_t T,
                           int64_t index)
{
    const bool is_backward = way == ZERO_PASS_BACKWARD;
    const int64_t parts = is_backward                  ? BACKWARD_PARTS
                          : way == ZERO_PASS_RECOMPUTE ? RECOMPUTED_PARTS
                                                       : FORWARD_PARTS;
    const int64_t step = is_backward ? 2 : 1; /* from a part that joins to one that waits */
    const bool is_last = index == parts - 1, joins = index % step == 0 && !is_last;
    return (zero_unit_part){.waits = index > 0 && index % step == 0,
                            .join = joins ? ZERO_JOIN_SUM : ZERO_JOIN_NONE,
                            .count = joins ? B * T * zero_shape_of(u)->hidden : 0,
                            .is_last = is_last};
}

static zero_unit_sizes sizes(const zero_unit *u, int64_t B, int64_t T)
{
    int64_t n = B * T * zero_shape_of(u)->hidden, own = B * T * own_channels(u);
    const int64_t H = own_heads(u), D = own_channels(u) / H;
    int64_t attention = zero_attention_workspace(&(zero_attention){
        .B = B, .T = T, .H = H, .K = H, .D = D, .rows_type = u->activations});
    const int64_t room = zero_unit_room(u, n);
    int64_t joint = zero_share_has_parts(&u->share) ? 0 : room; /* that is the caller's */
    return (zero_unit_sizes){.out = n,
                             .saved = saved_floats(u, B * T),
                             .forward_work = attention,
                             .cache = zero_cache_floats(u->activations, T, H, H, D),
                             .backward_work =
                                 zero_unit_room(u, 4 * own) + joint + room + attention,
                             .thread_work = attention,
                             .flops = flops(u, B, T),
                             .recompute_flops = flops(u, B, T) - last_flops(u, B * T)};
}

static void forward(const zero_unit *u, const zero_call *c)
{
    pass p = begin(u, c);
    if (zero_share_has_parts(&u->share)) {
        assert(c->part >= 0 && c->part < FORWARD_PARTS);
        forward_parts[c->part](&p);
    } else {
        attend(&p);
        feed(&p);
        if (p.call->out) leave(&p);
    }
}

static void backward(const zero_unit *u, const zero_call *c)
{
    pass p = begin(u, c);
    const bool has_parts = zero_share_has_parts(&u->share);
    float *work = c->work;
    p.wide = cut(u, 4 * p.own, &work);
    if (!has_parts) p.joined = p.joint = cut(u, p.n, &work);
    p.masked = cut(u, p.n, &work);
    p.attending = work;
    assert(!has_parts || (c->part >= 0 && c->part < BACKWARD_PARTS));
    if (has_parts) backward_parts[c->part](&p);
    for (int i = 0; i < BACKWARD_PARTS && !has_parts; i++) backward_parts[i](&p);
}

void zero_block_unit(zero_unit *unit)
{
    snprintf(unit->name, sizeof unit->name, "block %d", unit->index);
    unit->sizes = sizes;
    unit->part = part;
    unit->forward = forward;
    unit->backward = backward;
    unit->computes_by_layers = true;
    unit->recompute_without_out = true;
    unit->continues = true;
    unit->heeds_activations = true;
}
