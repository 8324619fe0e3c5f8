/* block.c - a transformer block: what its architecture's list of layers says; rows = B*T.
 * Everything else follows from the list, the shape, and the cuts of the tensors:
 *
 *     arrays            C channels; of a linear layer its outputs, of attention the heads'
 *     saved             all arrays but `in` and `out`; then sums: moments of norms, lse
 *     parts, forward    one ends with each linear layer whose sum is cut: its product joins
 *            backward   one ends where the outputs of a linear layer are cut: the gradient
 *                       of its input joins; meanwhile gradients of weights that are due
 *     flops             two per weight and row; attention's as if nothing were masked
 *
 * The gradient stream holds d(out) on entry and d(in) at the end: the residual path is the
 * stream itself. A rank of a shared model has its part of the heads and of the MLP's
 * channels, so the last product of a branch gives terms of a sum over the ranks. A whole
 * call computes the same parts in order, with `joint` and `joined` in its own memory:
 *
 *     GPT-2, forward     attend | feed | leave                 recomputed: attend | feed
 *            backward    d(fc) | weights, d(qkv) | weights, d(in) */
#include "nn/layers.h"
#include "nn/shape.h"
#include "nn/share.h"

#include <assert.h>
#include <stdio.h>

#include "base/number.h"
#include "base/tree.h"
#include "math/backends.h"

/* ---- what follows from the list ---- */

static const zero_architecture *kind_of(const zero_unit *u)
{
    return zero_shape_of(u)->kind;
}

static const zero_layer *layer(const zero_unit *u, int i)
{
    return &kind_of(u)->layers[i];
}

/* The tensor of a row, in its group; -1: the shape has none. */
static int place(const zero_unit *u, int row)
{
    return zero_row_place(kind_of(u)->block, row, zero_shape_of(u));
}

/* The tensor of a linear layer, the first of those that are stacked. */
static const zero_tensor *weight(const zero_unit *u, int i)
{
    return &u->tensors[0][place(u, layer(u, i)->tensor)];
}

static bool has_parts(const zero_unit *u)
{
    return zero_share_has_parts(&u->share);
}

static int64_t own_heads(const zero_unit *u)
{
    return zero_shape_of(u)->heads / u->share.ranks;
}

static int64_t own_key_heads(const zero_unit *u)
{
    return zero_shape_of(u)->kv_heads / u->share.ranks;
}

static zero_linear linear_of(const zero_unit *u, int i)
{
    const zero_layer *l = layer(u, i);
    return (zero_linear){.unit = u,
                         .weight = place(u, l->tensor),
                         .stacked = l->stacked,
                         .bias = l->bias == 0 ? -1 : place(u, l->bias)};
}

static bool is_linear(const zero_unit *u, int i)
{
    return layer(u, i)->kind == ZERO_LINEAR;
}

/* The ranks add up the layer's product, or the gradient of its input. */
static bool sum_is_cut(const zero_unit *u, int i)
{
    return is_linear(u, i) &&
           weight(u, i)->cut == (weight(u, i)->out_in ? ZERO_CUT_COLS : ZERO_CUT_ROWS);
}

static bool output_is_cut(const zero_unit *u, int i)
{
    return is_linear(u, i) &&
           weight(u, i)->cut == (weight(u, i)->out_in ? ZERO_CUT_ROWS : ZERO_CUT_COLS);
}

/* Layer i norms queries and keys. */
static bool norms_heads(const zero_unit *u, int i)
{
    return layer(u, i)->kind == ZERO_TURN && place(u, layer(u, i)->tensor) >= 0;
}

static int64_t outputs(const zero_unit *u, int i)
{
    const zero_linear l = linear_of(u, i);
    return zero_linear_outputs(&l);
}

/* Channels of layer i's output; 0: it is its input, changed in place. */
static int64_t width(const zero_unit *u, int i)
{
    const int64_t D = zero_shape_of(u)->head_size;
    switch (layer(u, i)->kind) {
    case ZERO_LINEAR: return outputs(u, i);
    case ZERO_TURN: return norms_heads(u, i) ? (own_heads(u) + own_key_heads(u)) * D : 0;
    case ZERO_ATTEND: return own_heads(u) * D;
    case ZERO_GELU: return outputs(u, i - 1);
    case ZERO_GATE: return outputs(u, i - 1) / 2;
    case ZERO_NORM:
    case ZERO_ADD: break;
    }
    return zero_shape_of(u)->hidden;
}

