/* cpu_slices.h - products whose sum over k is a tree over slices (zero_gemm.slices),
 * packed.
 *
 * A group is a subtree of slices that is packed at one time: all that a tile needs of them
 * lies in cache, so the tree over a group's slices is added tile by tile, and only its sum
 * goes to c.
 *
 *     c = ((s0 + s1) + (s2 + s3)) + ((s4 + s5) + (s6 + s7))        groups of 2, of which the third
 *         ---------    +           ---------      +                waits in a buffer for
 *                                                 the fourth
 *             c                      buffer
 *
 * A group that ends a subtree whose left half lies in its array is added there. Others go
 * to a buffer of their own first: a block of c, in the scratch. A slice too long to be
 * packed at one time is summed block by block of k in its array, as a whole product is.
 *
 * If a right subtree is one group, the left one may be finished first, in all rows of c:
 * with other groups and longer blocks.
 *
 * A c of 16 bits is summed in one buffer more, and rounded when all slices are.
 *
 * How slices are grouped changes no bits. Where a kernel adds its sum to c (adds_sums), a
 * slice of one block of k is added to its left neighbour so, without a pass. */
#pragma once

#include "math/cpu_packed.h"

#define ZERO_SLICES_LINE 64 /* bytes: packed b begins at a multiple of them */

/* How the work is divided: the scratch holds block_m rows of a, a block of b, and the
 * buffers. */
typedef struct {
    int group;           /* slices; 0: one, block by block of k */
    int buffers;         /* each [block_m, width] */
    int64_t slice, step; /* numbers along k: of a slice, of a block of it */
    int64_t packed; /* of a group, or of a block: with whole tiles; 0: there is no plan */
    int64_t block_m, block_n;
    int64_t width; /* columns of c that are finished before the next: a is packed again */
    double cost;   /* of packing and adding; infinite if there is no plan */
} zero_slices_plan;

/* The cheapest way to the sum over the first `count` slices of g. Returns 0: by this plan.
 * Or how many are summed before, as if they were all; the plan adds the others, as one
 * group. */
int zero_slices_split(const zero_packed_kernels *kernels, const zero_gemm *g, int count,
                      zero_slices_plan *plan);

/* A product with slices > 1 that is not empty, by these kernels; strides are given. Polls
 * as zero_cpu_packed_gemm() does. */
void zero_cpu_packed_slices(const zero_math *math, const zero_packed_kernels *kernels,
                            const zero_gemm *g);
