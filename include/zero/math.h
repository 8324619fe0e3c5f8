/* math.h - arithmetic as units see it: a backend, and the matrix product.
 *
 * Units pass both pointers on unchanged; layers.h has the calls. Matrices are row-major;
 * lengths count elements. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "zero/api.h"
#include "zero/type.h"

ZERO_API_BEGIN

typedef struct zero_backend zero_backend; /* the functions that compute */
typedef struct zero_math zero_math;       /* the state that they are given */

/* c[m,n] = op(a) op(b), or c += op(a) op(b) to accumulate; op transposes if asked. c is
 * read only to accumulate, and is fp32 then; else its sums are fp32 and rounded to c_type
 * once. m, n, k and the strides fit 32 bits. Weights are always b.
 *
 * factors: a and b may be rounded to this type for the product, if that is faster on this
 * machine; sums stay fp32. Denormals may then count as zero. fp32: nothing is rounded. CPUs
 * round to bf16 alone.
 *
 * slices > 1: the sum over k is a tree (added in fp32) over slices. k consists of
 * slice_parts parts (0 counts as 1), as long as `part` says, or equal if part[0] is 0; and
 * each part of `slices` equal pieces. Slice i sums piece i of all parts, in their order.
 * Any number of neighbouring slices that is a subtree has the bits that it has in a product
 * of these slices alone; one slice has those with slices = 1. Not together with accumulate.
 *
 * slices >= 1: the bits of an element depend on its factors and k alone, so any cut of m or
 * n has those of the whole. 0: that is not promised, as BLAS has its own rules (bits
 * "fastest"). */
#define ZERO_GEMM_PARTS 4 /* that may have lengths of their own */
typedef struct {
    bool transpose_a, transpose_b, accumulate;
    zero_type factors;
    int64_t m, n, k;
    const void *a, *b;
    void *c;
    zero_type a_type, b_type, c_type;
    int64_t lda, ldb, ldc; /* elements from row to row as stored; 0: dense */
    int slices, slice_parts;
    int64_t part[ZERO_GEMM_PARTS];
    /* m is small: b is read once, as it is, and not rounded. Other bits than without; they
     * depend on an element's factors and k alone, too. Not together with transpose_a or
     * accumulate. A hint: a backend may multiply as always. */
    bool few_rows;
} zero_gemm;

ZERO_API_END
