/* half.h - the three types that parameters and gradients are kept in, and how they convert.
 *
 *     fp32  1 sign   8 exponent   23 mantissa bits
 *     bf16  1        8             7              fp32 without its lower half
 *     fp16  1        5            10              largest number 65504
 *
 * Every CPU gives the same bits: the functions for one number define the conversion, and the
 * vector instructions agree with them (vcvtneps2bf16 of AVX512-BF16, vcvtps2ph of F16C).
 * Rounding is to nearest, ties to even; what is too large becomes infinity; a NaN stays one,
 * quiet, with its sign and the upper bits of its payload.
 *   - To bf16, fp32 denormals become zero of their sign: the instruction can do no other.
 *   - To fp16, denormals are kept; from bf16 every value is exact, its lower half zero. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef enum { ZERO_FP32, ZERO_BF16, ZERO_FP16 } zero_type;

size_t zero_type_size(zero_type type);      /* bytes of one number */
const char *zero_type_name(zero_type type); /* "fp32", "bf16", "fp16" */

float zero_from_bf16(uint16_t x);
uint16_t zero_to_bf16(float x);
float zero_from_fp16(uint16_t x);
uint16_t zero_to_fp16(float x);

/* out[n] = in[n] as another type; from == to copies the bits. bf16 and fp16 meet in fp32.
 * `out` may be `in` if their sizes are equal, else they do not overlap. */
void zero_convert(zero_type from, zero_type to, int64_t n, const void *in, void *out);
