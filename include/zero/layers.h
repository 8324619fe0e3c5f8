/* layers.h - building blocks of units: arithmetic on a unit's tensors, of any type.
 *
 * Arrays with one row for each position, x, y and their gradients, are of the type
 * unit->activations: fp32, unless the unit heeds others (zero_unit.heeds_activations).
 *
 * For use inside a unit's calls. `k` counts the unit's groups and `t` the tensors of a
 * group. Arithmetic is fp32: 16-bit parameters are widened as they are read, so a call has
 * the bits of the same call on the widened numbers. Linear layers of bf16 weights are the
 * exception: they may multiply in bf16 (zero/math.h). These functions poll, so collectives
 * progress while they compute.
 *
 * Nothing here is collective or returns a status. Pointers and shapes are those of the
 * unit's call, so they are trusted; a call with NULL computes nothing, and the result that
 * stays undefined is told in the trainer's first step and by zero_unit_check(). */
#pragma once

#include "zero/model.h"
#include "zero/random.h"

ZERO_API_BEGIN

/* Lets collectives progress. A unit's own loops call it about once a millisecond. Cheap. */
void zero_poll(const zero_call *c);

/* A tensor in place in its group, of c->type; and its gradient, fp32. */
static inline const void *zero_weight(const zero_unit *u, const zero_call *c, int k, int t)
{
    size_t before = (size_t)u->tensors[k][t].offset * zero_type_size(c->type);
    return (const char *)c->param[k] + before;
}

static inline float *zero_weight_grad(const zero_unit *u, const zero_call *c, int k, int t)
{
    return c->grad[k] + u->tensors[k][t].offset;
}

/* A tensor as floats: in place if it is fp32, else widened into room[rows*cols], a part of
 * the work memory that the unit's sizes() asked for. */
const float *zero_weight_floats(const zero_unit *u, const zero_call *c, int k, int t,
                                float *room);

/* A product; see zero/math.h. */
void zero_multiply(const zero_call *c, const zero_gemm *g);

/* A linear layer y = x W + b over `rows` rows. W is tensor `weight`, or `stacked` tensors
 * that lie end to end, whose outputs lie side by side: stored [in, out], or, where
 * tensor.out_in says so, [out, in]; several only so. b is tensor `bias`: 0 is the tensor
 * after W, -1 no bias. A bias of 16 bits has at most 2^19 elements. */
typedef struct {
    const zero_unit *unit;
    const zero_call *call;
    int group, weight;
    int64_t rows;
    int stacked; /* at most ZERO_GEMM_PARTS; 0 counts as 1 */
    int bias;
} zero_linear;

/* y[rows,out] = x[rows,in] W + b */
void zero_linear_forward(const zero_linear *l, const void *x, void *y);
/* dW and db from x and dy, added if the call accumulates. dx[rows,in] = dy W^T, unless dx
 * is NULL. */
void zero_linear_backward(const zero_linear *l, const void *x, const void *dy, void *dx);

/* A dropout mask of the unit's own. It depends on these members, the step and the global
 * sample, never on ranks, stages or restarts: forward, backward and a repeated forward call
 * have the same one. */
typedef struct {
    const zero_call *call;
    int64_t seed;   /* of the model's masks */
    int64_t number; /* tells the masks of a model apart */
    float p;        /* the share that is dropped: 0 <= p < 1 */
    zero_type type; /* of x and y */
} zero_mask;

/* y[B,n] = x[B,n] times the mask, whose elements are 0 or 1/(1 - p), for the call's B
 * samples; y may be x. A copy if the call is not `training`. The backward call does the
 * same to gradients. */
void zero_mask_apply(const zero_mask *m, int64_t n, const void *x, void *y);

/* A layer norm. Its gain is tensor `gain`, its bias the tensor after it. moments[2*rows]
 * holds the means of all rows, then their rstd. `is_rms`: a root mean square norm, which
 * has no bias and subtracts no mean (Zhang & Sennrich, arXiv:1910.07467); then
 * moments[rows] holds rstd. */
typedef struct {
    const zero_unit *unit;
    const zero_call *call;
    int group, gain;
    int64_t rows;
    bool is_rms;
    float eps; /* added to the variance; 0 counts as 1e-5 */
} zero_layer_norm;

void zero_layer_norm_forward(const zero_layer_norm *n, const void *x, void *y,
                             float *moments);
/* dx += ..., and the gradients of gain and bias. */
void zero_layer_norm_backward(const zero_layer_norm *n, const void *x, const float *moments,
                              const void *dy, void *dx);

ZERO_API_END
