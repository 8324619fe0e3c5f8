#include "base/rng.h"

#include <Random123/philox.h>

#include "base/elementary.h"
#include "base/number.h"

#define TWO_PI          6.283185307179586476925
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

void zero_rng_normal_plain(const zero_rng *rng, uint64_t first, int64_t n, float *out)
{
    philox4x64_ctr_t words = {{0}};
    double radius = 0.0, sine = 0.0, cosine = 0.0;
    for (int64_t k = 0; k < n; k++) {
        /* Elements 2j and 2j+1 share draws 2j and 2j+1, so that any range of the stream
         * gives the same numbers as the whole. */
        uint64_t i = first + (uint64_t)k, slot = i % WORDS_PER_BLOCK;
        if (k == 0 || slot == 0) words = block(rng, i / WORDS_PER_BLOCK);
        if (k == 0 || slot % 2 == 0) {
            radius = sqrt(-2.0 * zero_log(1.0 - to_unit(words.v[slot & ~(uint64_t)1])));
            zero_sine_cosine(TWO_PI * to_unit(words.v[slot | 1]), &sine, &cosine);
        }
        out[k] = (float)(radius * (i & 1 ? sine : cosine));
    }
}

#define TILE 1024 /* elements at a time */

void zero_rng_normal_with(const zero_vector_kernels *kernels, const zero_rng *rng,
                          uint64_t first, int64_t n, float *out)
{
    uint64_t radii[TILE / 2], angles[TILE / 2];
    float most[TILE];
    int64_t at = zero_min(n, (int64_t)(-first % WORDS_PER_BLOCK));
    zero_rng_normal_plain(rng, first, at, out);
    while (n - at >= 2 * ZERO_VECTOR_PAIRS) {
        int64_t len =
            zero_min(n - at, TILE) / (2 * ZERO_VECTOR_PAIRS) * 2 * ZERO_VECTOR_PAIRS;
        /* The draws of these elements, which begin and end with a block. */
        for (int64_t k = 0; k < len; k += WORDS_PER_BLOCK) {
            philox4x64_ctr_t words =
                block(rng, (first + (uint64_t)(at + k)) / WORDS_PER_BLOCK);
            for (int p = 0; p < 2; p++) {
                radii[k / 2 + p] = words.v[2 * p];
                angles[k / 2 + p] = words.v[2 * p + 1];
            }
        }
        kernels->normals(len / 2, radii, angles, out + at, most);
        /* Numbers whose bounds differ lie next to a border between two floats, one in a
         * million: only there do the exact bits of log, sin and cos matter (Ziv's
         * test). */
        bool differ = memcmp(out + at, most, (size_t)len * sizeof *out) != 0;
        for (int64_t k = 0; differ && k < len; k++)
            if (memcmp(&out[at + k], &most[k], sizeof *out) != 0)
                zero_rng_normal_plain(rng, first + (uint64_t)(at + k), 1, &out[at + k]);
        at += len;
    }
    zero_rng_normal_plain(rng, first + (uint64_t)at, n - at, out + at);
}

void zero_rng_normal(const zero_rng *rng, uint64_t first, int64_t n, float *out)
{
    zero_rng_normal_with(zero_vector_kernels_best(), rng, first, n, out);
}

#define MASKS_PER_BLOCK (2 * WORDS_PER_BLOCK) /* 32 bits decide one element */

void zero_rng_dropout_plain(const zero_rng *rng, float p, uint64_t first, int64_t n,
                            float *out)
{
    const double threshold = (double)p * 0x1p32;
    const float keep = 1.0f / (1.0f - p);
    for (int64_t k = 0; k < n; k++) {
        uint64_t i = first + (uint64_t)k, slot = i % MASKS_PER_BLOCK;
        philox4x64_ctr_t words = block(rng, i / MASKS_PER_BLOCK);
        uint32_t bits = (uint32_t)(words.v[slot / 2] >> (32 * (slot & 1)));
        out[k] = (double)bits < threshold ? 0.0f : keep;
    }
}

void zero_rng_dropout_with(const zero_vector_kernels *kernels, const zero_rng *rng, float p,
                           uint64_t first, int64_t n, float *out)
{
    /* An integer is below a number if it is below the next integer from there on. */
    const zero_vector_masks m = {.key = {rng->seed, (uint64_t)rng->purpose},
                                 .counter = {rng->tensor, rng->sample, rng->step},
                                 .threshold = (uint32_t)ceil((double)p * 0x1p32),
                                 .keep = 1.0f / (1.0f - p)};
    const int64_t slot = (int64_t)(first % MASKS_PER_BLOCK);
    const int64_t head = slot > 0 ? zero_min(n, MASKS_PER_BLOCK - slot) : 0;
    if (head > 0) { /* the rest of a block that has begun */
        float whole[MASKS_PER_BLOCK];
        kernels->masks(&m, first / MASKS_PER_BLOCK, MASKS_PER_BLOCK, whole);
        zero_copy(out, whole + slot, head);
    }
    kernels->masks(&m, (first + (uint64_t)head) / MASKS_PER_BLOCK, n - head, out + head);
}

void zero_rng_dropout(const zero_rng *rng, float p, uint64_t first, int64_t n, float *out)
{
    zero_rng_dropout_with(zero_vector_kernels_best(), rng, p, first, n, out);
}
