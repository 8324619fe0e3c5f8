/* type.h - the three types of parameters and gradients.
 *
 *     fp32  1 sign   8 exponent   23 mantissa bits
 *     bf16  1        8             7              the upper half of an fp32
 *     fp16  1        5            10              largest number 65504
 *
 * A 16-bit number is a uint16_t in memory. Rounding is to nearest, ties to even, with the
 * same bits on every CPU; rounding to bf16 flushes fp32 denormals to zero and keeps their
 * sign. Nothing here is collective or fails. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "zero/api.h"

ZERO_API_BEGIN

typedef enum { ZERO_FP32, ZERO_BF16, ZERO_FP16 } zero_type;

size_t zero_type_size(zero_type type);      /* bytes of one number; 0: no zero_type */
const char *zero_type_name(zero_type type); /* "fp32", "bf16", "fp16", or "unknown" */

/* out[n] = in[n], converted. Equal types copy the bits; bf16 and fp16 convert through fp32.
 * `out` may be `in` if the sizes are equal; otherwise they must not overlap.
 * Does nothing for n <= 0, for NULL and for what is not a zero_type. */
void zero_convert(zero_type from, zero_type to, int64_t n, const void *in, void *out);

ZERO_API_END
