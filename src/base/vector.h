/* vector.h - the loops over mixed types under half.h, tree.h and stream.h, once per
 * instruction set.
 *
 * vector_kernels.c is compiled several times into tables of this type; all give the bits that
 * half.h defines. Data are aligned to their elements only. Outputs may be inputs of the same
 * element size, from the same address on.
 *
 * stream: `out` is aligned to 64 bytes and stored past the caches as far as the CPU can;
 * zero_stream_fence() has to follow before anyone is told of it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/half.h"

#define ZERO_VECTOR_TILE    1024 /* elements that users of many arrays read at a time */
#define ZERO_VECTOR_PENDING 32
#define ZERO_VECTOR_SQUARES 65536 /* elements at most */

/* pending[0] + (pending[1] + (... + (a + b))): the right edge of a tree of sums, whose left
 * subtrees are done already. In one go, so that each pass reads new data while it stores. */
typedef struct {
    zero_type type;    /* of a and b */
    const void *a, *b; /* b may be NULL: there is only a */
    bool read_ahead;   /* ask for the next tile's a and b, which are in memory */
    int depth;
    const float *pending[ZERO_VECTOR_PENDING]; /* [depth] */
} zero_vector_sum;

typedef struct {
    const char *name; /* "native", "x86-64-v3", ... */
    /* out[n] = the sum, added in fp32 and rounded to `to` */
    void (*sum)(const zero_vector_sum *sum, int64_t n, zero_type to, void *out,
                bool stream);
    /* out[n] = sum + (leaf rounded to `type`), or that alone if sum is NULL. */
    void (*add_rounded)(zero_type type, int64_t n, const float *sum, const float *leaf,
                        float *out);
    /* The tree sum of n <= ZERO_VECTOR_SQUARES squares, as in tree.h. */
    double (*squares)(zero_type type, int64_t n, const void *x);
    /* Copies lines of 64 bytes, streaming. */
    void (*copy_lines)(int64_t lines, const void *in, void *out);
} zero_vector_kernels;

#define ZERO_VECTOR_VARIANTS 4 /* at most */

/* Fills `list` with the tables that this build has and this machine can run, best first,
 * and returns how many; at least 1. */
int zero_vector_kernels_list(const zero_vector_kernels *list[ZERO_VECTOR_VARIANTS]);

const zero_vector_kernels *zero_vector_kernels_best(void);
