/* slices.h - where the slices of a product's k lie (zero_gemm.slices).
 *
 *     2 parts of 4 slices         0  1  2  3  0 1 2 3     k: 8 pieces
 *     slice 1, end to end            p          p          2 pieces
 *
 * A slice is summed as a product of it alone: its pieces end to end, whatever the length of
 * a piece is. */
#pragma once

#include "base/number.h"
#include "zero/math.h"

/* Holds of any product with slices >= 1. */
static inline void zero_slices_check(const zero_gemm *g)
{
    const int64_t parts = zero_max(g->slice_parts, 1);
    int64_t k = 0;
    for (int64_t i = 0; i < parts && g->part[0] > 0; i++) {
        assert(i < ZERO_GEMM_PARTS && g->part[i] % g->slices == 0 && "slices are equal");
        k += g->part[i];
    }
    assert((g->part[0] > 0 ? k == g->k : g->k % (parts * g->slices) == 0) &&
           "slices are equal");
    assert(!(g->accumulate && g->slices > 1));
    (void)k;
}

/* The place in k of number p of a slice; *run: the numbers that lie together from there
 * on. */
static inline int64_t zero_slices_place(const zero_gemm *g, int64_t slice, int64_t p,
                                        int64_t *run)
{
    const int64_t equal = g->k / zero_max(g->slice_parts, 1);
    int64_t first = 0, part = g->part[0] > 0 ? g->part[0] : equal;
    for (int i = 1; p >= part / g->slices; i++) {
        p -= part / g->slices;
        first += part;
        part = g->part[0] > 0 ? g->part[i] : equal;
    }
    *run = part / g->slices - p;
    return first + slice * (part / g->slices) + p;
}