static int64_t array_width(const zero_unit *u, int array)
{
    for (int i = 0; i < kind_of(u)->n_layers; i++)
        if (layer(u, i)->out == array) return width(u, i);
    return zero_shape_of(u)->hidden; /* in */
}

/* Sums of a layer that backward reads, per position: moments of norms, lse. */
static int64_t sums_of(const zero_unit *u, int i)
{
    switch (layer(u, i)->kind) {
    case ZERO_NORM: return zero_unit_has(u, ZERO_HAS_RMS) ? 1 : 2;
    case ZERO_TURN: return norms_heads(u, i) ? own_heads(u) + own_key_heads(u) : 0;
    case ZERO_ATTEND: return own_heads(u);
    default: return 0;
    }
}

/* Channels of the widest gradient that is not of the residual stream's width. */
static int64_t widest(const zero_unit *u)
{
    int64_t most = 0;
    for (int i = 0; i + 1 < kind_of(u)->n_layers; i++)
        if (is_linear(u, i) && layer(u, i + 1)->kind != ZERO_ADD)
            most = zero_max(most, outputs(u, i));
    return most;
}

/* Channels of d(attended), unless `joint` has room for it until it gets d(in). */
static int64_t attended_room(const zero_unit *u)
{
    const int64_t own = own_heads(u) * zero_shape_of(u)->head_size;
    return own > zero_shape_of(u)->hidden ? own : 0;
}

/* Floats behind d(in) of layer i in `joint`: the gradients of the gains of queries and
 * keys, which are sums over heads. */
static int64_t joined_gains(const zero_unit *u, int i)
{
    if (i + 1 >= kind_of(u)->n_layers || !is_linear(u, i) || !norms_heads(u, i + 1))
        return 0;
    return zero_round_up(2 * zero_shape_of(u)->head_size, u->share.ranks);
}

static int64_t gain_room(const zero_unit *u)
{
    const int64_t D = zero_shape_of(u)->head_size;
    return zero_unit_has(u, ZERO_HAS_QK_NORM) && has_parts(u)
               ? zero_round_up(2 * D * zero_share_slices(&u->share), 16)
               : 0;
}

static double flops(const zero_unit *u, int i, int64_t B, int64_t T)
{
    const double rows = (double)(B * T);
    if (is_linear(u, i)) {
        const zero_linear l = linear_of(u, i);
        return 2.0 * rows * (double)zero_linear_inputs(&l) *
               (double)zero_linear_outputs(&l);
    }
    return layer(u, i)->kind == ZERO_ATTEND ? 4.0 * rows * (double)T * (double)width(u, i)
                                            : 0.0;
}

/* ---- a call ---- */

typedef struct {
    const zero_unit *unit;
    const zero_call *call;
    int n_layers;
    int64_t rows, n; /* n = rows*C */
    void *array[ZERO_MOST_ARRAYS];
    int64_t width[ZERO_MOST_ARRAYS];
    float *sums[ZERO_MOST_ROWS]; /* of a layer */
    void *wide;                  /* backward: gradients of linear layers' outputs */
    void *attended;              /* backward: d(attended) */
    void *masked;                /* backward: [rows, C] */
    float *gains;                /* backward: gradients of gains, by slice */
    float *attending;            /* workspace */
    zero_type join_type;         /* of the two: fp32 where ranks add */
    void *joint;                 /* [rows, C]: written by the parts that join */
    const void *joined;          /* [rows, C]: read by the parts that follow a join */
} pass;

/* An array of n activations at *at, which moves past it. */
static void *cut(const zero_unit *u, int64_t n, float **at)
{
    void *x = *at;
    *at += zero_unit_room(u, n);
    return x;
}

static int64_t saved_floats(const zero_unit *u, int64_t rows)
{
    int64_t n = 0;
    for (int a = ZERO_FIRST_ARRAY; a < kind_of(u)->n_arrays; a++)
        n += zero_unit_room(u, rows * array_width(u, a));
    for (int i = 0; i < kind_of(u)->n_layers; i++) n += rows * sums_of(u, i);
    return n;
}

