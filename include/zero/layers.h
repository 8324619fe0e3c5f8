/* layers.h - what units are made of: arithmetic on a unit's own tensors, of any type.
 *
 * Inside a unit's call; `k` is the position of a group in the unit's list and `t` that of a
 * tensor in the group. All arithmetic is fp32; 16-bit parameters are widened as they are read,
 * so a call has the bits of the same call on the same numbers in fp32. These calls poll: while
 * they compute, collectives go on. Nothing here is collective or fails. */
#pragma once

#include "zero/model.h"

/* Keeps communication going; for a unit's own loops, about once a millisecond. Cheap. */
void zero_poll(const zero_call *c);

/* A tensor as it lies in its group, of c->type; its gradient, fp32. */
static inline const void *zero_weight(const zero_unit *u, const zero_call *c, int k, int t)
{
    size_t before = (size_t)u->tensors[k][t].offset * zero_type_size(c->type);
    return (const char *)c->param[k] + before;
}

static inline float *zero_weight_grad(const zero_unit *u, const zero_call *c, int k, int t)
{
    return c->grad[k] + u->tensors[k][t].offset;
}

/* A tensor as floats: where it lies if it is fp32, else widened to room[rows*cols], which the
 * unit's sizes() asked for as work. */
const float *zero_weight_floats(const zero_unit *u, const zero_call *c, int k, int t,
                                float *room);

/* A product; see zero/math.h. */
void zero_multiply(const zero_call *c, const zero_gemm *g);

/* A linear layer y = x W + b over `rows` rows: W is tensor `weight`, b the one after it, of at
 * most 2^19 elements unless it is fp32. */
typedef struct {
    const zero_unit *unit;
    const zero_call *call;
    int group, weight;
    int64_t rows;
} zero_linear;

/* y[rows,out] = x[rows,in] W + b */
void zero_linear_forward(const zero_linear *l, const float *x, float *y);
/* dW, db from x and dy, added if the call accumulates; dx[rows,in] = dy W^T, unless dx is
 * NULL */
void zero_linear_backward(const zero_linear *l, const float *x, const float *dy, float *dx);

/* A layer norm whose gain is tensor `gain`, its bias the one after it. Its two numbers per
 * row, mean and rstd, lie end to end in `moments[2*rows]`. */
typedef struct {
    const zero_unit *unit;
    const zero_call *call;
    int group, gain;
    int64_t rows;
} zero_layer_norm;

void zero_layer_norm_forward(const zero_layer_norm *n, const float *x, float *y,
                             float *moments);
/* dx += ..., and the gradients of gain and bias. */
void zero_layer_norm_backward(const zero_layer_norm *n, const float *x,
                              const float *moments, const float *dy, float *dx);
