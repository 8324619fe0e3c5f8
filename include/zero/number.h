/* number.h - the types and reductions of collectives (collective.h). */
#pragma once

#include <stddef.h>

#include "zero/type.h"

ZERO_API_BEGIN

/* The first three are those of zero_type. */
typedef enum {
    ZERO_NUMBER_FP32,
    ZERO_NUMBER_BF16,
    ZERO_NUMBER_FP16,
    ZERO_NUMBER_FP64,
    ZERO_NUMBER_INT8,
    ZERO_NUMBER_UINT8, /* and bytes that only travel */
    ZERO_NUMBER_INT16,
    ZERO_NUMBER_INT32,
    ZERO_NUMBER_INT64
} zero_number;

/*                 fp32 bf16 fp16   fp64   integers
 *     SUM          tree, in fp32   ranks  exact, wraps around
 *     MEAN         tree, in fp32   ranks  -             the sum / N, before the one rounding
 *     PRODUCT      ranks, in fp32  ranks  exact, wraps around
 *     LEAST        exact           exact  exact         of a NaN and a number: the number
 *     GREATEST     exact           exact  exact
 *     AND OR XOR   -               -      exact         of bits
 *
 * tree: along the fixed tree over the ranks, rounded to the type once, so reduce-scatter,
 * all-reduce and reduce give the same bits; ranks: one after the other from rank 0 on, with
 * the same consequence. "-" is ZERO_ERR_UNSUPPORTED. */
typedef enum {
    ZERO_SUM,
    ZERO_MEAN,
    ZERO_PRODUCT,
    ZERO_LEAST,
    ZERO_GREATEST,
    ZERO_AND,
    ZERO_OR,
    ZERO_XOR
} zero_reduction;

size_t zero_number_size(zero_number number);      /* bytes; 0: no zero_number */
const char *zero_number_name(zero_number number); /* "fp64", or "unknown" */

ZERO_API_END
