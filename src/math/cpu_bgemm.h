/* cpu_bgemm.h - shared by the kernels for products in bf16: panels of 32 lanes, in AMX
 * tiles.
 *
 * An AMX tile is 16 lanes x 32 of k, 1 KiB: what AMX loads into one register, and what
 * vdpbf16ps reads in order:
 *
 *     a: [lane][pair][2]    b: [pair][lane][2]    a pair is two neighbours along k
 *
 * AMX tiles follow each other along k, then come the next 16 lanes. A tile of c is 32 x 32.
 * Rounding is zero_to_bf16's; denormals of fp32 and bf16 count as zero, also in sums.
 * Source: Intel Architecture Instruction Set Extensions, TDPBF16PS and VDPBF16PS. */
#pragma once

#include "math/cpu_packed.h"

#define ZERO_AMX_LANES   16
#define ZERO_AMX_DEPTH   32
#define ZERO_AMX_NUMBERS (ZERO_AMX_LANES * ZERO_AMX_DEPTH)
#define ZERO_BGEMM_TILE  32 /* rows, and columns */

/* Both kernels pack by these, which need AVX512-BF16. */
void zero_bgemm_pack_a(const zero_operand *a, int64_t lanes, int64_t k, void *out);
void zero_bgemm_pack_b(const zero_operand *b, int64_t lanes, int64_t k, void *out);

/* c += x, a tile. */
void zero_bgemm_add(const float *x, float *c, int64_t ldc);

/* Blocks differ. AMX, whose CPUs have 2 MiB of L2: 768 KiB of a and 1248 KiB of b.
 * AVX512-BF16, where it has 1 MiB (Zen 4, Zen 5): 640 KiB of b, with which all of a's
 * panels meet in turn; k of 1024 tokens is one block, so gradients of weights are written
 * once. */
#define ZERO_BGEMM_FORM \
    .type = ZERO_BF16, .rows = ZERO_BGEMM_TILE, .cols = ZERO_BGEMM_TILE, \
    .depth = ZERO_AMX_DEPTH, .pack_a = zero_bgemm_pack_a, .pack_b = zero_bgemm_pack_b, \
    .add = zero_bgemm_add
