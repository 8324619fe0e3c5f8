/* rng.h - random numbers that depend on where they are used, never on when.
 *
 * A draw is a pure function of (seed, purpose, step, sample, tensor, element):
 * Philox4x64-10 with the key {seed, purpose} and the counter {element block, tensor,
 * sample, step}. So initial weights, dropout and data never depend on rank count, stage,
 * order or restart. Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
 * SC'11 (Random123). */
#pragma once

#include "base/vector.h"

typedef enum {
    ZERO_RNG_INIT = 1, /* initial weights */
    ZERO_RNG_DROPOUT,  /* dropout masks */
    ZERO_RNG_ORDER,    /* the permutation of --shuffle */
    ZERO_RNG_STORIES,  /* the text of --data stories */
    ZERO_RNG_SAMPLING, /* generated text */
    ZERO_RNG_TEST,     /* inputs of tests and benches */
    ZERO_RNG_EVAL,     /* the windows of --eval-random */
    ZERO_RNG_OWN,      /* streams of programs (zero/random.h) */
    ZERO_RNG_MASK,     /* dropout masks of programs' units (zero/layers.h) */
} zero_rng_purpose;

/* One stream: everything but the element index. */
typedef struct {
    uint64_t seed;
    zero_rng_purpose purpose;
    uint64_t step, sample, tensor;
} zero_rng;

/* Element `i` of the stream: 64 uniform bits. */
uint64_t zero_rng_bits(const zero_rng *rng, uint64_t i);

/* Element `i` as a uniform number in [0, 1) with 53 bits. */
double zero_rng_uniform(const zero_rng *rng, uint64_t i);

/* out[k] = the standard normal number of element first + k, k < n (Box-Muller on two
 * draws). */
void zero_rng_normal(const zero_rng *rng, uint64_t first, int64_t n, float *out);
/* The same bits: by these kernels; and one by one from the C library's log, sin and cos,
 * which is their definition. */
void zero_rng_normal_with(const zero_vector_kernels *kernels, const zero_rng *rng,
                          uint64_t first, int64_t n, float *out);
void zero_rng_normal_plain(const zero_rng *rng, uint64_t first, int64_t n, float *out);

/* A dropout mask: out[k] = 0 with probability p, else 1 / (1 - p), for element first + k, k
 * < n.
 * 0 <= p < 1. */
void zero_rng_dropout(const zero_rng *rng, float p, uint64_t first, int64_t n, float *out);
/* The same bits: by these kernels; and one by one, which is their definition. */
void zero_rng_dropout_with(const zero_vector_kernels *kernels, const zero_rng *rng, float p,
                           uint64_t first, int64_t n, float *out);
void zero_rng_dropout_plain(const zero_rng *rng, float p, uint64_t first, int64_t n,
                            float *out);
