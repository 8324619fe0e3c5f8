/* cpu_bgemm_avx512.c - a tile by vdpbf16ps; compiled for AVX512-BF16. */
#include "math/cpu_bgemm.h"

#include <immintrin.h>

/* Rows at a time. With two registers of columns: 16 sums in registers, 2 + 8 loads for
 * them. */
#define ROWS 8

extern const zero_packed_kernels zero_bgemm_avx512;

static void nothing(void)
{
}

/* A pair of one row, in every element of a register. */
static inline __m512bh pair_at(const uint16_t *a)
{
    int pair;
    memcpy(&pair, a, sizeof pair);
    return (__m512bh)_mm512_set1_epi32(pair);
}

/* c[8,32] from 8 rows of a's AMX tiles; columns: offset of the next 16 columns of b */
static void multiply_rows(int64_t k, const uint16_t *a, const uint16_t *b, int64_t columns,
                          bool add, float *c, int64_t ldc)
{
    __m512 sum[ROWS][2];
    for (int r = 0; r < ROWS; r++) { /* its lines are here when the sums are */
        __builtin_prefetch(c + r * ldc, 1);
        __builtin_prefetch(c + r * ldc + 16, 1);
        __builtin_prefetch(c + r * ldc + 31, 1);
    }
    for (int r = 0; r < ROWS; r++)
        for (int h = 0; h < 2; h++)
            sum[r][h] = add ? _mm512_loadu_ps(c + r * ldc + 16 * h) : _mm512_setzero_ps();
    for (; k > 0; k -= ZERO_AMX_DEPTH, a += ZERO_AMX_NUMBERS, b += ZERO_AMX_NUMBERS)
        for (int q = 0; q < 16; q++) {
            __m512bh left = (__m512bh)_mm512_loadu_si512(b + 32 * q);
            __m512bh right = (__m512bh)_mm512_loadu_si512(b + columns + 32 * q);
            for (int r = 0; r < ROWS; r++) {
                __m512bh pair = pair_at(a + 32 * r + 2 * q);
                sum[r][0] = _mm512_dpbf16_ps(sum[r][0], pair, left);
                sum[r][1] = _mm512_dpbf16_ps(sum[r][1], pair, right);
            }
        }
    for (int r = 0; r < ROWS; r++)
        for (int h = 0; h < 2; h++) _mm512_storeu_ps(c + r * ldc + 16 * h, sum[r][h]);
}

static void multiply_part(int64_t k, const void *a, const void *b, int64_t b_from,
                          int64_t b_k, bool add, float *c, int64_t ldc)
{
    const uint16_t *columns = (const uint16_t *)b + b_from * ZERO_AMX_LANES;
    for (int64_t i = 0; i < ZERO_BGEMM_TILE; i += ROWS) {
        const uint16_t *lanes = a;
        lanes += i / ZERO_AMX_LANES * k * ZERO_AMX_LANES;
        multiply_rows(k, lanes + i % ZERO_AMX_LANES * ZERO_AMX_DEPTH, columns,
                      b_k * ZERO_AMX_LANES, add, c + i * ldc, ldc);
    }
}

static void multiply(int64_t k, const void *a, const void *b, bool add, float *c,
                     int64_t ldc)
{
    multiply_part(k, a, b, 0, k, add, c, ldc);
}

static float in_registers(int64_t tiles)
{
    enum { PAIRS = ZERO_BGEMM_TILE * ZERO_BGEMM_TILE * ZERO_AMX_DEPTH / 2 };
    __m512 sum[ROWS][2];
    const volatile int any = 0x3f003f00; /* as if the compiler could not know it */
    const __m512bh pair = (__m512bh)_mm512_set1_epi32(any);
    for (int r = 0; r < ROWS; r++) /* none is another one's */
        for (int h = 0; h < 2; h++) sum[r][h] = _mm512_set1_ps((float)(2 * r + h));
    for (int64_t i = tiles * (PAIRS / (16 * 2 * ROWS)); i > 0; i--)
        for (int r = 0; r < ROWS; r++)
            for (int h = 0; h < 2; h++) sum[r][h] = _mm512_dpbf16_ps(sum[r][h], pair, pair);
    __m512 all = {0};
    for (int r = 0; r < ROWS; r++) all += sum[r][0] + sum[r][1];
    return all[0];
}

const zero_packed_kernels zero_bgemm_avx512 = {
    .name = "AVX512-BF16",
    .block_m = 672,
    .block_n = 320,
    .block_k = 1024,
    .begin = nothing,
    .end = nothing,
    .multiply = multiply,
    .multiply_part = multiply_part,
    .in_registers = in_registers,
    ZERO_BGEMM_FORM,
};
