#include "base/rng.h"

#include <math.h>

#include <Random123/philox.h>

#define WORDS_PER_BLOCK 4 /* 64-bit words that one Philox4x64 call gives */

static philox4x64_ctr_t block(const zero_rng *rng, uint64_t index)
{
    philox4x64_ctr_t counter = {{index, rng->tensor, rng->sample, rng->step}};
    philox4x64_key_t key = {{rng->seed, (uint64_t)rng->purpose}};
    return philox4x64(counter, key);
}

static double to_unit(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

uint64_t zero_rng_bits(const zero_rng *rng, uint64_t i)
{
    return block(rng, i / WORDS_PER_BLOCK).v[i % WORDS_PER_BLOCK];
}

double zero_rng_uniform(const zero_rng *rng, uint64_t i)
{
    return to_unit(zero_rng_bits(rng, i));
}

void zero_rng_normal(const zero_rng *rng, uint64_t first, int64_t n, float *out)
{
    const double two_pi = 6.283185307179586476925;
    philox4x64_ctr_t words = {{0}};
    double radius = 0.0, angle = 0.0;
    for (int64_t k = 0; k < n; k++) {
        /* Elements 2j and 2j+1 share draws 2j and 2j+1, so that any range of the stream gives
         * the same numbers as the whole. */
        uint64_t i = first + (uint64_t)k, slot = i % WORDS_PER_BLOCK;
        if (k == 0 || slot == 0) words = block(rng, i / WORDS_PER_BLOCK);
        if (k == 0 || slot % 2 == 0) {
            radius = sqrt(-2.0 * log(1.0 - to_unit(words.v[slot & ~(uint64_t)1])));
            angle = two_pi * to_unit(words.v[slot | 1]);
        }
        out[k] = (float)(radius * (i & 1 ? sin(angle) : cos(angle)));
    }
}

void zero_rng_dropout(const zero_rng *rng, float p, uint64_t first, int64_t n, float *out)
{
    const uint64_t per_block = 2 * WORDS_PER_BLOCK; /* 32 bits decide one element */
    const double threshold = (double)p * 0x1p32;
    const float keep = 1.0f / (1.0f - p);
    philox4x64_ctr_t words = {{0}};
    for (int64_t k = 0; k < n; k++) {
        uint64_t i = first + (uint64_t)k, slot = i % per_block;
        if (k == 0 || slot == 0) words = block(rng, i / per_block);
        uint32_t bits = (uint32_t)(words.v[slot / 2] >> (32 * (slot & 1)));
        out[k] = (double)bits < threshold ? 0.0f : keep;
    }
}
