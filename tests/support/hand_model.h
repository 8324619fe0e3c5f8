/* hand_model.h - models of any shape that compute next to nothing.
 *
 * Groups of any length, units that read one group or two, groups that several units read,
 * activations and workspaces of any size or none. Every array that a unit is given is used
 * from its first element to its last, and what is written depends on all that is read. */
#pragma once

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "nn/model.h"

typedef struct {
    zero_unit_sizes per_token; /* out, saved, ... of one position */
    int64_t in;                /* of one position, from the unit before */
    int64_t vocab;
    int64_t n_params[ZERO_UNIT_GROUPS];
    bool is_last;
} hand_unit;

static inline zero_unit_sizes hand_sizes(const zero_unit *unit, int64_t B, int64_t T)
{
    const hand_unit *h = unit->shape;
    zero_unit_sizes s = h->per_token;
    s.out *= B * T;
    s.saved *= B * T;
    s.forward_work *= B * T;
    s.backward_work *= B * T;
    s.logits = h->is_last ? B * h->vocab : 0;
    s.row_loss = h->is_last ? B * T : 0;
    return s;
}

static inline void hand_fill(float *x, int64_t n, float value)
{
    for (int64_t i = 0; x && i < n; i++) x[i] = value;
}

/* A number from 0 to 1 that depends on x[n], NULL: on nothing. */
static inline double hand_mix(double value, const float *x, int64_t n)
{
    for (int64_t i = 0; x && i < n; i++) value += (double)(1 + i % 7) * (double)x[i];
    return value - floor(value);
}

/* All that a pass reads: parameters, tokens, the number of the sample, and the unit before. */
static inline double hand_read(const zero_unit *unit, const zero_call *call)
{
    const hand_unit *h = unit->shape;
    const zero_batch *b = call->batch;
    unsigned sum = (unsigned)(b->step + 3 * b->first_sample);
    for (int k = 0; k < unit->n_groups; k++) {
        const unsigned char *param = call->param[k];
        int64_t bytes = h->n_params[k] * (int64_t)zero_type_size(call->type);
        for (int64_t i = 0; param && i < bytes; i++) sum = 31 * sum + param[i];
    }
    for (int64_t i = 0; unit->index == 0 && i < b->B * b->T; i++)
        sum = 31 * sum + (unsigned)((const int32_t *)b->inputs)[i];
    return hand_mix((double)(sum % 1000) / 1000.0, call->in, b->B * b->T * h->in);
}

static inline void hand_forward(const zero_unit *unit, const zero_call *call)
{
    const zero_batch *b = call->batch;
    zero_unit_sizes s = hand_sizes(unit, b->B, b->T);
    float value = (float)hand_read(unit, call);
    hand_fill(call->out, s.out, value);
    hand_fill(call->saved, s.saved, value);
    hand_fill(call->work, s.forward_work, value);
    hand_fill(call->logits, s.logits, value);
    hand_fill(call->row_loss, s.row_loss, value);
}

static inline void hand_backward(const zero_unit *unit, const zero_call *call)
{
    const hand_unit *h = unit->shape;
    const zero_batch *b = call->batch;
    zero_unit_sizes s = hand_sizes(unit, b->B, b->T);
    double read = hand_mix(hand_read(unit, call), call->saved, s.saved);
    if (!h->is_last) read = hand_mix(read, call->stream, s.out);
    float value = (float)read;
    hand_fill(call->stream, b->B * b->T * h->in, value);
    hand_fill(call->work, s.backward_work, value);
    hand_fill(call->logits, s.logits, value);
    hand_fill(call->row_loss, s.row_loss, value);
    for (int k = 0; k < unit->n_groups; k++)
        for (int64_t i = 0; i < h->n_params[k]; i++)
            call->grad[k][i] = (call->accumulate[k] ? call->grad[k][i] : 0.0f) +
                               b->loss_seed * value * (float)(i % 5 - 2);
}

/* The next number of the stream, 0 <= number < n. */
static inline int64_t hand_draw(const zero_rng *rng, uint64_t *next, int64_t n)
{
    return (int64_t)(zero_rng_bits(rng, (*next)++) % (uint64_t)n);
}

static inline void hand_add_group(zero_model *m, int64_t n_params)
{
    int g = m->n_groups++;
    m->groups[g] = (zero_group){.first_tensor = g, .n_tensors = 1, .n_params = n_params};
    m->tensors[g] = (zero_tensor){.rows = 1,
                                  .cols = n_params,
                                  .group = g,
                                  .init = ZERO_INIT_NORMAL,
                                  .init_std = 1.0f};
    snprintf(m->groups[g].name, sizeof m->groups[g].name, "group %d", g);
    snprintf(m->tensors[g].name, sizeof m->tensors[g].name, "tensor %d", g);
    m->n_tensors++;
    m->n_params += n_params;
}

static inline void hand_read_group(zero_model *m, zero_unit *unit, hand_unit *h, int g)
{
    h->n_params[unit->n_groups] = m->groups[g].n_params;
    unit->tensors[unit->n_groups] = &m->tensors[g];
    unit->groups[unit->n_groups++] = g;
}

/* A new group, and maybe one of the earlier ones. */
static inline void hand_add_unit(zero_model *m, const zero_rng *rng, uint64_t *next)
{
    int u = m->n_units++;
    zero_unit *unit = &m->units[u];
    hand_unit *h = (hand_unit *)m->shape + u;
    h->per_token = (zero_unit_sizes){.out = hand_draw(rng, next, 6),
                                     .saved = hand_draw(rng, next, 20),
                                     .forward_work = hand_draw(rng, next, 8),
                                     .backward_work = hand_draw(rng, next, 8)};
    h->in = u > 0 ? h[-1].per_token.out : 0;
    h->vocab = m->vocab;
    *unit = (zero_unit){.index = u,
                        .shape = h,
                        .backward_without_params = hand_draw(rng, next, 3) == 0,
                        .recompute_without_out = hand_draw(rng, next, 2) == 0,
                        .sizes = hand_sizes,
                        .forward = hand_forward,
                        .backward = hand_backward};
    snprintf(unit->name, sizeof unit->name, "unit %d", u);
    hand_read_group(m, unit, h, u);
    if (u > 0 && hand_draw(rng, next, 2) == 0)
        hand_read_group(m, unit, h, (int)hand_draw(rng, next, u));
}

/* A random model of at most 5 units, whose groups have at most `most` elements; released as all models
 * are. */
static inline void hand_model(const zero_rng *rng, uint64_t *next, int64_t most,
                              zero_model *m)
{
    enum { MOST = 5 };
    int n = 1 + (int)hand_draw(rng, next, MOST);
    *m = (zero_model){.share = {.ranks = 1, .slices = 1},
                      .vocab = 1 + hand_draw(rng, next, 20),
                      .seq = 1 + hand_draw(rng, next, 9),
                      .input_bytes = sizeof(int32_t),
                      .target_bytes = (size_t)(1 + hand_draw(rng, next, 9)),
                      .tensors = calloc(MOST, sizeof *m->tensors),
                      .groups = calloc(MOST, sizeof *m->groups),
                      .units = calloc(MOST, sizeof *m->units),
                      .shape = calloc(MOST, sizeof(hand_unit))};
    if (!m->tensors || !m->groups || !m->units || !m->shape) abort();
    for (int g = 0; g < n; g++)
        hand_add_group(m, 1 + hand_draw(rng, next, g % 2 == 0 ? 100 : most));
    for (int u = 0; u < n; u++) hand_add_unit(m, rng, next);
    ((hand_unit *)m->shape)[n - 1].is_last = true;
}
