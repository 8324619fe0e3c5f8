/* type.h - the three types that parameters and gradients are kept in.
 *
 *     fp32  1 sign   8 exponent   23 mantissa bits
 *     bf16  1        8             7              fp32 without its lower half
 *     fp16  1        5            10              largest number 65504
 *
 * A 16-bit number is a uint16_t in memory. Rounding is to nearest, ties to even, with the same
 * bits on every CPU; to bf16, fp32 denormals become zero of their sign. Nothing here is
 * collective or fails. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef enum { ZERO_FP32, ZERO_BF16, ZERO_FP16 } zero_type;

size_t zero_type_size(zero_type type);      /* bytes of one number */
const char *zero_type_name(zero_type type); /* "fp32", "bf16", "fp16" */

/* out[n] = in[n] as another type; from == to copies the bits. bf16 and fp16 meet in fp32.
 * `out` may be `in` if their sizes are equal, else they do not overlap. */
void zero_convert(zero_type from, zero_type to, int64_t n, const void *in, void *out);
