/* cpu_adamw.h - the optimizer's loop, a register at a time: one pass reads a gradient of
 * any type, updates master and moments, and writes the parameter. If asked, it compares the
 * old parameter with the old master first, which takes 6 to 8 % longer (one core of an
 * EPYC). Included by cpu_kernels.c, which is compiled once per instruction set. */
#pragma once

#include "base/elementary.h"
#include "base/stream.h"
#include "base/vector_lanes.h"
#include "math/backend.h"

#define ADAMW_AHEAD 1024 /* bytes prefetched ahead */

/* The numbers of one step, the same for all elements: in memory as the loop reads them. */
typedef struct {
    floats grad_scale, beta1, rest1, beta2, rest2, unbias1, unbias2, lr, decay, eps;
} adamw_factors;

INLINE floats adamw_all(float x)
{
    return (floats){0} + x;
}

static adamw_factors adamw_prepare(const zero_adamw *h)
{
    double unbias1 = 1.0 / (1.0 - zero_power((double)h->beta1, h->step));
    double unbias2 = 1.0 / (1.0 - zero_power((double)h->beta2, h->step));
    return (adamw_factors){
        .grad_scale = adamw_all(h->grad_scale),
        .beta1 = adamw_all(h->beta1),
        .rest1 = adamw_all(1.0f - h->beta1),
        .beta2 = adamw_all(h->beta2),
        .rest2 = adamw_all(1.0f - h->beta2),
        .unbias1 = adamw_all((float)unbias1),
        .unbias2 = adamw_all((float)unbias2),
        .lr = adamw_all(h->lr),
        .decay = adamw_all(h->lr * h->weight_decay),
        .eps = adamw_all(h->eps),
    };
}

/* The current place in each array; param is NULL with fp32. */
typedef struct {
    const char *grad;
    float *master, *m, *v;
    uint16_t *param;
} adamw_place;

INLINE void adamw_advance(zero_type type, int64_t n, adamw_place *at)
{
    at->grad += (type == ZERO_FP32 ? 4 : 2) * n;
    at->master += n;
    at->m += n;
    at->v += n;
    if (type != ZERO_FP32) at->param += n;
}

/* Numbers below `least` become zero of their sign; NaN stays. */
INLINE floats adamw_flush(floats x, float least)
{
    const bits32 sign = (bits32){0} + 0x80000000u;
    uint32_t limit;
    memcpy(&limit, &least, sizeof limit);
    bits32 size = (bits32)x & ~sign;
    bits32 is_small = (bits32)((ints)size < (ints)((bits32){0} + limit));
    return (floats)((bits32)x & (~is_small | sign));
}

/* Loshchilov & Hutter 2019, algorithm 2, on a register's worth. */
INLINE floats adamw_step(const adamw_factors *f, floats grad, const adamw_place *at)
{
    floats g = grad * f->grad_scale;
    floats m = adamw_flush(*(floats *)at->m, ZERO_ADAMW_LEAST_MOMENT);
    floats v = adamw_flush(*(floats *)at->v, ZERO_ADAMW_LEAST_MOMENT);
    m = f->beta1 * m + f->rest1 * g;     /* line 7 */
    v = f->beta2 * v + f->rest2 * g * g; /* line 8 */
    floats moving = adamw_flush(m, ZERO_ADAMW_LEAST_MOVE) * f->unbias1;
    floats step = f->lr * moving / (square_root(v * f->unbias2) + f->eps);
    floats old = *(floats *)at->master, moved = old - f->decay * old - step; /* line 12 */
    *(floats *)at->m = m;
    *(floats *)at->v = v;
    *(floats *)at->master = moved;
    return moved;
}

/* x rounded to a type, but for what half.h makes something else of in bf16 than the nearest
 * number: denormal numbers and NaN. */
