/* vector.h - the loops over mixed types for type.h, tree.h and stream.h, once per
 * instruction set.
 *
 * vector_kernels.c is compiled several times into tables of this type; all give the bits
 * that half.h defines. Data are aligned to their elements only. Outputs may be inputs of
 * the same element size, from the same address on.
 *
 * stream: `out` is aligned to 64 bytes and stored past the caches as far as the CPU can;
 * zero_stream_fence() must follow before another core is told of it. */
#pragma once

#include <stdbool.h>

#include "zero/type.h"

#define ZERO_VECTOR_TILE    1024 /* elements that users of many arrays read at a time */
#define ZERO_VECTOR_PENDING 32
#define ZERO_VECTOR_PAIRS   8
#define ZERO_VECTOR_SQUARES 65536 /* elements at most */
#define ZERO_VECTOR_EXACT   4096  /* likewise */
#define ZERO_VECTOR_WINDOWS 3

/* pending[0] + (pending[1] + (... + (a + b))): the right edge of a tree of sums whose left
 * subtrees are done. It takes one pass, so that new data are read while sums are stored. */
typedef struct {
    zero_type type;    /* of a and b */
    const void *a, *b; /* b may be NULL: there is only a */
    bool read_ahead;   /* prefetch the next tile of a and b, which are in memory */
    int depth;
    const float *pending[ZERO_VECTOR_PENDING]; /* [depth] */
} zero_vector_sum;

/* The number that is the sum over w of count[w] * 2^exponent[w]; |count[w]| <= 2^52. */
typedef struct {
    int64_t count[ZERO_VECTOR_WINDOWS];
    int exponent[ZERO_VECTOR_WINDOWS];
} zero_vector_windows;

/* A stream of dropout's masks: Philox's key, and its counter but for the number of the
 * block. */
typedef struct {
    uint64_t key[2], counter[3];
    uint32_t threshold; /* bits below it drop the element */
    float keep;         /* the mask of the others */
} zero_vector_masks;

typedef struct {
    const char *name; /* "native", "x86-64-v3", ... */
    /* out[n] = the sum, added in fp32 and rounded to `to` */
    void (*sum)(const zero_vector_sum *sum, int64_t n, zero_type to, void *out,
                bool stream);
    /* out[n] = sum + (leaf rounded to `type`); just the rounded leaf if sum is NULL. */
    void (*add_rounded)(zero_type type, int64_t n, const float *sum, const float *leaf,
                        float *out);
    /* The tree sum of n <= ZERO_VECTOR_SQUARES squares, as in tree.h. */
    double (*squares)(zero_type type, int64_t n, const void *x);
    /* *sum = the sum of n <= ZERO_VECTOR_EXACT squares, without rounding. False if numbers
     * are too far apart for the windows, or not finite. exact.h */
    bool (*exact_squares)(zero_type type, int64_t n, const void *x,
                          zero_vector_windows *sum);
    /* Copies lines of 64 bytes, streaming. */
    void (*copy_lines)(int64_t lines, const void *in, void *out);
    /* Bounds of standard normal numbers (rng.c): random bits radii[j] and angles[j] give
     * numbers 2j and 2j + 1, j < pairs, a multiple of ZERO_VECTOR_PAIRS. Where least and
     * most are equal, they are the exact number rounded, and that of any library whose
     * functions are exact to 2^-46. */
    void (*normals)(int64_t pairs, const uint64_t *radii, const uint64_t *angles,
                    float *least, float *most);
    /* out[n] = the masks from block `first` on, of 8 elements each. */
    void (*masks)(const zero_vector_masks *m, uint64_t first, int64_t n, float *out);
} zero_vector_kernels;

/* The best kernels of this build that this CPU runs. */
const zero_vector_kernels *zero_vector_kernels_best(void);

/* All of them, best first: number i, or NULL past the end. */
const zero_vector_kernels *zero_vector_kernels_at(int i);
