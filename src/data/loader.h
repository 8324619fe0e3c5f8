/* loader.h - the tokens of sample i of step s.
 *
 * The order depends on (seed, step, sample) only, never on the number of ranks. A sample is
 * a window of T + 1 tokens: T inputs, and the same shifted by one as targets. With n
 * training tokens, a global batch of B samples, s and i from 0, and j = s*B + i (plus
 * `moved`, if a resumed run changed B):
 *
 *   in order     the window starts at (j*T) mod (n - T)
 *
 *   shuffled     there are W = floor((n - 1) / T) windows that share no target. With epoch
 *                e = floor(j / W) the window starts at T * P_e(j mod W), where P_e is this
 *                bijection of 0 .. W-1:
 *                  h = the smallest number >= 1 with 2^(2h) >= W, mask = 2^h - 1
 *                  x -> L = x >> h, R = x & mask
 *                  for round = 0..3: (L, R) = (R, L xor (F(round, R) & mask))
 *                  x = L << h | R; again from the start while x >= W (cycle walking)
 *                F(round, R) is element R of the stream {seed, ZERO_RNG_ORDER, step = e,
 *                sample = 0, tensor = round} of base/rng.h, 64 bits.
 *
 *   validation   with n_val validation tokens, the window of sample i starts there at
 *                (i*T) mod (n_val - T), for every step and with or without shuffling
 *
 *   eval_random  the window of validation sample i starts at floor(r * (n_val - T) / 2^64),
 *                where r is element 0 of the stream {seed, ZERO_RNG_EVAL, step = 0, sample
 *                = i, tensor = 0}, for every step. */
#pragma once

#include "data/corpus.h"

typedef struct {
    const zero_corpus *corpus; /* borrowed; outlives the loader */
    int64_t T, B;              /* tokens per sample, samples per global batch */
    uint64_t seed;             /* of the shuffled order */
    bool shuffle;
    bool eval_random; /* false from zero_loader_init() */
    int64_t moved;    /* added to j; j itself is never negative */
} zero_loader;

/* ZERO_ERR_INVALID unless T, B >= 1 and both splits of the corpus hold T + 1 tokens. */
zero_status zero_loader_init(zero_loader *loader, const zero_corpus *corpus, int64_t T,
                             int64_t B, uint64_t seed, bool shuffle);

/* Makes `samples` the first sample of step `step`, whatever B was before. */
void zero_loader_resume(zero_loader *loader, int64_t step, int64_t samples);

/* Samples of the order that the first `step` steps use. */
int64_t zero_loader_used(const zero_loader *loader, int64_t step);

/* The token at which a sample's window begins. step, i >= 0; step*B + i < 2^63. */
int64_t zero_loader_train_start(const zero_loader *loader, int64_t step, int64_t i);
int64_t zero_loader_validation_start(const zero_loader *loader, int64_t i);

/* inputs[T] = the window without its last token, targets[T] = without its first. */
void zero_loader_train_sample(const void *loader, int64_t step, int64_t i, int64_t T,
                              void *inputs, void *targets);
void zero_loader_validation_sample(const void *loader, int64_t step, int64_t i, int64_t T,
                                   void *inputs, void *targets);
