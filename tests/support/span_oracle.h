/* span_oracle.h - spans of values whose sum has other bits in any other order of summation. */
#pragma once

#include "base/tree.h"
#include "support/tree_oracle.h"

/* Summand i. */
static inline float span_value(int64_t i)
{
    return oracle_leaf(ZERO_FP32, 5, 0, i);
}

/* Blocks first .. end-1 of x[n]. */
static inline zero_tree_span span_of(int64_t n, const float *x, int64_t first, int64_t end)
{
    zero_tree_span span = {.blocks = zero_tree_blocks(n), .first = first};
    for (int64_t size, at = first; at < end; at += size) {
        size = zero_tree_span_next(at, end - at);
        int64_t from = at * ZERO_TREE_BLOCK, to = from + size * ZERO_TREE_BLOCK;
        zero_tree_span_append(
            &span, size,
            zero_tree_sum_squares(ZERO_FP32, (to < n ? to : n) - from, x + from));
    }
    return span;
}
