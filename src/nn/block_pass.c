/* block_pass.c - a block forward and back, layer by layer: whole, or a part of a pass. */
#include "nn/block.h"

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
    void *kept;          /* backward: d(out), or NULL: no branch is beside another */
    float *gains;        /* backward: gradients of gains, by slice */
    float *attending;    /* workspace */
    zero_type join_type; /* of the two: fp32 where ranks add */
    void *joint;         /* [rows, C]: written by the parts that join */
    const void *joined;  /* [rows, C]: read by the parts that follow a join */
} pass;

/* An array of n activations at *at, which moves past it. */
static void *cut(const zero_unit *u, int64_t n, float **at)
{
    void *x = *at;
    *at += zero_unit_room(u, n);
    return x;
}

static pass begin(const zero_unit *u, const zero_call *c)
{
    const int64_t C = zero_shape_of(u)->hidden, rows = c->batch->B * c->batch->T;
    float *at = c->saved;
    pass p = {.unit = u,
              .call = c,
              .n_layers = zero_block_kind(u)->n_layers,
              .rows = rows,
              .n = rows * C,
              .attending = c->work,
              .join_type = zero_block_has_parts(u) ? ZERO_FP32 : u->activations,
              .joint = c->joint,
              .joined = c->joined};
    p.array[ZERO_BLOCK_IN] = (void *)(uintptr_t)c->in;
    p.array[ZERO_BLOCK_OUT] = c->out;
    p.width[ZERO_BLOCK_IN] = p.width[ZERO_BLOCK_OUT] = C;
    for (int a = ZERO_FIRST_ARRAY; at && a < zero_block_kind(u)->n_arrays; a++) {
        p.width[a] = zero_block_width(u, a);
        p.array[a] = cut(u, rows * p.width[a], &at);
    }
    for (int i = 0; at && i < p.n_layers; i++) {
        const zero_layer *l = zero_block_layer(u, i);
        p.sums[i] = at;
        at += rows * zero_block_sums(u, i);
        if (p.width[l->out] > 0) continue; /* in place */
        p.array[l->out] = p.array[l->in];
        p.width[l->out] = p.width[l->in];
    }
    return p;
}

static zero_linear linear(const pass *p, int i)
{
    zero_linear l = zero_block_linear(p->unit, i);
    l.call = p->call;
    l.rows = p->rows;
    return l;
}

static zero_layer_norm norm(const pass *p, int i)
{
    const zero_layer *l = zero_block_layer(p->unit, i);
    return (zero_layer_norm){.unit = p->unit,
                             .call = p->call,
                             .gain = zero_block_place(p->unit, l->tensor),
                             .rows = p->rows,
                             .is_rms = zero_unit_has(p->unit, ZERO_HAS_RMS),
                             .eps = (float)zero_shape_of(p->unit)->eps};
}

static zero_dropout mask(const pass *p, int i)
{
    const int masks = zero_block_kind(p->unit)->masks;
    return zero_unit_mask(p->unit, p->call,
                          1 + masks * p->unit->index + zero_block_layer(p->unit, i)->drop);
}

/* The result of a join as activations: in `room`, [rows, C], unless it is of their type. */
static const void *take_joined(const pass *p, void *room)
{
    const zero_call *c = p->call;
    if (p->join_type == p->unit->activations) return p->joined;
    c->backend->round(c->math, p->unit->activations, p->n, p->joined, room);
    return room;
}

typedef enum { QUERIES, KEYS, VALUES } part_of_row;

/* In a row are all queries, all keys and all values; or those of a head side by side. */
static zero_heads heads_of(const pass *p, const void *rows, int64_t stride, part_of_row of)
{
    const zero_unit *u = p->unit;
    const int64_t H = zero_block_heads(u), K = zero_block_key_heads(u);
    const int64_t D = zero_shape_of(u)->head_size, first[] = {0, H * D, (H + K) * D};
    const bool by_head = zero_unit_has(u, ZERO_HAS_BY_HEAD);
    return zero_heads_of(u->activations, rows, by_head ? of * D : first[of], stride,
                         by_head ? 3 * D : D);
}

