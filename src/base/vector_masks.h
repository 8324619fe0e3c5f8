/* vector_masks.h - dropout's masks: Philox4x64-10 (rng.h) on as many counters as a register
 * has lanes of 64 bits. A block is one counter's 256 bits, of which 32 decide one element.
 *
 *     x0 x1 x2 x3  ->  high(M1 x2) ^ x1 ^ key0, low(M1 x2), high(M0 x0) ^ x3 ^ key1, low(M0
 *                      x0)
 *
 * Constants: Salmon et al., SC'11, as in Random123's philox.h. */
#pragma once

#include "base/vector.h"
#include "base/vector_normals.h"

#define ROUNDS        10
#define BLOCK_MASKS   8
#define LANES_OF_MASK (PAIRS * BLOCK_MASKS) /* elements of a register of counters */

/* Each lane is the product of the lower halves of a's and b's lane. */
INLINE bits64 product_of_halves(bits64 a, bits64 b)
{
#if defined(PRODUCT)
    return (bits64)PRODUCT((INTS)a, (INTS)b);
#else
    return (a & 0xffffffff) * (b & 0xffffffff);
#endif
}

/* The 128 bits of x * factor: no sum of halves overflows 64 bits. */
INLINE void multiply_wide(bits64 x, uint64_t factor, bits64 *high, bits64 *low)
{
    const bits64 f = (bits64){0} + factor, upper_f = f >> 32, upper = x >> 32;
    const bits64 least = product_of_halves(x, f);
    const bits64 middle = product_of_halves(upper, f) + (least >> 32);
    const bits64 other = product_of_halves(x, upper_f) + (middle & 0xffffffff);
    *high = product_of_halves(upper, upper_f) + (middle >> 32) + (other >> 32);
    *low = other << 32 | (least & 0xffffffff);
}

/* Rounds of independent registers hide the latency of one: two take 1.1 times as long. */
INLINE void philox(const zero_vector_masks *m, int registers, bits64 x[][4])
{
    uint64_t key0 = m->key[0], key1 = m->key[1];
    for (int round = 0; round < ROUNDS; round++) {
        for (int r = 0; r < registers; r++) {
            bits64 high0, low0, high1, low1;
            multiply_wide(x[r][0], 0xd2e7470ee14c6c93, &high0, &low0);
            multiply_wide(x[r][2], 0xca5a826395121157, &high1, &low1);
            x[r][0] = high1 ^ x[r][1] ^ key0, x[r][1] = low1;
            x[r][2] = high0 ^ x[r][3] ^ key1, x[r][3] = low0;
        }
        key0 += 0x9e3779b97f4a7c15, key1 += 0xbb67ae8584caa73b;
    }
}

/* Counters first, first + 1, ... and the other three words. */
INLINE void count_from(const zero_vector_masks *m, uint64_t first, bits64 x[4])
{
    x[0] = (bits64){0} + first;
    for (int l = 1; l < PAIRS; l++) x[0][l] += (uint64_t)l;
    for (int w = 1; w < 4; w++) x[w] = (bits64){0} + m->counter[w - 1];
}

/* out[counter][word], from the words of all counters. */
#if defined(__AVX512F__)
INLINE void put_words(const bits64 x[4], float *out)
{
    const __m512d low = (__m512d)_mm512_unpacklo_epi64((__m512i)x[0], (__m512i)x[1]);
    const __m512d high = (__m512d)_mm512_unpackhi_epi64((__m512i)x[0], (__m512i)x[1]);
    const __m512d low2 = (__m512d)_mm512_unpacklo_epi64((__m512i)x[2], (__m512i)x[3]);
    const __m512d high2 = (__m512d)_mm512_unpackhi_epi64((__m512i)x[2], (__m512i)x[3]);
    const __m512d even = _mm512_shuffle_f64x2(low, low2, 0x88);
    const __m512d even2 = _mm512_shuffle_f64x2(high, high2, 0x88);
    const __m512d odd = _mm512_shuffle_f64x2(low, low2, 0xdd);
    const __m512d odd2 = _mm512_shuffle_f64x2(high, high2, 0xdd);
    _mm512_storeu_pd(out, _mm512_shuffle_f64x2(even, even2, 0x88));
    _mm512_storeu_pd(out + 16, _mm512_shuffle_f64x2(odd, odd2, 0x88));
    _mm512_storeu_pd(out + 32, _mm512_shuffle_f64x2(even, even2, 0xdd));
    _mm512_storeu_pd(out + 48, _mm512_shuffle_f64x2(odd, odd2, 0xdd));
}
#else
INLINE void put_words(const bits64 x[4], float *out)
{
    for (int l = 0; l < PAIRS; l++)
        for (int w = 0; w < 4; w++) {
            const uint64_t word = x[w][l];
            memcpy(out + l * BLOCK_MASKS + 2 * w, &word, sizeof word);
        }
}
#endif

/* The masks of PAIRS blocks for each register. */
INLINE void mask_blocks(const zero_vector_masks *m, int registers, uint64_t first,
                        float *out)
{
    const bits32 threshold = (bits32){0} + m->threshold;
    const bits32 keep = (bits32)((floats){0} + m->keep);
    bits64 x[2][4];
    for (int r = 0; r < registers; r++) count_from(m, first + (uint64_t)(r * PAIRS), x[r]);
    philox(m, registers, x);
    for (int r = 0; r < registers; r++) {
        for (int w = 0; w < 4; w++)
            x[r][w] = (bits64)(keep & (bits32)((bits32)x[r][w] >= threshold));
        put_words(x[r], out + r * LANES_OF_MASK);
    }
}

static void masks(const zero_vector_masks *m, uint64_t first, int64_t n, float *out)
{
    float rest[LANES_OF_MASK];
    const int64_t pair = 2 * LANES_OF_MASK;
    for (; n >= pair; n -= pair, first += 2 * PAIRS, out += pair)
        mask_blocks(m, 2, first, out);
    for (; n > 0; n -= LANES_OF_MASK, first += PAIRS, out += LANES_OF_MASK) {
        mask_blocks(m, 1, first, n >= LANES_OF_MASK ? out : rest);
        if (n < LANES_OF_MASK) zero_copy(out, rest, n);
    }
}