static pass begin(const zero_unit *u, const zero_call *c)
{
    const int64_t C = zero_shape_of(u)->hidden, rows = c->batch->B * c->batch->T;
    float *at = c->saved;
    pass p = {.unit = u,
              .call = c,
              .n_layers = kind_of(u)->n_layers,
              .rows = rows,
              .n = rows * C,
              .attending = c->work,
              .join_type = has_parts(u) ? ZERO_FP32 : u->activations,
              .joint = c->joint,
              .joined = c->joined};
    p.array[ZERO_BLOCK_IN] = (void *)(uintptr_t)c->in;
    p.array[ZERO_BLOCK_OUT] = c->out;
    p.width[ZERO_BLOCK_IN] = p.width[ZERO_BLOCK_OUT] = C;
    for (int a = ZERO_FIRST_ARRAY; at && a < kind_of(u)->n_arrays; a++) {
        p.width[a] = array_width(u, a);
        p.array[a] = cut(u, rows * p.width[a], &at);
    }
    for (int i = 0; at && i < p.n_layers; i++) {
        const zero_layer *l = layer(u, i);
        p.sums[i] = at;
        at += rows * sums_of(u, i);
        if (p.width[l->out] > 0) continue; /* in place */
        p.array[l->out] = p.array[l->in];
        p.width[l->out] = p.width[l->in];
    }
    return p;
}

static zero_linear linear(const pass *p, int i)
{
    zero_linear l = linear_of(p->unit, i);
    l.call = p->call;
    l.rows = p->rows;
    return l;
}

static zero_layer_norm norm(const pass *p, int i)
{
    const zero_layer *l = layer(p->unit, i);
    return (zero_layer_norm){.unit = p->unit,
                             .call = p->call,
                             .gain = place(p->unit, l->tensor),
                             .rows = p->rows,
                             .is_rms = zero_unit_has(p->unit, ZERO_HAS_RMS),
                             .eps = (float)zero_shape_of(p->unit)->eps};
}

static zero_dropout mask(const pass *p, int i)
{
    const int masks = kind_of(p->unit)->masks;
    return zero_unit_mask(p->unit, p->call,
                          1 + masks * p->unit->index + layer(p->unit, i)->drop);
}

/* The result of a join as activations: in `room`, [rows, C], unless it is of their type. */
static const void *take_joined(const pass *p, void *room)
{
    const zero_call *c = p->call;
    if (p->join_type == p->unit->activations) return p->joined;
    c->backend->round(c->math, p->unit->activations, p->n, p->joined, room);
    return room;
}

/* Queries, keys and values of a row lie side by side: these heads begin at channel
 * `first`. */
static zero_heads heads_in(const pass *p, int array, int64_t first)
{
    return zero_heads_of(p->unit->activations, p->array[array], first, p->width[array],
                         zero_shape_of(p->unit)->head_size);
}

/* Where gradients of queries, keys and values are, as their product's output. */
static zero_heads gradient_heads(const pass *p, int64_t first)
{
    const int64_t D = zero_shape_of(p->unit)->head_size;
    return zero_heads_of(p->unit->activations, p->wide, first,
                         (own_heads(p->unit) + 2 * own_key_heads(p->unit)) * D, D);
}

static zero_attention attention_of(const pass *p, int i)
{
    const zero_unit *u = p->unit;
    const zero_layer *l = layer(u, i);
    const int64_t H = own_heads(u), K = own_key_heads(u), D = zero_shape_of(u)->head_size;
    return (zero_attention){.B = p->call->batch->B,
                            .T = p->call->batch->T,
                            .H = H,
                            .K = K,
                            .D = D,
                            .first_head = u->share.rank * H,
                            .dropout = mask(p, i),
                            .factors = p->call->type,
                            .rows_type = u->activations,
                            .q = heads_in(p, l->in, 0),
                            .k = heads_in(p, l->in, H * D),
                            .v = heads_in(p, l->with, (H + K) * D),
                            .out = p->array[l->out],
                            .lse = p->sums[i],
                            .work = p->attending,
                            .dout = p->attended,
                            .dq = gradient_heads(p, 0),
                            .dk = gradient_heads(p, H * D),
                            .dv = gradient_heads(p, (H + K) * D)};
}

