/* cpu_bgemm_pack.c - from rows of fp32 or bf16 to AMX tiles of bf16; compiled for
 * AVX512-BF16.
 *
 * An AMX tile is read as 16 registers of pairs: [lane][pair] from an array whose rows run
 * along k, [pair][lane] from one whose rows run along the lanes. It is transposed in
 * registers where the factor needs the other order. */
#include "math/cpu_bgemm.h"

#include <immintrin.h>

#define INLINE static inline __attribute__((always_inline))

/* Masks of the first n of 16 or 32 elements; n <= 0: none. */
INLINE __mmask16 first16(int64_t n)
{
    return (__mmask16)(n >= 16 ? 0xffff : n > 0 ? (1u << n) - 1 : 0);
}

INLINE __mmask32 first32(int64_t n)
{
    return (__mmask32)(n >= 32 ? 0xffffffff : n > 0 ? (1u << n) - 1 : 0);
}

/* n <= 32 numbers of a row, as 16 pairs. */
INLINE __m512i row_of_pairs(zero_type type, const void *row, int64_t n)
{
    if (type == ZERO_BF16) return _mm512_maskz_loadu_epi16(first32(n), row);
    __m512 low = _mm512_maskz_loadu_ps(first16(n), row);
    __m512 high = _mm512_maskz_loadu_ps(first16(n - 16), (const float *)row + 16);
    return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

/* Up to 16 numbers of two rows, as the masks say: each pair is one of the first and one of
 * the second row. */
INLINE __m512i pairs_of_rows(zero_type type, const void *first, __mmask16 in_first,
                             const void *second, __mmask16 in_second, __m512i order)
{
    __m512i both;
    if (type == ZERO_BF16)
        both = _mm512_inserti64x4(
            _mm512_castsi256_si512(_mm256_maskz_loadu_epi16(in_first, first)),
            _mm256_maskz_loadu_epi16(in_second, second), 1);
    else
        both = (__m512i)_mm512_cvtne2ps_pbh(_mm512_maskz_loadu_ps(in_second, second),
                                            _mm512_maskz_loadu_ps(in_first, first));
    return _mm512_permutexvar_epi16(order, both);
}

/* Numbers i and 16 + i, for each i. */
INLINE __m512i order_of_pairs(void)
{
    const __m512i first =
        _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(16));
    return _mm512_or_si512(first, _mm512_slli_epi32(second, 16));
}

/* Row r of the array. */
INLINE const char *row_at(zero_type type, const char *from, int64_t stride, int64_t r)
{
    return from + (type == ZERO_BF16 ? 2 : 4) * r * stride;
}

INLINE void read_along_k(zero_type type, const char *from, int64_t stride, int64_t lanes,
                         int64_t k, __m512i tile[16])
{
    for (int64_t r = 0; r < 16; r++)
        tile[r] = r < lanes ? row_of_pairs(type, row_at(type, from, stride, r), k)
                            : _mm512_setzero_si512();
}

INLINE void read_along_lanes(zero_type type, const char *from, int64_t stride,
                             int64_t lanes, int64_t k, __m512i tile[16])
{
    const __mmask16 mask = first16(lanes);
    const __m512i order = order_of_pairs();
#pragma GCC unroll 16
    for (int64_t q = 0; q < 16; q++)
        tile[q] = pairs_of_rows(type, row_at(type, from, stride, 2 * q),
                                2 * q < k ? mask : 0, row_at(type, from, stride, 2 * q + 1),
                                2 * q + 1 < k ? mask : 0, order);
}