static zero_heads heads_in(const pass *p, int array, part_of_row of)
{
    return heads_of(p, p->array[array], p->width[array], of);
}

/* The gradients of those in an array that is a product's output. */
static zero_heads gradient_heads(const pass *p, int array, part_of_row of)
{
    return heads_of(p, p->wide, p->width[array], of);
}

static zero_attention attention_of(const pass *p, int i)
{
    const zero_unit *u = p->unit;
    const zero_layer *l = zero_block_layer(u, i);
    const int64_t H = zero_block_heads(u), K = zero_block_key_heads(u),
                  D = zero_shape_of(u)->head_size;
    return (zero_attention){.B = p->call->batch->B,
                            .T = p->call->batch->T,
                            .H = H,
                            .K = K,
                            .D = D,
                            .first_head = u->share.rank * H,
                            .dropout = mask(p, i),
                            .factors = p->call->type,
                            .rows_type = u->activations,
                            .q = heads_in(p, l->in, QUERIES),
                            .k = heads_in(p, l->in, KEYS),
                            .v = heads_in(p, l->with, VALUES),
                            .out = p->array[l->out],
                            .lse = p->sums[i],
                            .work = p->attending,
                            .dout = p->attended,
                            .dq = gradient_heads(p, l->with, QUERIES),
                            .dk = gradient_heads(p, l->with, KEYS),
                            .dv = gradient_heads(p, l->with, VALUES)};
}

/* Queries and keys, before and after they are turned; in backward their gradients. */
static zero_turn turn_of(const pass *p, int i)
{
    const zero_unit *u = p->unit;
    const zero_call *c = p->call;
    const zero_layer *l = zero_block_layer(u, i);
    const zero_shape *s = zero_shape_of(u);
    const int64_t H = zero_block_heads(u), K = zero_block_key_heads(u), D = s->head_size;
    zero_turn t = {.B = c->batch->B,
                   .T = c->batch->T,
                   .H = H,
                   .K = K,
                   .D = D,
                   .R = zero_shape_turned(s),
                   .type = c->type,
                   .rows_type = u->activations,
                   .past = c->batch->past,
                   .eps = (float)s->eps,
                   .q = heads_in(p, l->in, QUERIES),
                   .k = heads_in(p, l->in, KEYS),
                   .to_q = heads_in(p, l->out, QUERIES),
                   .to_k = heads_in(p, l->out, KEYS),
                   .dq = gradient_heads(p, l->in, QUERIES),
                   .dk = gradient_heads(p, l->in, KEYS)};
    zero_shape_frequencies(s, t.frequency);
    if (!zero_block_norms_heads(u, i)) return t;
    const int gains = zero_block_place(u, l->tensor);
    t.gain_q = zero_weight(u, c, 0, gains);
    t.gain_k = zero_weight(u, c, 0, gains + 1);
    t.rstd = p->sums[i];
    t.slices = zero_block_has_parts(u) ? zero_share_slices(&u->share) : 1;
    t.accumulate = !zero_block_has_parts(u) && c->accumulate[0];
    t.sums = zero_block_has_parts(u) ? p->gains : NULL;
    return t;
}

static zero_swiglu gate_of(const pass *p, int i)
{
    const zero_layer *l = zero_block_layer(p->unit, i);
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
    void *out = p->array[zero_block_layer(p->unit, i)->out];
    zero_branch b = {.dropout = mask(p, i),
                     .B = c->batch->B,
                     .T = c->batch->T,
                     .cols = zero_shape_of(p->unit)->hidden,
                     .type = c->type,
                     .rows_type = p->unit->activations,
                     .bias = zero_linear_bias(&l),
                     .residual = p->array[zero_block_layer(p->unit, i)->with],
                     .in = out,
                     .out = out};
    if (!zero_block_has_parts(p->unit)) {
        zero_linear_branch(&l, p->array[zero_block_layer(p->unit, i - 1)->in], &b);
        return;
    }
    b.in = take_joined(p, out);
    c->backend->add_branch(c->math, &b);
}