/* Queries and keys, before and after they are turned; in backward their gradients. */
static zero_turn turn_of(const pass *p, int i)
{
    const zero_unit *u = p->unit;
    const zero_call *c = p->call;
    const zero_layer *l = layer(u, i);
    const zero_shape *s = zero_shape_of(u);
    const int64_t H = own_heads(u), K = own_key_heads(u), D = s->head_size;
    const int gains = place(u, l->tensor);
    zero_turn t = {.B = c->batch->B,
                   .T = c->batch->T,
                   .H = H,
                   .K = K,
                   .D = D,
                   .R = D,
                   .type = c->type,
                   .rows_type = u->activations,
                   .past = c->batch->past,
                   .eps = (float)s->eps,
                   .q = heads_in(p, l->in, 0),
                   .k = heads_in(p, l->in, H * D),
                   .to_q = heads_in(p, l->out, 0),
                   .to_k = heads_in(p, l->out, H * D),
                   .dq = gradient_heads(p, 0),
                   .dk = gradient_heads(p, H * D)};
    zero_shape_frequencies(s, t.frequency);
    if (gains < 0) return t;
    t.gain_q = zero_weight(u, c, 0, gains);
    t.gain_k = zero_weight(u, c, 0, gains + 1);
    t.rstd = p->sums[i];
    t.slices = has_parts(u) ? zero_share_slices(&u->share) : 1;
    t.accumulate = !has_parts(u) && c->accumulate[0];
    t.sums = has_parts(u) ? p->gains : NULL;
    return t;
}

static zero_swiglu gate_of(const pass *p, int i)
{
    const zero_layer *l = layer(p->unit, i);
    return (zero_swiglu){.rows = p->rows,
                         .F = p->width[l->out],
                         .rows_type = p->unit->activations,
                         .x = p->array[l->in],
                         .y = p->array[l->out],
                         .d = p->wide};
}

/* ---- forward ---- */

/* A token's query meets what was kept; the queries of a whole text meet its own keys. */
static void attend(const pass *p, int i)
{
    const zero_call *c = p->call;
    const zero_attention a = attention_of(p, i);
    const zero_cached cached = {.B = a.B,
                                .T = a.T,
                                .H = a.H,
                                .K = a.K,
                                .D = a.D,
                                .room = c->batch->room,
                                .past = c->batch->past,
                                .rows_type = a.rows_type,
                                .q = a.q,
                                .k = a.k,
                                .v = a.v,
                                .cache = c->cache,
                                .out = a.out};
    if (c->cache) c->backend->remember(c->math, &cached);
    if (c->batch->past)
        c->backend->recall(c->math, &cached);
    else
        c->backend->attention(c->math, &a);
}

/* out = residual + drop(x W + b) of the linear layer that ends a branch; x W is joined
 * where ranks add. */
static void add(const pass *p, int i)
{
    const zero_call *c = p->call;
    const zero_linear l = linear(p, i - 1);
    void *out = p->array[layer(p->unit, i)->out];
    zero_branch b = {.dropout = mask(p, i),
                     .B = c->batch->B,
                     .T = c->batch->T,
                     .cols = zero_shape_of(p->unit)->hidden,
                     .type = c->type,
                     .rows_type = p->unit->activations,
                     .bias = zero_linear_bias(&l),
                     .residual = p->array[layer(p->unit, i)->with],
                     .in = out,
                     .out = out};
    if (!has_parts(p->unit)) {
        zero_linear_branch(&l, p->array[layer(p->unit, i - 1)->in], &b);
        return;
    }
    b.in = take_joined(p, out);
    c->backend->add_branch(c->math, &b);
}

/* Layer i, with the next one where the two are one call. */
static void compute(const pass *p, int i)
{
    const zero_layer *l = layer(p->unit, i);
    const zero_linear product = linear(p, i);
    const zero_layer_norm n = norm(p, i);
    void *in = p->array[l->in], *out = p->array[l->out];
    switch (l->kind) {
    case ZERO_NORM: zero_layer_norm_forward(&n, in, out, p->sums[i]); break;
    case ZERO_TURN: {
        const zero_turn t = turn_of(p, i);
        p->call->backend->turn(p->call->math, &t);
        break;
    }
    case ZERO_ATTEND: attend(p, i); break;
    case ZERO_GATE: {
        const zero_swiglu g = gate_of(p, i);
        p->call->backend->swiglu(p->call->math, &g);
        break;
    }
    case ZERO_ADD: add(p, i); break;
    case ZERO_GELU: break; /* done with the linear layer before */
    case ZERO_LINEAR:
        if (l[1].kind == ZERO_GELU)
            zero_linear_gelu(&product, in, out, p->array[l[1].out]);
        else if (l[1].kind != ZERO_ADD)
            zero_linear_forward(&product, in, out);
        else if (has_parts(p->unit)) /* else it is made where the branch ends */
            zero_linear_product(&product, in, p->join_type, p->joint);
        break;
    }
}

