#include "base/tree.h"
#include "base/vector_exact.h"
#include "base/vector_masks.h"

/* This file is compiled once per instruction set; the build names each table. */
extern const zero_vector_kernels ZERO_KERNELS;

/* f with a type that is known when it is compiled: every mixture of types becomes a separate
 * loop. */
#define BY_TYPE(type, f, ...) \
    ((type) == ZERO_FP32   ? f(ZERO_FP32, __VA_ARGS__) \
     : (type) == ZERO_BF16 ? f(ZERO_BF16, __VA_ARGS__) \
                           : f(ZERO_FP16, __VA_ARGS__))

/* One number, as half.h defines it: for the rest after the last whole register. */
static float get(zero_type type, const void *in, int64_t i)
{
    if (type == ZERO_FP32) return ((const float *)in)[i];
    uint16_t half = ((const uint16_t *)in)[i];
    return type == ZERO_BF16 ? zero_from_bf16(half) : zero_from_fp16(half);
}

static void put(zero_type type, float x, void *out, int64_t i)
{
    if (type == ZERO_FP32)
        ((float *)out)[i] = x;
    else
        ((uint16_t *)out)[i] = type == ZERO_BF16 ? zero_to_bf16(x) : zero_to_fp16(x);
}

/* Prefetches the next tile while this one is summed: arrays that change every few KiB
 * outrun the CPU's own prefetching. Gains 5 to 15 % from memory; costs as much from
 * caches. */
INLINE void prefetch(zero_type type, const void *in, int64_t i)
{
    size_t size = type == ZERO_FP32 ? 4 : 2;
    __builtin_prefetch((const char *)in + (size_t)(i + ZERO_VECTOR_TILE) * size, 0, 2);
}

/* Whole registers, then one by one in the same order. */
INLINE void sum_loop(zero_type type, bool pair, int depth, const zero_vector_sum *sum,
                     int64_t n, zero_type to, void *out, bool streaming)
{
    const void *a = sum->a, *b = sum->b;
    bool ahead = sum->read_ahead;
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) {
        if (ahead) prefetch(type, a, i);
        floats x = load(type, a, i);
        if (pair) {
            if (ahead) prefetch(type, b, i);
            x += load(type, b, i);
        }
        for (int k = depth; k-- > 0;) x += *(const floats *)(sum->pending[k] + i);
        store(to, x, out, i, streaming);
    }
    for (; i < n; i++) {
        float x = get(type, a, i);
        if (pair) x += get(type, b, i);
        for (int k = depth; k-- > 0;) x += sum->pending[k][i];
        put(to, x, out, i);
    }
}

INLINE void sum_to(zero_type to, zero_type type, bool pair, const zero_vector_sum *sum,
                   int64_t n, void *out, bool streaming)
{
    if (sum->depth == 0)
        sum_loop(type, pair, 0, sum, n, to, out, streaming);
    else
        sum_loop(type, pair, sum->depth, sum, n, to, out, streaming);
}

INLINE void sum_of(zero_type type, const zero_vector_sum *sum, int64_t n, zero_type to,
                   void *out, bool streaming)
{
    if (sum->b)
        BY_TYPE(to, sum_to, type, true, sum, n, out, streaming);
    else
        BY_TYPE(to, sum_to, type, false, sum, n, out, streaming);
}

static void sum(const zero_vector_sum *sum, int64_t n, zero_type to, void *out,
                bool streaming)
{
    BY_TYPE(sum->type, sum_of, sum, n, to, out, streaming);
}

INLINE void add_rounded_as(zero_type type, bool add, int64_t n, const float *sum_to,
                           const float *leaf, float *out)
{
    int64_t i = 0;
    for (; i + WIDTH <= n; i += WIDTH) {
        floats x = rounded(type, load(ZERO_FP32, leaf, i));
        if (add) x += load(ZERO_FP32, sum_to, i);
        store(ZERO_FP32, x, out, i, false);
    }
    for (; i < n; i++) {
        uint16_t half = 0;
        float x = leaf[i];
        if (type != ZERO_FP32) {
            put(type, x, &half, 0);
            x = get(type, &half, 0);
        }
        out[i] = add ? sum_to[i] + x : x;
    }
}

INLINE void add_rounded_to(zero_type type, int64_t n, const float *sum_to,
                           const float *leaf, float *out)
{
    if (sum_to)
        add_rounded_as(type, true, n, sum_to, leaf, out);
    else
        add_rounded_as(type, false, n, NULL, leaf, out);
}

static void add_rounded(zero_type type, int64_t n, const float *sum_to, const float *leaf,
                        float *out)
{
    BY_TYPE(type, add_rounded_to, n, sum_to, leaf, out);
}

/* ---- sums of squares ---- */

#define BLOCKS        (ZERO_VECTOR_SQUARES / ZERO_TREE_BLOCK)
#define SQUARES_AHEAD 512                           /* bytes */
#define PARTS         (2 * ZERO_TREE_BLOCK / WIDTH) /* registers of doubles in a block */

/* Squares of floats are exact in double, so nothing is rounded before the first
 * addition. */
