/* layers.h - what the units are made of: backend calls on a unit's own tensors.
 *
 * `k` is the position of a group in the unit's list and `t` that of a tensor in the group. */
#pragma once

#include "nn/model.h"

static inline const void *zero_weight(const zero_unit *u, const zero_call *c, int k, int t)
{
    size_t before = (size_t)u->tensors[k][t].offset * zero_type_size(c->type);
    return (const char *)c->param[k] + before;
}

static inline float *zero_weight_grad(const zero_unit *u, const zero_call *c, int k, int t)
{
    return c->grad[k] + u->tensors[k][t].offset;
}

/* A linear layer y = x W + b over `rows` rows: W is tensor `weight`, b the one after it. */
typedef struct {
    const zero_unit *unit;
    const zero_call *call;
    int group, weight;
    int64_t rows;
} zero_linear;

/* y[rows,out] = x[rows,in] W + b */
void zero_linear_forward(const zero_linear *l, const float *x, float *y);
/* dW, db from x and dy; dx[rows,in] = dy W^T */
void zero_linear_backward(const zero_linear *l, const float *x, const float *dy, float *dx);

/* A layer norm whose gain is tensor `gain`, its bias the one after it. Its two numbers per
 * row, mean and rstd, lie end to end in `moments[2*rows]`. */
typedef struct {
    const zero_unit *unit;
    const zero_call *call;
    int group, gain;
    int64_t rows;
} zero_norm;

void zero_norm_forward(const zero_norm *n, const float *x, float *y, float *moments);
/* dx += ..., and the gradients of gain and bias. */
void zero_norm_backward(const zero_norm *n, const float *x, const float *moments,
                        const float *dy, float *dx);
