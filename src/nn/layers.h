/* layers.h - the products of a linear layer without its bias, for units that fuse the bias and
 * its gradient with the next operation: one pass over the activations less. */
#pragma once

#include "zero/layers.h"

/* y[rows,out] = x[rows,in] W */
void zero_linear_product(const zero_linear *l, const float *x, float *y);
/* dW from x and dy, added if the call accumulates; dx = dy W^T unless dx is NULL */
void zero_linear_product_backward(const zero_linear *l, const float *x, const float *dy,
                                  float *dx);

/* The layer's bias, and its gradient. */
const void *zero_linear_bias(const zero_linear *l);
float *zero_linear_bias_grad(const zero_linear *l);
