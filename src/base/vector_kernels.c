#include "base/vector.h"

#include "base/vector_lanes.h"

/* This file is compiled once per instruction set; the build gives each its table's name. */
extern const zero_vector_kernels ZERO_KERNELS;

/* Types are constants wherever these are inlined, so that every mixture of types gets a loop
 * of its own. */
INLINE lanes load(zero_type type, const void *in, int64_t i)
{
    if (type == ZERO_FP32) return *(const lanes *)((const float *)in + i);
    bits16 half = *(const bits16 *)((const uint16_t *)in + i);
    return type == ZERO_BF16 ? from_bf16(half) : from_fp16(half);
}

INLINE void store(zero_type type, lanes x, void *out, int64_t i, bool streaming)
{
    if (type == ZERO_FP32) {
        float *to = (float *)out + i;
        if (streaming)
            stream(to, x);
        else
            *(lanes *)to = x;
    } else {
        uint16_t *to = (uint16_t *)out + i;
        bits16 half = type == ZERO_BF16 ? to_bf16(x) : to_fp16(x);
        if (streaming)
            stream16(to, half);
        else
            *(bits16 *)to = half;
    }
}

/* One number, as half.h defines it: the rest behind the last whole lanes. */
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

/* Asks for what the next tile reads here while this one is summed: arrays that change every
 * few KiB outrun the CPU's own prefetching. From memory worth 5 to 15 %; in caches it costs
 * as much. */
INLINE void prefetch(zero_type type, const void *in, int64_t i)
{
    size_t size = type == ZERO_FP32 ? 4 : 2;
    __builtin_prefetch((const char *)in + (size_t)(i + ZERO_VECTOR_TILE) * size, 0, 2);
}

/* Whole lanes, then one by one in the same order. */
INLINE void sum_loop(zero_type type, bool pair, int depth, const zero_vector_sum *sum,
                     int64_t n, zero_type to, void *out, bool streaming)
{
    const void *a = sum->a, *b = sum->b;
    bool ahead = sum->read_ahead;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        if (ahead) prefetch(type, a, i);
        lanes x = load(type, a, i);
        if (pair) {
            if (ahead) prefetch(type, b, i);
            x += load(type, b, i);
        }
        for (int k = depth; k-- > 0;) x += *(const lanes *)(sum->pending[k] + i);
        store(to, x, out, i, streaming);
    }
    for (; i < n; i++) {
        float x = get(type, a, i);
        if (pair) x += get(type, b, i);
        for (int k = depth; k-- > 0;) x += sum->pending[k][i];
        put(to, x, out, i);
    }
}

INLINE void sum_as(zero_type type, bool pair, const zero_vector_sum *sum, int64_t n,
                   zero_type to, void *out, bool streaming)
{
    if (sum->depth == 0)
        sum_loop(type, pair, 0, sum, n, to, out, streaming);
    else
        sum_loop(type, pair, sum->depth, sum, n, to, out, streaming);
}

INLINE void sum_to(zero_type type, bool pair, const zero_vector_sum *sum, int64_t n,
                   zero_type to, void *out, bool streaming)
{
    if (to == ZERO_FP32)
        sum_as(type, pair, sum, n, ZERO_FP32, out, streaming);
    else if (to == ZERO_BF16)
        sum_as(type, pair, sum, n, ZERO_BF16, out, streaming);
    else
        sum_as(type, pair, sum, n, ZERO_FP16, out, streaming);
}

INLINE void sum_of(zero_type type, const zero_vector_sum *sum, int64_t n, zero_type to,
                   void *out, bool streaming)
{
    if (sum->b)
        sum_to(type, true, sum, n, to, out, streaming);
    else
        sum_to(type, false, sum, n, to, out, streaming);
}

static void sum(const zero_vector_sum *sum, int64_t n, zero_type to, void *out,
                bool streaming)
{
    if (sum->type == ZERO_FP32)
        sum_of(ZERO_FP32, sum, n, to, out, streaming);
    else if (sum->type == ZERO_BF16)
        sum_of(ZERO_BF16, sum, n, to, out, streaming);
    else
        sum_of(ZERO_FP16, sum, n, to, out, streaming);
}

static void copy_lines(int64_t lines, const void *in, void *out)
{
    zero_vector_sum alone = {.type = ZERO_FP32, .a = in, .read_ahead = true};
    sum_loop(ZERO_FP32, false, 0, &alone, lines * 16, ZERO_FP32, out, true);
}

const zero_vector_kernels ZERO_KERNELS = {
    .name = ZERO_KERNELS_NAME, .sum = sum, .copy_lines = copy_lines};
