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

#include <stdint.h>

#define ZERO_TREE_BLOCK 64

/* The size of the left subtree: the largest power of two below n. n >= 2. */
int64_t zero_tree_left(int64_t n);

/* out[i] = the tree sum of in[0][i] .. in[n-1][i], i < len. `out` may be one of the inputs.
 * 1 <= n <= 2^20. */
void zero_tree_sum(int n, const float *const in[], int64_t len, float *out);

/* The tree sum of x[0] .. x[n-1]. n >= 1. */
double zero_tree_sum_scalars(int64_t n, const double *x);

/* The tree sum of the squares of x[0] .. x[n-1], in double. n >= 0. */
double zero_tree_sum_squares(int64_t n, const float *x);
