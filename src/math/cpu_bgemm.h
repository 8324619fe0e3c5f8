/* cpu_bgemm.h - products whose factors are rounded to bf16, by the instructions for that.
 *
 * Both operands are packed to *tiles* of 16 lanes (rows of a, columns of b) x 32 of k, 1 KiB
 * each, which is what AMX multiplies and what vdpbf16ps reads in order:
 *
 *     a: [lane][pair][2]    b: [pair][lane][2]    a pair is two neighbours along k
 *
 * Tiles follow each other along k, then come the next 16 lanes. What is missing of a tile is
 * zero; lanes are filled up to whole squares.
 *
 * A kernel multiplies 32 rows with 32 columns, a *square* of c, over the k of the tiles.
 * Rounding is zero_to_bf16's, denormals of fp32 and bf16 count as zero, also in sums. An
 * element's sum starts with c if the product accumulates, else with zero, and runs along k in
 * an order that the kernel alone decides, not m, n or strides: any cut of m or n has the bits
 * of the whole. Kernels differ in bits.
 * Source: Goto & van de Geijn, Anatomy of High-Performance Matrix Multiplication, ACM TOMS
 * 34(3), 2008; Intel Architecture Instruction Set Extensions, TDPBF16PS and VDPBF16PS. */
#pragma once

#include <stdint.h>

#include "math/backend.h"

#define ZERO_TILE_LANES   16
#define ZERO_TILE_DEPTH   32
#define ZERO_TILE_NUMBERS (ZERO_TILE_LANES * ZERO_TILE_DEPTH)
#define ZERO_SQUARE       32 /* rows and columns of c that a kernel computes at a time */

/* One operand as stored. */
typedef struct {
    const void *data;
    zero_type type; /* fp32 or bf16 */
    int64_t stride; /* elements */
    bool along_k;   /* a row of the array runs along k, not along the lanes */
} zero_bgemm_operand;

typedef struct {
    const char *name; /* "AMX-BF16", ... */
    /* Packs lanes x k numbers, from element `data` on, to `out`: lanes rounded up to squares,
     * k to tiles. */
    void (*pack_a)(const zero_bgemm_operand *a, int64_t lanes, int64_t k, uint16_t *out);
    void (*pack_b)(const zero_bgemm_operand *b, int64_t lanes, int64_t k, uint16_t *out);
    /* What begin() sets up for multiply() belongs to the thread until end(). */
    void (*begin)(void);
    void (*end)(void);
    /* c[32,32] = a b, or += ; a and b: two rows of k_tiles tiles each */
    void (*multiply)(int64_t k_tiles, const uint16_t *a, const uint16_t *b, bool add,
                     float *c, int64_t ldc);
} zero_bgemm_kernels;

/* Both kernels pack by these, which need AVX512-BF16. */
void zero_bgemm_pack_a(const zero_bgemm_operand *a, int64_t lanes, int64_t k,
                       uint16_t *out);
void zero_bgemm_pack_b(const zero_bgemm_operand *b, int64_t lanes, int64_t k,
                       uint16_t *out);

#define ZERO_BGEMM_VARIANTS 2 /* at most */

/* Fills `list` with what this build has and this machine can run, and returns how many. May
 * ask the system for the use of AMX, once and for all threads. */
int zero_bgemm_list(const zero_bgemm_kernels *list[ZERO_BGEMM_VARIANTS]);

/* The kernels that are faster than sgemm here; NULL if there are none. */
const zero_bgemm_kernels *zero_bgemm_best(void);

/* The product by math->bf16_products; strides are given, b is not fp16. Polls between blocks,
 * which packed fill no more than zero_math_scratch(ZERO_BF16). */
void zero_cpu_bgemm(const zero_math *math, const zero_gemm *g);
