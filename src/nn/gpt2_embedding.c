/* gpt2_embedding.c - the first unit: tokens and positions look up their rows. */
#include "nn/gpt2.h"
#include "zero/layers.h"

#include <string.h>

static zero_unit_sizes sizes(const zero_unit *u, int64_t B, int64_t T)
{
    int64_t n = B * T * zero_gpt2_shape_of(u)->hidden;
    return (zero_unit_sizes){.out = n, .flops = (double)n}; /* one addition each */
}

static void forward(const zero_unit *u, const zero_call *c)
{
    const zero_batch *b = c->batch;
    int64_t C = zero_gpt2_shape_of(u)->hidden;
    zero_dropout d = zero_gpt2_mask(u, c, 0);
    c->backend->embedding(c->math, &(zero_embedding){.B = b->B,
                                                     .T = b->T,
                                                     .C = C,
                                                     .tokens = b->inputs,
                                                     .type = c->type,
                                                     .wte = zero_weight(u, c, 0, ZERO_WTE),
                                                     .wpe = zero_weight(u, c, 0, ZERO_WPE),
                                                     .out = c->out});
    if (d.p > 0.0f) c->backend->dropout(c->math, &d, b->B, b->T * C, c->out, c->out);
}

static void backward(const zero_unit *u, const zero_call *c)
{
    const zero_batch *b = c->batch;
    const zero_gpt2_shape *s = zero_gpt2_shape_of(u);
    int64_t C = s->hidden;
    zero_dropout d = zero_gpt2_mask(u, c, 0);
    if (!c->accumulate[0]) c->backend->clear(c->math, (s->vocab + s->seq) * C, c->grad[0]);
    if (d.p > 0.0f) c->backend->dropout(c->math, &d, b->B, b->T * C, c->stream, c->stream);
    c->backend->embedding_backward(
        c->math, &(zero_embedding_grad){.B = b->B,
                                        .T = b->T,
                                        .C = C,
                                        .tokens = b->inputs,
                                        .dout = c->stream,
                                        .dwte = zero_weight_grad(u, c, 0, ZERO_WTE),
                                        .dwpe = zero_weight_grad(u, c, 0, ZERO_WPE)});
}

void zero_gpt2_embedding_unit(zero_unit *unit)
{
    memcpy(unit->name, "embedding", sizeof "embedding");
    unit->sizes = sizes;
    unit->forward = forward;
    unit->backward = backward;
    unit->computes_by_layers = true;
    unit->backward_without_params = true;
}