/* 16 x 16 pairs: within quarters of 128 bits first, then the quarters. */
INLINE void transpose(__m512i x[16])
{
    __m512i y[16];
    for (int i = 0; i < 16; i += 2) {
        y[i] = _mm512_unpacklo_epi32(x[i], x[i + 1]);
        y[i + 1] = _mm512_unpackhi_epi32(x[i], x[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        x[i] = _mm512_unpacklo_epi64(y[i], y[i + 2]);
        x[i + 1] = _mm512_unpackhi_epi64(y[i], y[i + 2]);
        x[i + 2] = _mm512_unpacklo_epi64(y[i + 1], y[i + 3]);
        x[i + 3] = _mm512_unpackhi_epi64(y[i + 1], y[i + 3]);
    }
    for (int i = 0; i < 4; i++) {
        __m512i even0 = _mm512_shuffle_i32x4(x[i], x[4 + i], 0x88);
        __m512i even1 = _mm512_shuffle_i32x4(x[8 + i], x[12 + i], 0x88);
        __m512i odd0 = _mm512_shuffle_i32x4(x[i], x[4 + i], 0xdd);
        __m512i odd1 = _mm512_shuffle_i32x4(x[8 + i], x[12 + i], 0xdd);
        y[i] = _mm512_shuffle_i32x4(even0, even1, 0x88);
        y[4 + i] = _mm512_shuffle_i32x4(odd0, odd1, 0x88);
        y[8 + i] = _mm512_shuffle_i32x4(even0, even1, 0xdd);
        y[12 + i] = _mm512_shuffle_i32x4(odd0, odd1, 0xdd);
    }
    for (int i = 0; i < 16; i++) x[i] = y[i];
}

/* Distance of prefetching along k: two tiles later in the same rows. Arrays whose rows run
 * along the lanes are fetched a tile ahead. Without it a CPU follows few of the 16 or 32
 * rows, and packing from memory takes twice as long: 0.13 instead of 0.28 ns per element of
 * 16-bit weights. */
#define AHEAD (2 * ZERO_AMX_DEPTH)

/* Each array row of a tile to come, line by line. */
INLINE void fetch_rows(const char *from, int64_t stride, int64_t rows, int64_t bytes)
{
#pragma GCC unroll 32
    for (int64_t r = 0; r < rows; r++)
        for (int64_t at = 0; at < bytes; at += 64)
            __builtin_prefetch(from + r * stride + at);
}

/* The tile that is packed after this one, or later; past the end of k, the start of the
 * next 16 lanes. */
INLINE void fetch_next(const zero_operand *x, zero_type type, bool along_k, int64_t lane,
                       int64_t p, int64_t k)
{
    const int64_t size = type == ZERO_BF16 ? 2 : 4, stride = size * x->stride;
    const char *array = x->data;
    if (along_k) {
        const bool ends = p + AHEAD >= k;
        const int64_t next = ends ? p + AHEAD - k : p + AHEAD;
        fetch_rows(array + (lane + (ends ? 16 : 0)) * stride + next * size, stride, 16,
                   ZERO_AMX_DEPTH * size);
    } else if (type == ZERO_FP32 || lane % 32 == 0) { /* a line has 32 of 16 bits */
        fetch_rows(array + (p + ZERO_AMX_DEPTH) * stride + lane * size, stride,
                   ZERO_AMX_DEPTH, 64);
    }
}

INLINE void pack_amx_tile(const zero_operand *x, zero_type type, bool along_k,
                          bool lanes_first, int64_t lane, int64_t p, int64_t lanes,
                          int64_t k, uint16_t *out)
{
    __m512i tile[16];
    const char *from = x->data;
    from += (type == ZERO_BF16 ? 2 : 4) *
            (along_k ? lane * x->stride + p : p * x->stride + lane);
    fetch_next(x, type, along_k, lane, p, k);
    if (along_k)
        read_along_k(type, from, x->stride, lanes - lane, k - p, tile);
    else
        read_along_lanes(type, from, x->stride, lanes - lane, k - p, tile);
    if (along_k != lanes_first) transpose(tile);
    for (int i = 0; i < 16; i++) _mm512_storeu_si512(out + 32 * i, tile[i]);
}

/* Walks the array along its rows: neighbours share pages and lines. */
INLINE void pack_as(const zero_operand *x, zero_type type, bool along_k, bool lanes_first,
                    int64_t lanes, int64_t k, uint16_t *out)
{
    const int64_t k_tiles = zero_divide_up(k, ZERO_AMX_DEPTH);
    const int64_t next_row = x->panel_k ? x->panel_k / ZERO_AMX_DEPTH : k_tiles;
    out += x->panel_at * ZERO_AMX_LANES;
    const int64_t rows = zero_round_up(lanes, ZERO_BGEMM_TILE) / ZERO_AMX_LANES;
    const int64_t outer = along_k ? rows : k_tiles, inner = along_k ? k_tiles : rows;
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < inner; i++) {
            int64_t row = along_k ? o : i, t = along_k ? i : o;
            pack_amx_tile(x, type, along_k, lanes_first, row * ZERO_AMX_LANES,
                          t * ZERO_AMX_DEPTH, lanes, k,
                          out + (row * next_row + t) * ZERO_AMX_NUMBERS);
        }
}

INLINE void pack(const zero_operand *x, bool lanes_first, int64_t lanes, int64_t k,
                 uint16_t *out)
{
    if (x->type == ZERO_BF16 && x->along_k)
        pack_as(x, ZERO_BF16, true, lanes_first, lanes, k, out);
    else if (x->type == ZERO_BF16)
        pack_as(x, ZERO_BF16, false, lanes_first, lanes, k, out);
    else if (x->along_k)
        pack_as(x, ZERO_FP32, true, lanes_first, lanes, k, out);
    else
        pack_as(x, ZERO_FP32, false, lanes_first, lanes, k, out);
}

void zero_bgemm_pack_a(const zero_operand *a, int64_t lanes, int64_t k, void *out)
{
    pack(a, true, lanes, k, out);
}

void zero_bgemm_pack_b(const zero_operand *b, int64_t lanes, int64_t k, void *out)
{
    pack(b, false, lanes, k, out);
}

void zero_bgemm_add(const float *x, float *c, int64_t ldc)
{
    for (int r = 0; r < ZERO_BGEMM_TILE; r++, x += ZERO_BGEMM_TILE, c += ldc)
        for (int h = 0; h < ZERO_BGEMM_TILE; h += 16)
            _mm512_storeu_ps(c + h,
                             _mm512_add_ps(_mm512_loadu_ps(x + h), _mm512_loadu_ps(c + h)));
}