INLINE bits16 adamw_nearest(zero_type type, floats x)
{
    if (type == ZERO_FP16) return to_fp16(x);
#if defined(__AVX512BF16__)
    return to_bf16(x);
#else
    bits32 bits = (bits32)x;
    return narrow((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
#endif
}

/* True if parameters are their masters, rounded. False may be wrong. */
INLINE bool adamw_is_sound(zero_type type, const adamw_place *at)
{
    return !is_any(adamw_nearest(type, *(floats *)at->master) ^ *(bits16 *)at->param);
}

/* Notes the first of n parameters that is not its master, rounded. */
static void adamw_note(const zero_adamw_arrays *a, int64_t n, const float *master,
                       const uint16_t *param)
{
    int64_t number = a->first + (master - a->master);
    for (int64_t k = 0; k < n; k++) {
        uint16_t rounded =
            a->type == ZERO_BF16 ? zero_to_bf16(master[k]) : zero_to_fp16(master[k]);
        if (rounded == param[k]) continue;
        uint64_t word = zero_changed(number + k);
        if (word > *a->changed) *a->changed = word;
        return;
    }
}

INLINE void adamw_register(zero_type type, const adamw_factors *f, const adamw_place *at,
                           bool streaming)
{
    floats moved = adamw_step(f, load(type, at->grad, 0), at);
    if (type != ZERO_FP32) store(type, moved, at->param, 0, streaming);
}

/* At most as many elements as a register holds, padded with zeros. */
INLINE void adamw_few(zero_type type, const adamw_factors *f, int64_t n,
                      const adamw_place *at, const zero_adamw_arrays *checked)
{
    float grad[WIDTH] = {0}, master[WIDTH] = {0}, m[WIDTH] = {0}, v[WIDTH] = {0};
    uint16_t param[WIDTH];
    const size_t bytes = (size_t)n * sizeof(float);
    const adamw_place padded = {(char *)grad, master, m, v, param};
    if (checked) adamw_note(checked, n, at->master, at->param);
    memcpy(grad, at->grad, type == ZERO_FP32 ? bytes : bytes / 2);
    memcpy(master, at->master, bytes);
    memcpy(m, at->m, bytes);
    memcpy(v, at->v, bytes);
    adamw_register(type, f, &padded, false);
    memcpy(at->master, master, bytes);
    memcpy(at->m, m, bytes);
    memcpy(at->v, v, bytes);
    if (type != ZERO_FP32) memcpy(at->param, param, bytes / 2);
}

/* Four streams from memory outrun the CPU's own prefetching. */
INLINE void adamw_prefetch(const adamw_place *at)
{
    __builtin_prefetch(at->grad + ADAMW_AHEAD, 0, 3);
    __builtin_prefetch((const char *)at->master + ADAMW_AHEAD, 1, 3);
    __builtin_prefetch((const char *)at->m + ADAMW_AHEAD, 1, 3);
    __builtin_prefetch((const char *)at->v + ADAMW_AHEAD, 1, 3);
}

/* Elements before the first aligned store to param; at most n. */
INLINE int64_t adamw_head(zero_type type, int64_t n, const uint16_t *param)
{
    if (type == ZERO_FP32) return 0;
    int64_t head = (int64_t)(-(uintptr_t)param % (2 * WIDTH) / 2);
    return zero_min(head, n);
}

/* Whole registers up to one whose parameters may have changed; returns their elements.
 * 16-bit parameters are not read before the next forward pass, so they are stored past the
 * caches, unless they have been read there to be checked. */
INLINE int64_t adamw_sound(zero_type type, const adamw_factors *f, int64_t n,
                           adamw_place *at, bool checks)
{
    int64_t i = 0;
    for (; i + WIDTH <= n && (!checks || adamw_is_sound(type, at)); i += WIDTH) {
        adamw_prefetch(at);
        if (checks) __builtin_prefetch((const char *)at->param + ADAMW_AHEAD, 1, 3);
        adamw_register(type, f, at, !checks);
        adamw_advance(type, WIDTH, at);
    }
    return i;
}

INLINE void adamw_as(zero_type type, bool checks, const zero_adamw *h,
                     const zero_adamw_arrays *a)
{
    const adamw_factors f = adamw_prepare(h);
    adamw_place at = {a->grad, a->master, a->m, a->v, a->param};
    int64_t few = adamw_head(type, a->n, at.param);
    for (int64_t left = a->n; left > 0; few = zero_min(left, WIDTH)) {
        if (few > 0) adamw_few(type, &f, few, &at, checks ? a : NULL);
        adamw_advance(type, few, &at);
        left -= few;
        left -= adamw_sound(type, &f, left, &at, checks);
    }
    if (type != ZERO_FP32 && !checks) zero_stream_fence();
}

static void adamw(const zero_adamw *h, const zero_adamw_arrays *a)
{
    if (a->type == ZERO_FP32)
        adamw_as(ZERO_FP32, false, h, a);
    else if (a->type == ZERO_BF16 && a->changed)
        adamw_as(ZERO_BF16, true, h, a);
    else if (a->type == ZERO_BF16)
        adamw_as(ZERO_BF16, false, h, a);
    else if (a->changed)
        adamw_as(ZERO_FP16, true, h, a);
    else
        adamw_as(ZERO_FP16, false, h, a);
}
