/* golden.h - the small model whose gradients an independent implementation computed.
 *
 * golden/gpt2.json holds the shape, the hyper-parameters, the tokens of ten steps and, once
 * golden.py has run, the losses and gradient norms; golden/gpt2.f32 holds little-endian
 * floats: the weights, then the gradient of step 1, then the weights after ten steps, each
 * in the order of the model's tensor table. */
#pragma once

#include "nn/shape.h"

enum { GOLDEN_STEPS = 10, GOLDEN_BATCH = 2 };

static const zero_shape golden_shape = {
    .layers = 2, .hidden = 24, .heads = 4, .seq = 12, .vocab = 50};

static const struct {
    double lr, beta1, beta2, eps, weight_decay, clip;
} golden_adamw = {1e-3, 0.9, 0.95, 1e-8, 0.1, 1.0};