void zero_block_forward(const zero_unit *u, const zero_call *c)
{
    const pass p = begin(u, c);
    /* Recomputed: the last product gives nothing that is saved. */
    const int end = c->out ? p.n_layers : p.n_layers - 2;
    int64_t part = 0;
    for (int i = 0; i < end; i++) {
        if (!zero_block_has_parts(u) || part == c->part) {
            /* Layer i, with the next one where the two are one call. */
            const zero_layer *l = zero_block_layer(p.unit, i);
            const zero_linear product = linear(&p, i);
            const zero_layer_norm n = norm(&p, i);
            void *in = p.array[l->in], *out = p.array[l->out];
            switch (l->kind) {
            case ZERO_NORM: zero_layer_norm_forward(&n, in, out, p.sums[i]); break;
            case ZERO_TURN: {
                const zero_turn t = turn_of(&p, i);
                p.call->backend->turn(p.call->math, &t);
                break;
            }
            case ZERO_ATTEND: attend(&p, i); break;
            case ZERO_GATE: {
                const zero_swiglu g = gate_of(&p, i);
                p.call->backend->swiglu(p.call->math, &g);
                break;
            }
            case ZERO_ADD: add(&p, i); break;
            case ZERO_GELU: break; /* done with the linear layer before */
            case ZERO_LINEAR:
                if (l[1].kind == ZERO_GELU)
                    zero_linear_gelu(&product, zero_unit_has(p.unit, ZERO_HAS_ERF), in, out,
                                     p.array[l[1].out]);
                else if (l[1].kind != ZERO_ADD)
                    zero_linear_forward(&product, in, out);
                else if (zero_block_has_parts(
                             p.unit)) /* else it is made where the branch ends */
                    zero_linear_product(&product, in, p.join_type, p.joint);
                break;
            }
        }
        part += zero_block_sum_is_cut(u, i);
    }
}

/* ---- backward ---- */

/* The gradient of the sum that layer i, an ADD, ends with: the stream, unless that has the
 * gradient of a branch beside this one already. */
static const void *gradient_of_sum(const pass *p, int i)
{
    return p->kept && zero_block_layer(p->unit, i)->with == ZERO_BLOCK_IN ? p->kept
                                                                          : p->call->stream;
}

/* The gradient of layer i's output. At a branch's end that is the sum's, or its masked
 * copy. */
static const void *gradient_of(const pass *p, int i)
{
    const zero_unit *u = p->unit;
    if (zero_block_layer(u, i + 1)->kind == ZERO_ADD)
        return mask(p, i + 1).p > 0.0f ? p->masked : gradient_of_sum(p, i + 1);
    return zero_block_layer(u, i)->kind == ZERO_ATTEND ? p->attended : p->wide;
}

/* The sum over n slices of the heads from `first` on, in the first one's place: a complete
 * subtree or the whole tree. */
static void sum_gains(const pass *p, int first, int n)
{
    const zero_call *c = p->call;
    const int64_t len = 2 * zero_shape_of(p->unit)->head_size;
    float *sum = p->gains + first * len;
    if (n == 1) return;
    const int left = (int)zero_tree_left(n);
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
    if (zero_block_norms_heads(u, i) && !zero_block_has_parts(u))
        t.sums =
            zero_weight_grad(u, c, 0, zero_block_place(u, zero_block_layer(u, i)->tensor));
    c->backend->turn_backward(c->math, &t);
    if (!t.sums || !zero_block_has_parts(u)) return;
    float *joint = (float *)p->joint + p->n;
    sum_gains(p, 0, t.slices);
    c->backend->round(c->math, ZERO_FP32, len, p->gains, joint);
    c->backend->clear(c->math, zero_block_joined_gains(u, i - 1) - len, joint + len);
}

