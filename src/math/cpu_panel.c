/* cpu_panel.c - compiled once per instruction set. All tables give the same bits. */
#include "math/cpu_panel.h"

#if defined(__AVX__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

extern const zero_panel_kernels ZERO_KERNELS;

#define INLINE static inline __attribute__((always_inline))

/* The sums of a tile fill the registers, but for two of b and one of a. They are
 * independent, which hides the latency of multiply-adds. */
#if defined(__AVX512BW__) && defined(__AVX512VL__)
#define NAME  "AVX-512"
#define WIDTH 16
#define ROWS  12
#elif defined(__AVX__) && defined(__FMA__)
#define NAME  "AVX"
#define WIDTH 8
#define ROWS  6
#elif defined(__aarch64__)
#define NAME  "NEON"
#define WIDTH 4
#define ROWS  12
#else
#define NAME  "vectors of 4, no FMA"
#define WIDTH 4
#define ROWS  6
#endif
#define COLS (2 * WIDTH)
#define FEW  (ROWS / 3)
_Static_assert(ZERO_PANEL_ROWS % ROWS == 0 && ZERO_PANEL_COLS % COLS == 0, "cpu_panel.h");

/* Distances of prefetching: numbers of packed b, numbers along a row, and rows of arrays
 * with short rows. Gains 2 % (512 rows of a) to 5 % (128). */
#define AHEAD      (16 * COLS)
#define AHEAD_K    128
#define AHEAD_ROWS 16

typedef float floats
    __attribute__((vector_size(WIDTH * sizeof(float)), aligned(4), may_alias));

/* x y + sum, rounded once. As an intrinsic, GCC 12 moves sums between registers and memory
 * where rows lie apart: attention takes 1.6 times as long. */
#if WIDTH >= 8
INLINE floats multiply_add(floats x, floats y, floats sum)
{
    __asm__("vfmadd231ps %2, %1, %0" : "+v"(sum) : "v"(x), "v"(y));
    return sum;
}
#elif defined(__aarch64__)
INLINE floats multiply_add(floats x, floats y, floats sum)
{
    return (floats)vfmaq_f32((float32x4_t)sum, (float32x4_t)x, (float32x4_t)y);
}
#else
typedef float two_floats __attribute__((vector_size(8)));
typedef double two __attribute__((vector_size(16)));
typedef uint32_t words __attribute__((vector_size(16)));

INLINE two widened_half(floats x, int half)
{
    return __builtin_convertvector(((two_floats){x[2 * half], x[2 * half + 1]}), two);
}

/* A product of floats is exact in double. Its sum is rounded there first, which matters
 * only halfway between two floats, and below their normal numbers. */
INLINE floats multiply_add(floats x, floats y, floats sum)
{
    floats out = {0};
    words rare = {0};
    for (int half = 0; half < 2; half++) {
        const two z =
            widened_half(x, half) * widened_half(y, half) + widened_half(sum, half);
        const words w = (words)z; /* the lower half of a number, and the upper one */
        rare |= (words)((w & (words){0x1fffffff, 0, 0x1fffffff, 0}) ==
                        (words){0x10000000, 1, 0x10000000, 1});
        rare |= (words)((w & (words){0, 0x7fffffff, 0, 0x7fffffff}) - 1 <
                        (words){0, 0x380fffff, 0, 0x380fffff});
        const two_floats rounded = __builtin_convertvector(z, two_floats);
        out[2 * half] = rounded[0], out[2 * half + 1] = rounded[1];
    }
    if (__builtin_expect((rare[0] | rare[1] | rare[2] | rare[3]) != 0, 0))
        for (int l = 0; l < WIDTH; l++) out[l] = fmaf(x[l], y[l], sum[l]);
    return out;
}
#endif

INLINE floats *at(float *c)
{
    return (floats *)(void *)c;
}

INLINE floats load(const float *x)
{
    return *(const floats *)(const void *)x;
}

/* The first rows of a tile, by both halves of a panel or by the left one. */
INLINE void product(int rows, int halves, int64_t k, const float *a, int64_t a_row,
                    int64_t a_k, const float *b, bool add, float *c, int64_t ldc)
{
    floats sum[ROWS][2];
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++) {
        __builtin_prefetch(c + i * ldc, 1);
        if (halves == 2) __builtin_prefetch(c + i * ldc + COLS - 1, 1);
        sum[i][0] = sum[i][1] = (floats){0};
    }
    for (int64_t p = 0; p < k; p++, a += a_k, b += COLS) {
        const floats left = load(b), right = halves == 2 ? load(b + WIDTH) : left;
        __builtin_prefetch(b + AHEAD);
        if (halves == 2) __builtin_prefetch(b + AHEAD + WIDTH);
#pragma GCC unroll 12
        for (int i = 0; i < rows; i++) {
            const floats x = a[i * a_row] - (floats){0};
            sum[i][0] = multiply_add(x, left, sum[i][0]);
            if (halves == 2) sum[i][1] = multiply_add(x, right, sum[i][1]);
        }
    }
