/* share.h - the part of a model that a rank of a TP group has, and which elements these
 * are.
 *
 *     whole model   "c_attn" [C, 3C]         one description: names, order, initial values,
 *                                            files
 *     rank 1 of 2   "c_attn" [C, 3C/2]       the same tensors, groups and units, with fewer
 *                                            rows or columns; what a schedule is compiled
 *                                            for
 *
 *     a row of c_attn, cut in three parts     | q0 q1 | k0 k1 | v0 v1 |   whole
 *                                                  | q1 | k1 | v1 |       rank 1's
 *
 * Sums over what is cut are trees over slices (zero_share). Several ranks need complete
 * subtrees, so slices / ranks is a power of two then. Rows are dealt in slices of equal
 * length if their number allows, else of whole granules of 64 rows, else of one row more or
 * less: nothing is padded, so no shape depends on the ranks. Lengths count elements.
 * Nothing here is collective. */
#pragma once

#include "nn/model.h"

/* A rank's part of a whole model, which outlives it. ZERO_ERR_INVALID, with the numbers:
 * ranks do not divide slices, or not by a power of two; a tensor has fewer rows or columns;
 * a unit has no parts, unless there is one slice. ZERO_ERR_NOMEM. */
zero_status zero_model_share(const zero_model *whole, zero_share share, zero_model *part);

#define ZERO_TP_MOST (1 << 12) /* slices, so also ranks of a TP group */

/* True if TP groups of `ranks` may have this many slices: each rank a complete subtree of
 * the sums' tree, and a rank alone any number, such as that of a run on 3 ranks. */
bool zero_share_divides(int ranks, int slices);

/* The first row of slice i, 0 <= i <= slices, of a tensor of `rows` rows. */
int64_t zero_share_row(int64_t rows, int slices, int i);

/* Makes a whole tensor, with whole_rows and whole_cols, the rank's part of it; its offset
 * stays. ZERO_ERR_INVALID, with the numbers, if it is too small, or slices do not divide
 * its columns. */
zero_status zero_share_cut(const zero_share *share, zero_tensor *t);

/* True if parts of passes are computed one by one: sums are cut in slices. */
static inline bool zero_share_has_parts(const zero_share *share)
{
    return share->slices > 1;
}

/* The slices that each rank has. */
static inline int zero_share_slices(const zero_share *share)
{
    return share->slices / share->ranks;
}

/* zero_gemm.slices of a product whose sum is not cut. In a shared model m or n may be: then
 * the bits of an element must not depend on them. */
static inline int zero_share_one_sum(const zero_share *share)
{
    return zero_share_has_parts(share) ? 1 : 0;
}

/* True if all ranks of a TP group have the whole tensor. */
static inline bool zero_tensor_is_replicated(const zero_tensor *t)
{
    return t->cut == ZERO_CUT_NONE;
}

/* Elements local .. local + n - 1 of a rank's tensor are whole .. whole + n - 1 of the
 * whole one. */
typedef struct {
    int64_t local, whole, n;
} zero_stretch;

/* The stretch that begins at a rank's element `at` and ends at `end` at the latest. at <
 * end. */
zero_stretch zero_share_run(const zero_tensor *t, int64_t at, int64_t end);

/* The first one of the rank within elements [at, end) of the whole tensor; n = 0: it has
 * none of them. */
zero_stretch zero_share_run_of_whole(const zero_tensor *t, int64_t at, int64_t end);
