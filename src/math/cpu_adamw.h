/* cpu_adamw.h - the optimizer's loop, a register at a time: one pass reads a gradient of any
 * type, updates master and moments, and writes the parameter. If asked, it compares the old parameter
 * with the old master first, which takes 4 % longer (one core of an EPYC, from memory). Included by
 * cpu_kernels.c, which is compiled once per instruction set. */
#pragma once

#include <math.h>
#include <string.h>

#include "base/number.h"
#include "base/stream.h"
#include "base/vector_lanes.h"
#include "math/backend.h"

#define ADAMW_AHEAD 1024 /* bytes prefetched ahead */

/* The numbers of one step, the same for all elements. */
typedef struct {
    float grad_scale, beta1, rest1, beta2, rest2, unbias1, unbias2, lr, decay, eps;
} adamw_factors;

static adamw_factors adamw_prepare(const zero_adamw *h)
{
    return (adamw_factors){
        .grad_scale = h->grad_scale,
        .beta1 = h->beta1,
        .rest1 = 1.0f - h->beta1,
        .beta2 = h->beta2,
        .rest2 = 1.0f - h->beta2,
        .unbias1 = (float)(1.0 / (1.0 - pow((double)h->beta1, (double)h->step))),
        .unbias2 = (float)(1.0 / (1.0 - pow((double)h->beta2, (double)h->step))),
        .lr = h->lr,
        .decay = h->lr * h->weight_decay,
        .eps = h->eps,
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

/* The parameters of a register, and the bits in which they are not their masters, rounded. */
static __attribute__((noinline, cold)) void adamw_note(const zero_adamw_arrays *a,
                                                       const uint16_t *param, bits16 differ)
{
    int64_t k = 0;
    while (differ[k] == 0) k++;
    uint64_t word = zero_changed(a->first + (param - (const uint16_t *)a->param) + k);
    if (word > *a->changed) *a->changed = word;
}

INLINE bits16 adamw_compare(zero_type type, const adamw_place *at)
{
    floats old = *(floats *)at->master;
    return *(bits16 *)at->param ^ (type == ZERO_BF16 ? to_bf16(old) : to_fp16(old));
}

INLINE void adamw_register(zero_type type, const adamw_factors *f, const adamw_place *at,
                           bool streaming)
{
    floats moved = adamw_step(f, load(type, at->grad, 0), at);
    if (type != ZERO_FP32) store(type, moved, at->param, 0, streaming);
}

/* Fewer elements than a register holds, padded with zeros, which are zeros rounded as well. */
INLINE void adamw_few(zero_type type, const adamw_factors *f, int64_t n,
                      const adamw_place *at, const zero_adamw_arrays *checked)
{
    float grad[WIDTH] = {0}, master[WIDTH] = {0}, m[WIDTH] = {0}, v[WIDTH] = {0};
    uint16_t param[WIDTH] = {0};
    const size_t bytes = (size_t)n * sizeof(float);
    const adamw_place padded = {(char *)grad, master, m, v, param};
    memcpy(grad, at->grad, type == ZERO_FP32 ? bytes : bytes / 2);
    memcpy(master, at->master, bytes);
    memcpy(m, at->m, bytes);
    memcpy(v, at->v, bytes);
    if (checked) {
        memcpy(param, at->param, bytes / 2);
        bits16 differ = adamw_compare(type, &padded);
        if (is_any(differ)) adamw_note(checked, at->param, differ);
    }
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

/* 16-bit parameters are not read before the next forward pass, so they are stored past the
 * caches, unless they have been read there to be checked. */
INLINE void adamw_as(zero_type type, bool checks, const zero_adamw *h,
                     const zero_adamw_arrays *a)
{
    const adamw_factors f = adamw_prepare(h);
    const zero_adamw_arrays *checked = checks ? a : NULL;
    adamw_place at = {a->grad, a->master, a->m, a->v, a->param};
    int64_t n = a->n, i = adamw_head(type, n, at.param);
    if (i > 0) adamw_few(type, &f, i, &at, checked);
    adamw_advance(type, i, &at);
    for (; i + WIDTH <= n; i += WIDTH) {
        adamw_prefetch(&at);
        if (checks) {
            __builtin_prefetch((const char *)at.param + ADAMW_AHEAD, 1, 3);
            bits16 differ = adamw_compare(type, &at);
            if (is_any(differ)) adamw_note(a, at.param, differ);
        }
        adamw_register(type, &f, &at, !checks);
        adamw_advance(type, WIDTH, &at);
    }
    if (i < n) adamw_few(type, &f, n - i, &at, checked);
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
