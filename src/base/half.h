/* half.h - single numbers of 16 bits; zero/type.h has the types, and converts arrays.
 *
 * Every CPU gives the same bits: these functions define the conversion, and the vector
 * instructions agree with them (vcvtneps2bf16 of AVX512-BF16, vcvtps2ph of F16C). Rounding
 * is to nearest, ties to even; too large numbers become infinity; a NaN stays a NaN, quiet,
 * with its sign and the upper bits of its payload.
 *   - To bf16, fp32 denormals become zero of their sign: the instruction can do nothing
 *     else.
 *   - To fp16, denormals are kept. From bf16 every value is exact; its lower half is
 * zero. */
#pragma once

#include "zero/type.h"

float zero_from_bf16(uint16_t x);
uint16_t zero_to_bf16(float x);
float zero_from_fp16(uint16_t x);
uint16_t zero_to_fp16(float x);
