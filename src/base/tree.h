/* tree.h - the one order in which numbers are added.
 *
 * Gradients over ranks and losses over microbatches follow one fixed binary tree over the
 * index, whatever the order of arrival: a tree over n leaves splits at the largest power of
 * two below n, so the leaves of 2^k neighbours that start at a multiple of 2^k always form
 * one subtree.
 *
 *     n = 7:   ((x0 + x1) + (x2 + x3)) + ((x4 + x5) + x6)
 *
 * Sums of squares follow the complete tree over blocks of 64 elements (the granule of a
 * shard), so they do not depend on where a flat space is cut. Nothing here allocates. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/half.h"

#define ZERO_TREE_BLOCK 64

/* The size of the left subtree: the largest power of two below n. n >= 2. */
int64_t zero_tree_left(int64_t n);

/* A subtree's sum, or a leaf: what the leaves first .. first + count - 1 come to. */
typedef struct {
    const void *data; /* aligned to its elements */
    zero_type type;
    int first, count;
} zero_tree_term;

/* out[i] = the sum over the tree of all leaves that the terms cover, in fp32, rounded to
 * `type` once, i < len. The terms stand in order and adjoin; each covers a complete subtree
 * of the tree over [terms[0].first, end). `out` may be one of the inputs if its type is the
 * same; nothing else overlaps. 1 <= n <= 2^20.
 *
 * stream: `out` will not be read soon by this core, and is stored past the caches; a release
 * store that follows publishes it as ever. The bits depend on neither alignment, len, stream
 * nor CPU; which NaN a NaN is may. */
void zero_tree_sum(int n, const zero_tree_term *terms, int64_t len, zero_type type,
                   void *out, bool stream);

#define ZERO_TREE_COVER_MAX 64

/* The maximal complete subtrees of the tree over `size` leaves that tile the leaves first ..
 * first + count - 1: sets first and count of at most ZERO_TREE_COVER_MAX terms, in order,
 * and returns how many. 0 <= first, 0 <= count, first + count <= size. */
int zero_tree_cover(int size, int first, int count, zero_tree_term *terms);

/* The tree sum of x[0] .. x[n-1]. n >= 1. */
double zero_tree_sum_scalars(int64_t n, const double *x);

/* The tree sum of the squares of x[0] .. x[n-1], in double. n >= 0. */
double zero_tree_sum_squares(int64_t n, const float *x);
