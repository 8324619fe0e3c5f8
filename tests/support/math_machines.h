/* math_machines.h - the oracle and the cpu backend on every instruction set, and numbers of 16 bits
 * with the same numbers in fp32. */
#pragma once

#include "support/math_test.h"

#include "base/cpu_level.h"
#include "math/cpu_state.h"

static const zero_type halves[] = {ZERO_BF16, ZERO_FP16};

/* A backend that is ready to compute: the oracle, or the cpu backend on one instruction set. */
typedef struct {
    const zero_backend *ops;
    zero_math math;
} machine;

#define MACHINES (1 + ZERO_CPU_LEVELS)

/* The scratch starts as NaN: its old contents must not matter. */
static inline int make_machines(test_pool *pool, machine m[MACHINES])
{
    const zero_cpu_kernels *kernels;
    int n = 0;
    int64_t bytes = zero_math_scratch() * (int64_t)sizeof(float);
    float *scratch = test_bytes(pool, bytes);
    memset(scratch, 0xff, (size_t)bytes);
    m[n++] = (machine){&zero_backend_naive, {.scratch = scratch}};
    for (; (kernels = zero_cpu_kernels_at(n - 1)); n++)
        m[n] = (machine){&zero_backend_cpu,
                         {.state = {[ZERO_CPU_KERNELS] = kernels}, .scratch = scratch}};
    return n;
}

/* The same numbers twice. The 16-bit ones are aligned to two bytes only. */
typedef struct {
    zero_type type;
    uint16_t *half;
    float *wide;
} numbers;

static inline numbers make_numbers(test_pool *pool, zero_type type, int64_t n)
{
    numbers x = {.type = type, .wide = test_floats(pool, n)};
    x.half = (uint16_t *)test_bytes(pool, 2 * (n + 1)) + 1;
    zero_convert(ZERO_FP32, type, n, x.wide, x.half);
    zero_convert(type, ZERO_FP32, n, x.half, x.wide);
    return x;
}

static inline void set_number(numbers *x, int64_t i, float value)
{
    zero_convert(ZERO_FP32, x->type, 1, &value, x->half + i);
    zero_convert(x->type, ZERO_FP32, 1, x->half + i, x->wide + i);
}

/* Equal bits; only NaN payloads may differ. */
static inline void assert_same_numbers(int64_t n, const float *got, const float *want)
{
    for (int64_t i = 0; i < n; i++) {
        if (isnan(got[i]) && isnan(want[i])) continue;
        if (memcmp(got + i, want + i, sizeof *got) != 0)
            fail_msg("element %lld: %g, not %g", (long long)i, (double)got[i],
                     (double)want[i]);
    }
}
