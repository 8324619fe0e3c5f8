/* math_test.h - random arrays that live until the end of a test, how they are compared, and
 * backends that are ready to compute. */
#pragma once

#include "support/test.h"

#include "base/rng.h"
#include "math/backend.h"

#define assert_same(n, got, want) \
    assert_memory_equal(got, want, (size_t)(n) * sizeof(float))

/* All that a test has allocated; cmocka gives every test its own in *state. */
typedef struct {
    void *mem[4096];
    int n;
} test_pool;

static inline int test_pool_make(void **state)
{
    *state = calloc(1, sizeof(test_pool));
    return *state ? 0 : -1;
}

static inline int test_pool_free(void **state)
{
    test_pool *pool = *state;
    for (int i = 0; i < pool->n; i++) free(pool->mem[i]);
    free(pool);
    return 0;
}

static inline void *test_bytes(test_pool *pool, int64_t bytes)
{
    assert_true(pool->n < (int)(sizeof pool->mem / sizeof pool->mem[0]));
    void *mem = malloc((size_t)bytes + 1);
    assert_non_null(mem);
    return pool->mem[pool->n++] = mem;
}

/* n standard normal numbers, different at each call of a test. */
static inline float *test_floats(test_pool *pool, int64_t n)
{
    zero_rng rng = {.seed = 7, .purpose = ZERO_RNG_TEST, .tensor = (uint64_t)pool->n};
    float *x = test_bytes(pool, n * (int64_t)sizeof *x);
    zero_rng_normal(&rng, 0, n, x);
    return x;
}

static inline float *test_copy(test_pool *pool, int64_t n, const float *x)
{
    float *copy = test_bytes(pool, n * (int64_t)sizeof *copy);
    memcpy(copy, x, (size_t)n * sizeof *copy);
    return copy;
}

static inline int32_t *test_tokens(test_pool *pool, int64_t n, int64_t V)
{
    zero_rng rng = {.seed = 8, .purpose = ZERO_RNG_TEST, .tensor = (uint64_t)pool->n};
    int32_t *token = test_bytes(pool, n * (int64_t)sizeof *token);
    for (int64_t i = 0; i < n; i++)
        token[i] = (int32_t)(zero_rng_bits(&rng, (uint64_t)i) % (uint64_t)V);
    return token;
}

/* The largest difference, relative to the largest number wanted; infinite if NaNs differ. */
static inline double test_error(int64_t n, const float *got, const float *want)
{
    double error = 0.0, size = 1e-30;
    for (int64_t i = 0; i < n; i++) {
        if (isnan(got[i]) != isnan(want[i])) return INFINITY;
        if (isnan(got[i])) continue;
        error = fmax(error, fabs((double)got[i] - (double)want[i]));
        size = fmax(size, fabs((double)want[i]));
    }
    return error / size;
}

/* The state of a backend that is ready to compute. All share one scratch: calls come one after
 * the other. */
static inline zero_math test_opened(const zero_backend *backend)
{
    static float scratch[1 << 19];
    assert_true(zero_math_scratch() <= (int64_t)COUNT(scratch));
    zero_math math = {.scratch = scratch};
    assert_ok(backend->open(&math));
    return math;
}

/* A zero_math.poll; poll_arg points to an int. */
static inline void test_count_poll(void *arg)
{
    ++*(int *)arg;
}

static inline zero_adamw test_recipe(void)
{
    return (zero_adamw){.lr = 1e-2f,
                        .beta1 = 0.9f,
                        .beta2 = 0.95f,
                        .eps = 1e-8f,
                        .weight_decay = 0.1f,
                        .grad_scale = 0.5f,
                        .step = 3};
}

__attribute__((constructor)) static void test_has_pools(void)
{
    around.before = test_pool_make;
    around.after = test_pool_free;
}
