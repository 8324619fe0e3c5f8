/* fake_arrays.h - the arrays of a call of the fake device, found where they can be read. */
#pragma once

#include "math/fake_device.h"

/* The call that is being recorded. */
typedef struct {
    zero_fake *fake;
    const char *name;
    zero_fake_args *args;
} arrays;

static inline arrays begin(const zero_math *math, const char *name,
                           void (*execute)(zero_fake *f, zero_fake_args *a))
{
    zero_fake *f = zero_fake_of(math);
    return (arrays){f, name, &zero_fake_begin(f, name, execute)->args};
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

/* Whole rows from x to the end of its block. */
static inline int64_t rows_from(arrays of, const void *x, size_t bytes)
{
    const zero_fake_block *b = zero_fake_block_of(of.fake, x, bytes);
    return b ? (int64_t)((size_t)(b->seen + b->bytes - (const char *)x) / bytes) : 0;
}
