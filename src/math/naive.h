/* naive.h - the naive backend's operations that are not in naive.c. */
#pragma once

#include "math/backend.h"

/* Element i of a typed array, widened. */
double zero_naive_get(zero_type type, const void *x, int64_t i);
/* x[i] = value, rounded to the type. */
void zero_naive_set(zero_type type, void *x, int64_t i, double value);

ZERO_OPERATION(naive, attention_workspace);
ZERO_OPERATION(naive, attention);
ZERO_OPERATION(naive, attention_backward);

ZERO_OPERATION(naive, remember);
ZERO_OPERATION(naive, recall);

ZERO_OPERATION(naive, turn);
ZERO_OPERATION(naive, turn_backward);

ZERO_OPERATION(naive, softmax_slices);
ZERO_OPERATION(naive, softmax_loss);

ZERO_OPERATION(naive, clear);
ZERO_OPERATION(naive, adamw);
ZERO_OPERATION(naive, sum_squares);
ZERO_OPERATION(naive, exact_squares);
ZERO_OPERATION(naive, round);
ZERO_OPERATION(naive, accumulate);
