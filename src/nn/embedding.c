/* embedding.c - the first unit: tokens, and positions where they have a table, look up
 * their rows.
 *
 * A shared model deals the words to the ranks: each looks up its own words and gives zeros
 * for the others, so the sum is the whole look-up. */
#include "nn/shape.h"
#include "nn/share.h"
#include "zero/layers.h"

enum { LOOK_UP, TAKE, FORWARD_PARTS };

static zero_unit_sizes sizes(const zero_unit *u, int64_t B, int64_t T)
{
    int64_t n = B * T * zero_shape_of(u)->hidden;
    return (zero_unit_sizes){.out = n, .flops = (double)n}; /* one addition each */
}

static zero_unit_part part(const zero_unit *u, zero_pass pass, int64_t B, int64_t T,
                           int64_t index)
{
    if (pass == ZERO_PASS_BACKWARD) return (zero_unit_part){.is_last = true};
    if (index == TAKE) return (zero_unit_part){.waits = true, .is_last = true};
    return (zero_unit_part){.join = ZERO_JOIN_SUM,
                            .count = B * T * zero_shape_of(u)->hidden};
}

/* The words of this rank's table; 0 if it has all of them. */
static int64_t own_words(const zero_unit *u)
{
    return zero_share_has_parts(&u->share) ? u->tensors[0][ZERO_WTE].rows : 0;
}

static void look_up(const zero_unit *u, const zero_call *c, zero_type type, void *out)
{
    const zero_batch *b = c->batch;
    c->backend->embedding(c->math,
                          &(zero_embedding){.B = b->B,
                                            .T = b->T,
                                            .C = zero_shape_of(u)->hidden,
                                            .first = u->tensors[0][ZERO_WTE].first,
                                            .words = own_words(u),
                                            .past = b->past,
                                            .tokens = b->inputs,
                                            .type = c->type,
                                            .rows_type = type,
                                            .wte = zero_weight(u, c, 0, ZERO_WTE),
                                            .wpe = zero_unit_has(u, ZERO_HAS_POSITIONS)
                                                       ? zero_weight(u, c, 0, ZERO_WPE)
                                                       : NULL,
                                            .out = out});
}

/* out = x * mask; x may be out */
static void drop(const zero_unit *u, const zero_call *c, const float *x)
{
    const zero_batch *b = c->batch;
    int64_t n = b->T * zero_shape_of(u)->hidden;
    zero_dropout d = zero_unit_mask(u, c, 0);
    if (d.p > 0.0f)
        c->backend->dropout(c->math, &d, u->activations, b->B, n, x, c->out);
    else if (x != c->out)
        c->backend->round(c->math, ZERO_FP32, b->B * n, x, c->out); /* a copy */
}

static void forward(const zero_unit *u, const zero_call *c)
{
    if (!zero_share_has_parts(&u->share)) {
        look_up(u, c, u->activations, c->out);
        drop(u, c, c->out);
        return;
    }
    assert(c->part >= 0 && c->part < FORWARD_PARTS);
    if (c->part == LOOK_UP)
        look_up(u, c, ZERO_FP32, c->joint);
    else {
        /* The sum of the ranks' look-ups is fp32. */
        const float *x = c->joined;
        int64_t n = c->batch->B * c->batch->T * zero_shape_of(u)->hidden;
        if (u->activations != ZERO_FP32) {
            c->backend->round(c->math, u->activations, n, x, c->out);
            x = c->out;
        }
        drop(u, c, x);
    }
}

static void backward(const zero_unit *u, const zero_call *c)
{
    const zero_batch *b = c->batch;
    const zero_tensor *wte = &u->tensors[0][ZERO_WTE], *wpe = &u->tensors[0][ZERO_WPE];
    const bool has_positions = zero_unit_has(u, ZERO_HAS_POSITIONS);
    int64_t C = wte->cols;
    zero_dropout d = zero_unit_mask(u, c, 0);
    if (!c->accumulate[0])
        c->backend->clear(c->math, (wte->rows + (has_positions ? wpe->rows : 0)) * C,
                          c->grad[0]);
    if (d.p > 0.0f)
        c->backend->dropout(c->math, &d, u->activations, b->B, b->T * C, c->stream,
                            c->stream);
    c->backend->embedding_backward(
        c->math, &(zero_embedding_grad){
                     .B = b->B,
                     .T = b->T,
                     .C = C,
                     .first = wte->first,
                     .words = own_words(u),
                     .tokens = b->inputs,
                     .rows_type = u->activations,
                     .dout = c->stream,
                     .dwte = zero_weight_grad(u, c, 0, ZERO_WTE),
                     .dwpe = has_positions ? zero_weight_grad(u, c, 0, ZERO_WPE) : NULL});
}

void zero_embedding_unit(zero_unit *unit)
{
    memcpy(unit->name, "embedding", sizeof "embedding");
    unit->sizes = sizes;
    unit->part = part;
    unit->forward = forward;
    unit->backward = backward;
    unit->computes_by_layers = true;
    unit->continues = true;
    unit->heeds_activations = true;
    unit->backward_without_params = true;
}