#pragma GCC unroll 12
    for (int i = 0; i < rows; i++) {
        if (add) sum[i][0] += load(c + i * ldc);
        if (add && halves == 2) sum[i][1] += load(c + i * ldc + WIDTH);
        *at(c + i * ldc) = sum[i][0];
        if (halves == 2) *at(c + i * ldc + WIDTH) = sum[i][1];
    }
}

static void multiply(int64_t k, const float *a, int64_t a_row, int64_t a_k, const float *b,
                     bool add, float *c, int64_t ldc)
{
    product(ROWS, 2, k, a, a_row, a_k, b, add, c, ldc);
}

static void multiply_left(int64_t k, const float *a, int64_t a_row, int64_t a_k,
                          const float *b, bool add, float *c, int64_t ldc)
{
    product(ROWS, 1, k, a, a_row, a_k, b, add, c, ldc);
}

static void multiply_few(int64_t k, const float *a, int64_t a_row, int64_t a_k,
                         const float *b, bool add, float *c, int64_t ldc)
{
    product(FEW, 2, k, a, a_row, a_k, b, add, c, ldc);
}

static void multiply_packed(int64_t k, const void *a, const void *b, bool add, float *c,
                            int64_t ldc)
{
    product(ROWS, 2, k, a, 1, ROWS, b, add, c, ldc);
}

static void add_tile(const float *x, float *c, int64_t ldc)
{
#pragma GCC unroll 12
    for (int i = 0; i < ROWS; i++, x += COLS, c += ldc) {
        *at(c) = load(x) + load(c);
        *at(c + WIDTH) = load(x + WIDTH) + load(c + WIDTH);
    }
}

static float in_registers(int64_t tiles)
{
    floats sum[ROWS][2];
    const volatile float any = 0.5f; /* as if the compiler could not know it */
    const floats x = any - (floats){0};
    for (int i = 0; i < ROWS; i++) { /* none is another one's */
        sum[i][0] = x * (float)i;
        sum[i][1] = x - (float)i;
    }
    for (; tiles > 0; tiles--)
#pragma GCC unroll 12
        for (int i = 0; i < ROWS; i++) {
            sum[i][0] = multiply_add(x, x, sum[i][0]);
            sum[i][1] = multiply_add(x, x, sum[i][1]);
        }
    floats all = {0};
    for (int i = 0; i < ROWS; i++) all += sum[i][0] + sum[i][1];
    return all[0];
}

static float add_up(int64_t n, const float *x)
{
    enum { SUMS = 8 };
    floats sum[SUMS] = {{0}}, all = {0};
    for (int64_t i = 0; i < n; i += SUMS * WIDTH)
#pragma GCC unroll 8
        for (int s = 0; s < SUMS; s++) sum[s] += load(x + i + s * WIDTH);
    for (int s = 0; s < SUMS; s++) all += sum[s];
    float out = 0.0f;
    for (int l = 0; l < WIDTH; l++) out += all[l];
    return out;
}

static void nothing(void)
{
}

/* Element (lane, p) of an operand of this type. */
INLINE const void *element(const zero_operand *x, zero_type type, int64_t lane, int64_t p)
{
    int64_t i = x->along_k ? lane * x->stride + p : p * x->stride + lane;
    return (const char *)x->data + (type == ZERO_FP32 ? 4 : 2) * i;
}

#if defined(__AVX512BW__) && defined(__AVX512VL__)
INLINE __mmask16 first(int64_t n)
{
    return (__mmask16)(n >= 16 ? 0xffff : n > 0 ? (1u << n) - 1 : 0);
}

/* The first n <= 16 numbers of x as floats; the others are zero. */
INLINE __m512 read_floats(zero_type type, const void *x, int64_t n)
{
    if (type == ZERO_FP32) return _mm512_maskz_loadu_ps(first(n), x);
    __m256i half = _mm256_maskz_loadu_epi16(first(n), x);
    if (type == ZERO_FP16) return _mm512_cvtph_ps(half);
    return (__m512)_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16);
}