static void forward(const zero_unit *u, const zero_call *c)
{
    const pass p = begin(u, c);
    /* Recomputed: the last product gives nothing that is saved. */
    const int end = c->out ? p.n_layers : p.n_layers - 2;
    int64_t part = 0;
    for (int i = 0; i < end; i++) {
        if (!has_parts(u) || part == c->part) compute(&p, i);
        part += sum_is_cut(u, i);
    }
}

/* ---- backward ---- */

/* The gradient of layer i's output. At a branch's end that is the stream, or its masked
 * copy. */
static const void *gradient_of(const pass *p, int i)
{
    const zero_unit *u = p->unit;
    if (layer(u, i + 1)->kind == ZERO_ADD)
        return mask(p, i + 1).p > 0.0f ? p->masked : p->call->stream;
    return layer(u, i)->kind == ZERO_ATTEND ? p->attended : p->wide;
}

/* The sum over n slices of the heads from `first` on, in the first one's place: a complete
 * subtree or the whole tree. */
static void sum_gains(const pass *p, int first, int n)
{
    const zero_call *c = p->call;
    const int64_t len = 2 * zero_shape_of(p->unit)->head_size;
    const int left = (int)zero_tree_left(n);
    float *sum = p->gains + first * len;
    if (n == 1) return;
    sum_gains(p, first, left);
    sum_gains(p, first + left, n - left);
    c->backend->accumulate(c->math, ZERO_FP32, len, sum, sum + left * len, sum);
}

/* The gradients of the gains of queries and keys are sums over heads, which ranks share:
 * they travel behind d(in). */
static void turn_back(const pass *p, int i)
{
    const zero_unit *u = p->unit;
    const zero_call *c = p->call;
    const int64_t len = 2 * zero_shape_of(u)->head_size;
    zero_turn t = turn_of(p, i);
    if (norms_heads(u, i) && !has_parts(u))
        t.sums = zero_weight_grad(u, c, 0, place(u, layer(u, i)->tensor));
    c->backend->turn_backward(c->math, &t);
    if (!t.sums || !has_parts(u)) return;
    float *joint = (float *)p->joint + p->n;
    sum_gains(p, 0, t.slices);
    c->backend->round(c->math, ZERO_FP32, len, p->gains, joint);
    c->backend->clear(c->math, joined_gains(u, i - 1) - len, joint + len);
}

static void take_gains(const pass *p, int i)
{
    const zero_unit *u = p->unit;
    const zero_call *c = p->call;
    const int64_t len = 2 * zero_shape_of(u)->head_size;
    const float *sum = (const float *)p->joined + p->n;
    float *gradient = zero_weight_grad(u, c, 0, place(u, layer(u, i)->tensor));
    if (c->accumulate[0])
        c->backend->accumulate(c->math, ZERO_FP32, len, gradient, sum, gradient);
    else
        c->backend->round(c->math, ZERO_FP32, len, sum, gradient);
}

/* From the gradient of layer i's output to that of its input. `masked` is free until a
 * branch's gradient is there. */
static void back(const pass *p, int i)
{
    const zero_unit *u = p->unit;
    const zero_call *c = p->call;
    const zero_layer *l = layer(u, i);
    const zero_linear product = linear(p, i);
    const zero_layer_norm n = norm(p, i);
    const zero_dropout d = mask(p, i);
    switch (l->kind) {
    case ZERO_ADD:
        if (d.p > 0.0f)
            c->backend->dropout(c->math, &d, u->activations, c->batch->B,
                                p->n / c->batch->B, c->stream, p->masked);
        break;
    case ZERO_GELU: break; /* done with the linear layer after it */
    case ZERO_GATE: {
        const zero_swiglu g = gate_of(p, i);
        c->backend->swiglu_backward(c->math, &g);
        break;
    }
    case ZERO_ATTEND: {
        const zero_attention a = attention_of(p, i);
        c->backend->attention_backward(c->math, &a);
        break;
    }
    case ZERO_TURN: turn_back(p, i); break;
    case ZERO_NORM:
        if (has_parts(u) && joined_gains(u, i + 1) > 0) take_gains(p, i + 2);
        zero_layer_norm_backward(&n, p->array[l->in], p->sums[i], take_joined(p, p->masked),
                                 c->stream);
        break;
    case ZERO_LINEAR:
        if (output_is_cut(u, i))
            zero_linear_input_gradient(&product, gradient_of(p, i), p->join_type, p->joint,
                                       0);
        else if (l[-1].kind == ZERO_GELU) {
            const zero_linear before = linear(p, i - 2);
            zero_linear_gelu_backward(&product, gradient_of(p, i), &before,
                                      p->array[l[-1].in], p->wide);
        } else
            zero_linear_input_gradient(&product, gradient_of(p, i), u->activations,
                                       l[-1].kind == ZERO_ATTEND ? p->attended : p->wide,
                                       l[-1].kind == ZERO_GATE ? 2 * p->width[l->in] : 0);
        break;
    }
}

