/* bench_slices.h - what it costs that a product's sum is a tree over slices. */
#pragma once

#include <stdint.h>

#include "math/backend.h"

/* A product of GPT-2 along a dimension in which tensor parallelism cuts the weight. */
typedef struct {
    int64_t rows, hidden;
    int slices, rounds;
    zero_type type;
} bench_slices;

/* The four cut products in slices beside the same products of one sum, in turns, in the thread's own
 * CPU time; prints a row for each, and for all. The state has kernels and a scratch. Ends the
 * program with exit code 3 if there is no memory. */
void bench_slices_measure(const bench_slices *b, const zero_math *math);
