/* reduction.h - the reductions of zero/number.h. The sums and means of fp32, bf16 and fp16
 * follow the tree (tree.h); all others take one term after the other. */
#pragma once

#include "base/fail.h"
#include "base/tree.h"
#include "zero/number.h"

/* ZERO_ERR_INVALID for what is no number or no reduction; ZERO_ERR_UNSUPPORTED, with what is
 * possible, for two that do not go together. */
zero_status zero_reduction_check(zero_reduction reduction, zero_number number);

/* True if it is a sum or a mean along the tree. */
static inline bool zero_reduction_is_tree(zero_reduction reduction, zero_number number)
{
    return reduction <= ZERO_MEAN && number <= ZERO_NUMBER_FP16;
}

/* out[len] = the reduction of data[len] of the terms, all of them numbers of this kind, one
 * after the other. A mean divides by `divisor`. `out` may be one of the inputs. */
void zero_reduce_terms(zero_reduction reduction, zero_number number, int n,
                       const zero_tree_term *terms, int64_t len, int divisor, void *out);