static void take_gains(const pass *p, int i)
{
    const zero_unit *u = p->unit;
    const zero_call *c = p->call;
    const int64_t len = 2 * zero_shape_of(u)->head_size;
    const float *sum = (const float *)p->joined + p->n;
    float *gradient =
        zero_weight_grad(u, c, 0, zero_block_place(u, zero_block_layer(u, i)->tensor));
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
    const zero_layer *l = zero_block_layer(u, i);
    const zero_linear product = linear(p, i);
    const zero_layer_norm n = norm(p, i);
    const zero_dropout d = mask(p, i);
    switch (l->kind) {
    case ZERO_ADD:
        if (d.p > 0.0f)
            c->backend->dropout(c->math, &d, u->activations, c->batch->B,
                                p->n / c->batch->B, gradient_of_sum(p, i), p->masked);
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
        if (zero_block_has_parts(u) && zero_block_joined_gains(u, i + 1) > 0)
            take_gains(p, i + 2);
        if (zero_block_is_beside(u, i)) /* a copy: nothing is dropped */
            c->backend->dropout(c->math, &(zero_dropout){.p = 0.0f}, u->activations, 1,
                                p->n, c->stream, p->kept);
        zero_layer_norm_backward(&n, p->array[l->in], p->sums[i], take_joined(p, p->masked),
                                 c->stream);
        break;
    case ZERO_LINEAR:
        if (zero_block_output_is_cut(u, i))
            zero_linear_input_gradient(&product, gradient_of(p, i), p->join_type, p->joint,
                                       0);
        else if (l[-1].kind == ZERO_GELU) {
            const zero_linear before = linear(p, i - 2);
            zero_linear_gelu_backward(&product, zero_unit_has(u, ZERO_HAS_ERF),
                                      gradient_of(p, i), &before, p->array[l[-1].in],
                                      p->wide);
        } else
            zero_linear_input_gradient(&product, gradient_of(p, i), u->activations,
                                       l[-1].kind == ZERO_ATTEND ? p->attended : p->wide,
                                       l[-1].kind == ZERO_GATE ? 2 * p->width[l->in] : 0);
        break;
    }
}

static void back_weights(const pass *p, int i)
{
    const zero_layer *l = zero_block_layer(p->unit, i);
    const zero_linear product = linear(p, i);
    if (l->kind != ZERO_LINEAR) return;
    if (l[1].kind == ZERO_GELU) /* which has summed the bias' gradient */
        zero_linear_weight_gradient(&product, p->array[l->in], gradient_of(p, i));
    else
        zero_linear_parameter_gradients(&product, p->array[l->in], gradient_of(p, i));
}

void zero_block_backward(const zero_unit *u, const zero_call *c)
{
    pass p = begin(u, c);
    float *work = c->work;
    p.wide = cut(u, p.rows * zero_block_widest(u), &work);
    p.attended = cut(u, p.rows * zero_block_attended(u), &work);
    if (!zero_block_has_parts(u)) p.joined = p.joint = cut(u, p.n, &work);
    if (zero_block_attended(u) == 0) p.attended = p.joint;
    if (zero_block_kept(u) > 0) p.kept = cut(u, p.n, &work);
    p.masked = cut(u, p.n, &work);
    p.gains = work;
    p.attending = work + zero_block_gain_room(u);
    int64_t part = 0;
    for (int i = p.n_layers - 1, due = i; i >= 0; i--) {
        if (!zero_block_has_parts(u) || part == c->part) back(&p, i);
        if (!zero_block_output_is_cut(u, i)) continue;
        for (int k = i; k <= due; k++) /* those that were due last come first */
            if (!zero_block_has_parts(u) || part + 1 == c->part) back_weights(&p, k);
        due = i - 1;
        part += 2;
    }
}