static void back_weights(const pass *p, int i)
{
    const zero_layer *l = layer(p->unit, i);
    const zero_linear product = linear(p, i);
    if (l->kind != ZERO_LINEAR) return;
    if (l[1].kind == ZERO_GELU) /* which has summed the bias' gradient */
        zero_linear_weight_gradient(&product, p->array[l->in], gradient_of(p, i));
    else
        zero_linear_parameter_gradients(&product, p->array[l->in], gradient_of(p, i));
}

static void backward(const zero_unit *u, const zero_call *c)
{
    pass p = begin(u, c);
    float *work = c->work;
    p.wide = cut(u, p.rows * widest(u), &work);
    p.attended = cut(u, p.rows * attended_room(u), &work);
    if (!has_parts(u)) p.joined = p.joint = cut(u, p.n, &work);
    if (attended_room(u) == 0) p.attended = p.joint;
    p.masked = cut(u, p.n, &work);
    p.gains = work;
    p.attending = work + gain_room(u);
    int64_t part = 0;
    for (int i = p.n_layers - 1, due = i; i >= 0; i--) {
        if (!has_parts(u) || part == c->part) back(&p, i);
        if (!output_is_cut(u, i)) continue;
        for (int k = i; k <= due; k++) /* those that were due last come first */
            if (!has_parts(u) || part + 1 == c->part) back_weights(&p, k);
        due = i - 1;
        part += 2;
    }
}

/* ---- the unit ---- */

/* The layer whose product, or whose input's gradient, joins as number `index` of a pass. */
static int joining(const zero_unit *u, bool is_backward, int64_t index)
{
    const int n = kind_of(u)->n_layers;
    for (int k = 0; k < n; k++) {
        const int i = is_backward ? n - 1 - k : k;
        if ((is_backward ? output_is_cut(u, i) : sum_is_cut(u, i)) && index-- == 0)
            return i;
    }
    return -1;
}

static zero_unit_part part(const zero_unit *u, zero_pass way, int64_t B, int64_t T,
                           int64_t index)
{
    const bool is_backward = way == ZERO_PASS_BACKWARD;
    const int64_t step = is_backward ? 2 : 1; /* from a part that joins to one that waits */
    int64_t joins = 0;
    while (joining(u, is_backward, joins) >= 0) joins++;
    if (way == ZERO_PASS_RECOMPUTE) joins--; /* the last product's */
    const bool joins_here = index % step == 0 && index / step < joins;
    const int i = joins_here ? joining(u, is_backward, index / step) : -1;
    const int64_t more = is_backward && i >= 0 ? joined_gains(u, i) : 0;
    return (zero_unit_part){.waits = index > 0 && index % step == 0,
                            .join = joins_here ? ZERO_JOIN_SUM : ZERO_JOIN_NONE,
                            .count =
                                joins_here ? B * T * zero_shape_of(u)->hidden + more : 0,
                            .is_last = index == step * joins};
}

static zero_unit_sizes sizes(const zero_unit *u, int64_t B, int64_t T)
{
    const zero_shape *s = zero_shape_of(u);
    const int n_layers = kind_of(u)->n_layers;
    const int64_t rows = B * T, H = own_heads(u), K = own_key_heads(u);
    const int64_t room = zero_unit_room(u, rows * s->hidden);
    const int64_t attention = zero_attention_workspace(&(zero_attention){
        .B = B, .T = T, .H = H, .K = K, .D = s->head_size, .rows_type = u->activations});
    double sum = 0.0;
    for (int i = 0; i < n_layers; i++) sum += flops(u, i, B, T);
    return (zero_unit_sizes){
        .out = rows * s->hidden,
        .saved = saved_floats(u, rows),
        .forward_work = attention,
        .cache = zero_cache_floats(u->activations, T, H, K, s->head_size),
        .backward_work = zero_unit_room(u, rows * widest(u)) +
                         zero_unit_room(u, rows * attended_room(u)) +
                         (has_parts(u) ? 0 : room) + /* joint: else the caller's */
                         room + gain_room(u) + attention,
        .thread_work = attention,
        .flops = sum,
        .recompute_flops = sum - flops(u, n_layers - 2, B, T)};
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
