/* arrays.h - the arrays of a call of the fake device, found where they can be read. */
#pragma once

#include <assert.h>
#include <string.h>

#include "fake/device.h"

/* The call that is being recorded. */
typedef struct {
    zero_fake *fake;
    const char *name;
    zero_fake_args *args;
    int64_t *past;
} arrays;

static inline arrays begin(const zero_math *math, const char *name,
                           void (*execute)(zero_fake *f, zero_fake_args *a))
{
    zero_fake *f = zero_fake_of(math);
    zero_fake_call *call = zero_fake_begin(f, name, execute);
    return (arrays){f, name, &call->args, call->past};
}

static inline void *typed(arrays of, zero_type type, const void *x, int64_t n)
{
    return zero_fake_at(of.fake, of.name, x, (size_t)n * zero_type_size(type));
}

static inline float *floats(arrays of, const float *x, int64_t n)
{
    return (float *)typed(of, ZERO_FP32, x, n);
}

static inline int32_t *integers(arrays of, const int32_t *x, int64_t n)
{
    return (int32_t *)zero_fake_at(of.fake, of.name, x, (size_t)n * sizeof *x);
}

/* The host's numbers, which it may change as soon as the call returns. */
static inline const int64_t *past_of(arrays of, const int64_t *past, int64_t B)
{
    if (!past) return NULL;
    assert(B <= ZERO_CACHED_TEXTS);
    memcpy(of.past, past, (size_t)B * sizeof *past);
    return of.past;
}

/* Whole rows from x to the end of its block. */
static inline int64_t rows_from(arrays of, const void *x, size_t bytes)
{
    const zero_fake_block *b = zero_fake_block_of(of.fake, x, bytes);
    return b ? (int64_t)((size_t)(b->seen + b->bytes - (const char *)x) / bytes) : 0;
}
