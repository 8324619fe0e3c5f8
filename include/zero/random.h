/* random.h - random numbers that depend on where they are used, never on when.
 *
 * A number is a pure function of the members below and its index, so noise in a unit is the
 * same on any number of ranks, in any stage, when a forward call is repeated, and after a
 * restart, if `step` and `sample` are those of the call's batch (first_sample + b). No
 * stream is one of the library's own. Nothing here is collective or fails.
 * Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11
 * (Philox4x64-10). */
#pragma once

#include <stdint.h>

#include "zero/api.h"

ZERO_API_BEGIN

/* One stream. */
typedef struct {
    int64_t seed, step, sample;
    int64_t number; /* tells the streams of a program apart */
} zero_random;

/* out[k] = element first + k of the stream, k < n: uniform in [0, 1), in steps of 2^-24.
 * Does nothing for NULL. zero_random_normal(): standard normal numbers. */
void zero_random_uniform(const zero_random *stream, int64_t first, int64_t n, float *out);
void zero_random_normal(const zero_random *stream, int64_t first, int64_t n, float *out);

ZERO_API_END
