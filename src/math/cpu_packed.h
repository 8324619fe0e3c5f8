/* cpu_packed.h - products whose factors are packed first: copied, block by block, into the
 * order in which a kernel reads them, rounded or widened to the kernel's type on the way.
 *
 *                           block of b
 *                           +-------+-------+-------+
 *                           |       | panel |       |
 *                           |       | of b  |       |  k      lane   a row of a, a column of b
 *       block of a          |       |       |       |         panel  the lanes of one tile, for
 *       +------------+      +-------+-------+-------+                all k of the block
 *       |            |      |       |       |       |         tile   rows x cols of c, which a
 *       +------------+      +-------+-------+-------+                kernel computes in registers
 *       | panel of a |      |       | tile  |       |  rows   block  whole panels, packed at one
 *       +------------+      +-------+-------+-------+                time: they stay in a cache
 *             k                        cols
 *
 * The kernel decides how the numbers of a panel are ordered. Packing fills the last panel
 * with zero lanes, and the last `depth` of k with zeros.
 *
 * An element's sum runs along k in an order that the kernel alone decides, not m, n or
 * strides: any cut of m or n has the bits of the whole. Kernels differ in bits. Source:
 * Goto & van de Geijn, Anatomy of High-Performance Matrix Multiplication, ACM TOMS
 * 34(3), 2008. */
#pragma once

#include "math/backend.h"

/* One factor as stored. */
typedef struct {
    const void *data;
    zero_type type;
    int64_t stride; /* elements */
    bool along_k;   /* a row of the array runs along k, not along the lanes */
    /* Packs a part of k: whole panels have panel_k of it, and it goes there from panel_at
     * on. Both are multiples of depth. 0: the part is all. */
    int64_t panel_k, panel_at;
} zero_operand;

typedef struct {
    const char *name;   /* "AMX-BF16", "AVX-512", ... */
    zero_type type;     /* of packed numbers: fp32 or bf16 */
    int64_t rows, cols; /* of a tile; lanes of a panel of a, of b */
    int64_t depth;      /* k comes in multiples of it */
    /* At most; multiples of rows, cols, depth. A shorter k allows more rows than
     * block_m. */
    int64_t block_m, block_n, block_k;
    /* multiply() to add gives (the sum of a b) + c, rounded once. If not, the sum runs on
     * from c, and that is another one. */
    bool adds_sums;
    /* Packs lanes x k numbers, from element `data` on, to whole panels. */
    void (*pack_a)(const zero_operand *a, int64_t lanes, int64_t k, void *out);
    void (*pack_b)(const zero_operand *b, int64_t lanes, int64_t k, void *out);
    /* Prepares this thread for multiply(), until end(). */
    void (*begin)(void);
    void (*end)(void);
    /* One tile: c[rows, cols] = a b, or +=, with a panel of each; k is a multiple of depth.
     * c may be written before a and b are read whole. */
    void (*multiply)(int64_t k, const void *a, const void *b, bool add, float *c,
                     int64_t ldc);
    /* The same with part of a panel of b: it was packed for b_k of k, and those from b_from
     * on are used. Both are multiples of depth. In kernels for bf16 only. */
    void (*multiply_part)(int64_t k, const void *a, const void *b, int64_t b_from,
                          int64_t b_k, bool add, float *c, int64_t ldc);
    /* c[rows, cols] += x[rows, cols], dense */
    void (*add)(const float *x, float *c, int64_t ldc);
    /* The multiply-adds of as many tiles of one depth, between registers alone. Returns one
     * of the sums. Between begin and end. */
    float (*in_registers)(int64_t tiles);
} zero_packed_kernels;

#define ZERO_PACKED_TILE 1024 /* elements of a tile, at most */

/* The length of blocks along a dimension of n: whole granules, at most `most`. All are
 * about equal, because a short last one would be slow. */
static inline int64_t zero_block_len(int64_t n, int64_t most, int64_t granule)
{
    int64_t blocks = n > most ? zero_divide_up(n, most) : 1;
    return zero_round_up(zero_divide_up(n, blocks), granule);
}

/* The kernels of this build that this CPU runs, even those slower than sgemm, best first,
 * but without the lowest level if there is another one (it may have to compute fused
 * multiply-adds in several steps): number i, or NULL past the end. May ask the system for
 * the use of AMX, once for all threads. */
const zero_packed_kernels *zero_packed_at(int i);
#define ZERO_PACKED_VARIANTS 5 /* as many, at most */

/* The kernels for products of fp32 if they are faster here than sgemm, else NULL. */
const zero_packed_kernels *zero_packed_fp32(void);

/* The kernels for products of bf16 factors, AMX first: number i, NULL if it does not run
 * here; and the first that does. */
#define ZERO_PACKED_BF16 2
const zero_packed_kernels *zero_packed_bf16_at(int i);
const zero_packed_kernels *zero_packed_bf16(void);

/* The product by these kernels, as one sum along k; strides are given, and no factor is
 * fp16 if they are bf16. Polls between blocks; a packed block of a, one of b, and the sums
 * of a 16-bit c fit zero_math_scratch(). */
void zero_cpu_packed_gemm(const zero_math *math, const zero_packed_kernels *kernels,
                          const zero_gemm *g);
