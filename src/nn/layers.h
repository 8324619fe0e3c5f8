/* layers.h - the products of a linear layer one by one: for units that fuse its bias and
 * the bias' gradient with the next operation, one pass over the activations less; and that
 * compute the gradient of the input first, for which other ranks wait.
 *
 * In a shared model x and y have the rank's columns if W is cut there. A sum over a
 * dimension that is cut is this rank's part of it. */
#pragma once

#include "math/backend.h"
#include "zero/layers.h"

/* While texts are generated: products of so few rows read weights as they are
 * (zero_gemm.few_rows), and so do all of tokens, so that a text does not depend on those
 * beside it. */
#define ZERO_FEW_ROWS 8
bool zero_call_has_few_rows(const zero_call *c, int64_t rows);

/* y[rows,out] = x[rows,in] W; y is of the type of activations, or fp32 where ranks add it
 * up. */
void zero_linear_product(const zero_linear *l, const void *x, zero_type y_type, void *y);
/* dx = dy W^T; dx likewise, with rows `stride` elements apart; 0: dense. */
void zero_linear_input_gradient(const zero_linear *l, const void *dy, zero_type dx_type,
                                void *dx, int64_t stride);
/* dW from x and dy, added if the call accumulates; and with it db from dy. */
void zero_linear_weight_gradient(const zero_linear *l, const void *x, const void *dy);
void zero_linear_parameter_gradients(const zero_linear *l, const void *x, const void *dy);

/* before = x W + b, after = gelu(before), the exact one or its approximation; in one pass
 * where the backend has one, as in zero_linear_forward(). */
void zero_linear_gelu(const zero_linear *l, bool is_exact, const void *x, void *before,
                      void *after);
/* out = residual + drop(x W + b); the branch's `in` is its `out`. */
void zero_linear_branch(const zero_linear *l, const void *x, const zero_branch *b);
/* Back through the layer l after it, for which `before` and its layer fc were: d = (dy W^T)
 * gelu'(before), and the gradient of fc's bias from d. */
void zero_linear_gelu_backward(const zero_linear *l, bool is_exact, const void *dy,
                               const zero_linear *fc, const void *before, void *d);

/* The layer's bias; NULL: it has none. */
const void *zero_linear_bias(const zero_linear *l);

/* Channels of x and of y, as this rank has them. */
int64_t zero_linear_inputs(const zero_linear *l);
int64_t zero_linear_outputs(const zero_linear *l);
