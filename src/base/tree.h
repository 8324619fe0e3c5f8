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
 * shard), so they do not depend on where a flat space is cut: a rank that holds some of the
 * blocks sums the subtrees within them, a span, and adjoining spans can be merged.
 *
 *     7 blocks      0   1   2   3   4   5   6
 *     blocks 1..4       x   x...x   x              terms: x1, x2 + x3, x4
 *     and 5, 6                          x   x      merged: x1, x2 + x3, x4 + x5, x6
 *
 * Nothing here allocates. */
#pragma once

#include <stdbool.h>

#include "zero/type.h"

#define ZERO_TREE_BLOCK 64

/* The size of the left subtree: the largest power of two below n. n >= 2. */
int64_t zero_tree_left(int64_t n);

/* The sum of a subtree, or a leaf: of the leaves first .. first + count - 1. */
typedef struct {
    const void *data; /* aligned to its elements */
    zero_type type;
    int first, count;
} zero_tree_term;

/* out[i] = the sum over the tree of all leaves that the terms cover, in fp32, rounded to
 * `type` once, i < len. The terms are in order and adjoin; each covers a complete subtree
 * of the tree over [terms[0].first, end). `out` may be one of the inputs if its type is the
 * same; nothing else overlaps. 1 <= n <= 2^20.
 *
 * stream: this core will not read `out` soon, so it is stored past the caches; a release
 * store publishes it as usual. The bits depend on neither alignment, len, stream nor CPU;
 * only NaN payloads may. */
void zero_tree_sum(int n, const zero_tree_term *terms, int64_t len, zero_type type,
                   void *out, bool stream);
/* The same sum divided by `divisor` before it is rounded. */
void zero_tree_mean(int n, const zero_tree_term *terms, int64_t len, int divisor,
                    zero_type type, void *out);

#define ZERO_TREE_COVER_MAX 64

/* The maximal complete subtrees of the tree over `size` leaves that tile the leaves first
 * .. first + count - 1: sets first and count of at most ZERO_TREE_COVER_MAX terms, in
 * order, and returns how many. 0 <= first, 0 <= count, first + count <= size. */
int zero_tree_cover(int size, int first, int count, zero_tree_term *terms);

/* The tree sum of x[0] .. x[n-1]. n >= 1. */
double zero_tree_sum_scalars(int64_t n, const double *x);

/* The tree sum of the squares of x[0] .. x[n-1], widened, in double. n >= 0. */
double zero_tree_sum_squares(zero_type type, int64_t n, const void *x);

/* ---- sums shared by ranks ---- */

#define ZERO_TREE_SPAN_BLOCKS ((int64_t)1 << 57) /* at most: 2^63 elements */
#define ZERO_TREE_SPAN_TERMS  112                /* twice the 56 levels below the root */

/* The sum of blocks first .. first + count - 1 of a tree over `blocks`, as the values of
 * the largest complete subtrees within them: 2^k blocks from a multiple of 2^k on. An empty
 * span (count 0) may begin anywhere. A span has no pointers: it may travel as bytes. */
typedef struct {
    int64_t blocks, first, count;
    int n;
    double term[ZERO_TREE_SPAN_TERMS]; /* [n], in the order of blocks */
} zero_tree_span;

/* The blocks of a flat space: 64 elements each, the last perhaps fewer. */
int64_t zero_tree_blocks(int64_t elements);

/* The blocks of the first of these subtrees, for a span over count >= 1 blocks from
 * `first` on. A span is filled subtree by subtree:
 *
 *     zero_tree_span span = {.blocks = blocks, .first = first};
 *     for (int64_t size, at = first; at < end; at += size) {
 *         size = zero_tree_span_next(at, end - at);
 *         zero_tree_span_append(&span, size, the sum of squares of blocks at .. at+size-1);
 *     } */
int64_t zero_tree_span_next(int64_t first, int64_t count);

/* Appends the next `size` blocks to the span, a complete subtree whose value is x. */
void zero_tree_span_append(zero_tree_span *span, int64_t size, double x);

/* Appends `right` to *left, exactly: however spans are merged, the bits are the same.
 * False, and *left as it was, if their trees differ or `right` does not begin where *left
 * ends. */
bool zero_tree_span_merge(zero_tree_span *left, const zero_tree_span *right);

bool zero_tree_span_is_whole(const zero_tree_span *span); /* has all blocks of its tree */

/* The sum of a whole span, to the bit that of zero_tree_sum_squares(). */
double zero_tree_span_sum(const zero_tree_span *span);