/* 16 x 16 numbers: within quarters of 128 bits first, then the quarters. */
INLINE void transpose(__m512 x[16])
{
    __m512 y[16];
    for (int i = 0; i < 16; i += 2) {
        y[i] = _mm512_unpacklo_ps(x[i], x[i + 1]);
        y[i + 1] = _mm512_unpackhi_ps(x[i], x[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {
        x[i] = _mm512_shuffle_ps(y[i], y[i + 2], 0x44);
        x[i + 1] = _mm512_shuffle_ps(y[i], y[i + 2], 0xee);
        x[i + 2] = _mm512_shuffle_ps(y[i + 1], y[i + 3], 0x44);
        x[i + 3] = _mm512_shuffle_ps(y[i + 1], y[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        y[i] = _mm512_shuffle_f32x4(x[i], x[i + 4], 0x88);
        y[i + 4] = _mm512_shuffle_f32x4(x[i], x[i + 4], 0xdd);
        y[i + 8] = _mm512_shuffle_f32x4(x[i + 8], x[i + 12], 0x88);
        y[i + 12] = _mm512_shuffle_f32x4(x[i + 8], x[i + 12], 0xdd);
    }
    for (int i = 0; i < 4; i++) {
        x[i] = _mm512_shuffle_f32x4(y[i], y[i + 8], 0x88);
        x[i + 8] = _mm512_shuffle_f32x4(y[i], y[i + 8], 0xdd);
        x[i + 4] = _mm512_shuffle_f32x4(y[i + 4], y[i + 12], 0x88);
        x[i + 12] = _mm512_shuffle_f32x4(y[i + 4], y[i + 12], 0xdd);
    }
}

/* 16 lanes, AHEAD_K later; past the end of k, the start of the next 16. */
INLINE void prefetch_along_k(const zero_operand *x, zero_type type, int64_t lane, int64_t p,
                             int64_t k)
{
    const bool ends = p + AHEAD_K >= k;
    for (int64_t r = 0; r < 16; r++)
        __builtin_prefetch(
            element(x, type, lane + r + (ends ? 16 : 0), p + AHEAD_K - (ends ? k : 0)));
}

/* `width` <= 16 lanes, of which the first n exist, 16 of k at a time. */
INLINE void pack_along_k(const zero_operand *x, zero_type type, int64_t lane, int64_t n,
                         int64_t k, int64_t width, int64_t step, float *out)
{
    const __mmask16 kept = first(width);
    const int64_t exist = zero_min(n, width);
    for (int64_t p = 0; p < k; p += 16) {
        __m512 x16[16];
        prefetch_along_k(x, type, lane, p, k);
        for (int64_t r = 0; r < 16; r++)
            x16[r] = r < exist ? read_floats(type, element(x, type, lane + r, p), k - p)
                               : _mm512_setzero_ps();
        transpose(x16);
        const int64_t deep = zero_min(16, k - p);
        for (int64_t q = 0; q < deep; q++)
            _mm512_mask_storeu_ps(out + (p + q) * step, kept, x16[q]);
    }
}

INLINE void pack_as(const zero_operand *x, zero_type type, int64_t n, int64_t k,
                    int64_t width, float *out)
{
    const int64_t panel = x->panel_k ? x->panel_k : k;
    out += x->panel_at * width;
    if (x->along_k) {
        for (int64_t l = 0; l < n; l += width)
            for (int64_t h = 0; h < width; h += 16)
                pack_along_k(x, type, l + h, n - l - h, k, zero_min(16, width - h), width,
                             out + l * panel + h);
        return;
    }
    for (int64_t p = 0; p < k; p++) {
        int64_t l = 0;
        for (int64_t i = 0; i < n; i += 16)
            __builtin_prefetch(element(x, type, i, p + AHEAD_ROWS));
        for (; width % 16 == 0 && l + width <= n; l += width)
            for (int64_t h = 0; h < width; h += 16)
                _mm512_storeu_ps(out + l * panel + p * width + h,
                                 read_floats(type, element(x, type, l + h, p), 16));
        for (; l < n; l += width)
            for (int64_t h = 0; h < width; h += 16)
                _mm512_mask_storeu_ps(
                    out + l * panel + p * width + h, first(width - h),
                    read_floats(type, element(x, type, l + h, p), n - l - h));
    }
}

INLINE void pack(const zero_operand *x, int64_t n, int64_t k, int64_t width, float *out)
{
    if (x->type == ZERO_FP32)
        pack_as(x, ZERO_FP32, n, k, width, out);
    else if (x->type == ZERO_BF16)
        pack_as(x, ZERO_BF16, n, k, width, out);
    else
        pack_as(x, ZERO_FP16, n, k, width, out);
}
#else
/* A square of WIDTH x WIDTH numbers: pairs of rows are woven, until columns are rows. */
INLINE void transpose(floats x[WIDTH])
{
    for (int half = WIDTH / 2; half > 0; half /= 2) {
        floats y[WIDTH];
#pragma GCC unroll 8
        for (int i = 0; i < WIDTH / 2; i++) {
            const floats left = x[i], right = x[i + WIDTH / 2];
#if WIDTH == 8
            y[2 * i] = __builtin_shufflevector(left, right, 0, 8, 1, 9, 2, 10, 3, 11);
            y[2 * i + 1] = __builtin_shufflevector(left, right, 4, 12, 5, 13, 6, 14, 7, 15);
#else
            y[2 * i] = __builtin_shufflevector(left, right, 0, 4, 1, 5);
            y[2 * i + 1] = __builtin_shufflevector(left, right, 2, 6, 3, 7);
#endif
        }
        memcpy(x, y, sizeof y);
    }
}

#define CHUNK 256 /* numbers of 16 bits widened at a time */

/* n numbers along memory as floats: in place, or widened. */
INLINE const float *as_floats(zero_type type, const void *x, int64_t n, float *room)
{
    if (type == ZERO_FP32) return x;
    zero_convert(type, ZERO_FP32, n, x, room);
    return room;
}

/* `width` lanes, of which n exist, WIDTH of them and of k at a time. */
INLINE void pack_along_k(const zero_operand *x, int64_t lane, int64_t n, int64_t k,
                         int64_t width, float *out)
{
    for (int64_t p = 0; p < k; p += CHUNK) {
        const int64_t deep = zero_min(CHUNK, k - p);
        for (int64_t h = 0; h < width; h += WIDTH) {
            float room[WIDTH][CHUNK];
            const float *row[WIDTH];
            const int64_t kept = zero_min(WIDTH, width - h);
            for (int64_t r = 0; r < WIDTH; r++)
                row[r] = r < kept && h + r < n
                             ? as_floats(x->type, element(x, x->type, lane + h + r, p),
                                         deep, room[r])
                             : memset(room[r], 0, sizeof room[r]);
            for (int64_t q = 0; q < deep; q += WIDTH) {
                floats square[WIDTH];
                if (deep - q < WIDTH) { /* the last few */
                    for (int64_t s = q; s < deep; s++)
                        for (int64_t r = 0; r < kept; r++)
                            out[(p + s) * width + h + r] = row[r][s];
                    break;
                }
                for (int r = 0; r < WIDTH; r++) square[r] = load(row[r] + q);
                transpose(square);
                for (int s = 0; s < WIDTH; s++)
                    memcpy(out + (p + q + s) * width + h, &square[s],
                           (size_t)kept * sizeof(float));
            }
        }
    }
}

INLINE void pack(const zero_operand *x, int64_t n, int64_t k, int64_t width, float *out)
{
    const int64_t panel = x->panel_k ? x->panel_k : k;
    out += x->panel_at * width;
    if (x->along_k) {
        for (int64_t l = 0; l < n; l += width)
            pack_along_k(x, l, n - l, k, width, out + l * panel);
        return;
    }
    const int64_t chunk = CHUNK / width * width;
    for (int64_t p = 0; p < k; p++)
        for (int64_t c = 0; c < n; c += chunk) {
            float room[CHUNK];
            const int64_t end = zero_min(c + chunk, n);
            const float *from =
                as_floats(x->type, element(x, x->type, c, p), end - c, room);
            for (int64_t l = c; l < end; l += width, from += width) {
                float *to = out + l * panel + p * width;
                const int64_t exist = zero_min(width, end - l);
                for (int64_t i = 0; i < exist; i++) to[i] = from[i];
                for (int64_t i = exist; i < width; i++) to[i] = 0.0f;
            }
        }
}
#endif

static void pack_a(const zero_operand *a, int64_t n, int64_t k, void *out)
{
    pack(a, n, k, ROWS, out);
}

static void pack_b(const zero_operand *b, int64_t n, int64_t k, void *out)
{
    pack(b, n, k, COLS, out);
}

/* A block of a is 1.5 MiB, one of b 0.5: both fit an L2 of 2 MiB, and a k of up to 768 is
 * one block. */
const zero_panel_kernels ZERO_KERNELS = {
    .packed = {.name = NAME,
               .rows = ROWS,
               .cols = COLS,
               .depth = 1,
               .block_m = 516,
               .block_n = 160,
               .block_k = 768,
               .pack_a = pack_a,
               .pack_b = pack_b,
               .begin = nothing,
               .end = nothing,
               .multiply = multiply_packed,
               .add = add_tile,
               .in_registers = in_registers,
               .adds_sums = true},
    .beats_blas = WIDTH == 16,
    .multiply = multiply,
    .multiply_left = multiply_left,
    .few = FEW,
    .multiply_few = multiply_few,
    .read = add_up,
};
