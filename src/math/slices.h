/* slices.h - where the slices of a product's k lie (zero_gemm.slices).
 *
 *     2 parts of 4 slices         0  1  2  3  0  1  2  3     k: 8 pieces
 *     slice 1, end to end            p           p           2 pieces
 *
 * A slice is summed as a product of it alone: its pieces end to end, whatever the length of
 * a piece is. */
#pragma once

#include <assert.h>

#include "base/number.h"
#include "zero/math.h"

/* The numbers along k of a piece: those that one slice has of one part. slices >= 1. */
static inline int64_t zero_slices_piece(const zero_gemm *g)
{
    const int64_t pieces = (int64_t)g->slices * zero_max(g->slice_parts, 1);
    assert(g->k % pieces == 0 && "slices are equal");
    assert(!(g->accumulate && g->slices > 1));
    return g->k / pieces;
}

/* The place in k of number p of a slice. */
static inline int64_t zero_slices_place(const zero_gemm *g, int64_t piece, int slice,
                                        int64_t p)
{
    return p / piece * piece * g->slices + slice * piece + p % piece;
}