INLINE double square_block(zero_type type, const void *x, int64_t at)
{
    doubles part[PARTS];
    for (int i = 0; i < PARTS / 2; i++) {
        floats wide = load(type, x, at + i * WIDTH);
        part[2 * i] = low(wide) * low(wide);
        part[2 * i + 1] = high(wide) * high(wide);
    }
    for (int half = PARTS / 2; half > 0; half /= 2)
        for (int i = 0; i < half; i++) part[i] += part[i + half];
    double lane[WIDTH / 2];
    memcpy(lane, part, sizeof lane);
    for (int half = WIDTH / 4; half > 0; half /= 2)
        for (int i = 0; i < half; i++) lane[i] += lane[i + half];
    return lane[0];
}

/* Memory is faster when read in several places at once, each prefetched a little ahead: 19
 * GB/s instead of 15 on one core. */
INLINE void prefetch_block(zero_type type, const void *x, int64_t at)
{
    const size_t size = type == ZERO_FP32 ? 4 : 2;
    const char *next = (const char *)x + (size_t)at * size + SQUARES_AHEAD;
    for (size_t line = 0; line < ZERO_TREE_BLOCK * size; line += 64)
        __builtin_prefetch(next + line, 0, 3);
}

INLINE double squares_of(zero_type type, int64_t n, const void *x)
{
    double sum[BLOCKS];
    const int64_t whole = n / ZERO_TREE_BLOCK, rest = n % ZERO_TREE_BLOCK;
    const int64_t quarter = whole / 4;
    for (int64_t b = 0; b < quarter; b++)
        for (int64_t k = 0; k < 4; k++) {
            int64_t block = k * quarter + b;
            prefetch_block(type, x, block * ZERO_TREE_BLOCK);
            sum[block] = square_block(type, x, block * ZERO_TREE_BLOCK);
        }
    for (int64_t b = 4 * quarter; b < whole; b++)
        sum[b] = square_block(type, x, b * ZERO_TREE_BLOCK);
    float last[ZERO_TREE_BLOCK] = {0}; /* zeros add nothing */
    for (int64_t i = 0; i < rest; i++) last[i] = get(type, x, n - rest + i);
    if (rest > 0) sum[whole] = square_block(ZERO_FP32, last, 0);
    /* Siblings in pairs, level by level; one without a sibling moves up unchanged. */
    int64_t blocks = whole + (rest > 0);
    for (; blocks > 1; blocks = (blocks + 1) / 2) {
        for (int64_t i = 0; i < blocks / 2; i++) sum[i] = sum[2 * i] + sum[2 * i + 1];
        if (blocks % 2) sum[blocks / 2] = sum[blocks - 1];
    }
    return blocks > 0 ? sum[0] : 0.0;
}

static double squares(zero_type type, int64_t n, const void *x)
{
    return BY_TYPE(type, squares_of, n, x);
}

/* Whole registers, and one with the rest and zeros. Numbers are read twice, so the next
 * ones are prefetched the second time. */
INLINE bool exact_squares_of(zero_type type, int64_t n, const void *x,
                             zero_vector_windows *sum)
{
    const int64_t whole = n / WIDTH * WIDTH;
    const size_t size = type == ZERO_FP32 ? 4 : 2;
    float rest[WIDTH] = {0};
    for (int64_t i = whole; i < n; i++) rest[i - whole] = get(type, x, i);
    exact_range range = {{0}, (ints){0} + INT32_MIN};
    range = widen_range(range, load(ZERO_FP32, rest, 0));
    for (int64_t i = 0; i < whole; i += WIDTH) range = widen_range(range, load(type, x, i));
    int top;
    if (!find_top(type, range, &top)) return false;
    exact_windows w = windows_below(top);
    cut(load(ZERO_FP32, rest, 0), &w);
    for (int64_t i = 0; i < whole; i += WIDTH) {
        __builtin_prefetch((const char *)x + (size_t)(i + ZERO_VECTOR_EXACT) * size, 0, 3);
        cut(load(type, x, i), &w);
    }
    count_windows(&w, top, sum);
    return true;
}

static bool exact_squares(zero_type type, int64_t n, const void *x,
                          zero_vector_windows *sum)
{
    return BY_TYPE(type, exact_squares_of, n, x, sum);
}

static void copy_lines(int64_t lines, const void *in, void *out)
{
    zero_vector_sum alone = {.type = ZERO_FP32, .a = in, .read_ahead = true};
    sum_loop(ZERO_FP32, false, 0, &alone, lines * 16, ZERO_FP32, out, true);
}

static void normals(int64_t pairs, const uint64_t *radii, const uint64_t *angles,
                    float *least, float *most)
{
    for (int64_t j = 0; j < pairs; j += PAIRS)
        normal_pairs(radii + j, angles + j, least + 2 * j, most + 2 * j);
}

const zero_vector_kernels ZERO_KERNELS = {.name = ZERO_KERNELS_NAME,
                                          .sum = sum,
                                          .add_rounded = add_rounded,
                                          .squares = squares,
                                          .exact_squares = exact_squares,
                                          .copy_lines = copy_lines,
                                          .normals = normals,
                                          .masks = masks};
