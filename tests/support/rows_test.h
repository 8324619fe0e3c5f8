/* rows_test.h - calls on rows of 16 bits beside the same calls in fp32, and what of either must agree. */
#pragma once

#include "support/math_machines.h"

/* One call: B samples of T rows of `cols`. */
typedef struct {
    test_pool *pool;
    const machine *m;
    zero_type type; /* of rows and weights */
    int64_t B, T, cols;
    bool in_place;
    /* NaN, infinities, denormals and zeros of both signs are among the numbers. */
    bool is_odd;
    float *oracle; /* results of the oracle, which the first machine writes */
    bool is_oracle;
    int64_t n_results;
} call;

#define RESULTS (1 << 18)

static inline int64_t rows_of(const call *c)
{
    return c->B * c->T;
}

static inline numbers weights(const call *c, int64_t n)
{
    return make_numbers(c->pool, c->type, n);
}

/* n numbers of rows. The odd ones stand in places that differ from array to array. */
static inline numbers rows(const call *c, int64_t n)
{
    static const float odd[] = {NAN,       INFINITY,  -INFINITY, 0.0f,   -0.0f,
                                0x1p-126f, 0x1p-133f, 6.1e-5f,   -1e-7f, 6.5e4f,
                                -3e4f,     3e38f,     1e-38f,    -2e-38f};
    numbers x = make_numbers(c->pool, c->type, n);
    for (int64_t i = 0; c->is_odd && i < n; i += 7)
        set_number(&x, i, odd[(i / 7 + c->pool->n) % (int64_t)COUNT(odd)]);
    return x;
}

static inline void *at(const numbers *x, int is_half)
{
    return is_half ? (void *)x->half : x->wide;
}

static inline zero_type type_at(const call *c, int is_half)
{
    return is_half ? c->type : ZERO_FP32;
}

/* Rounds what a call in fp32 has stored. */
static inline void round_wide(const numbers *x, int64_t n)
{
    uint16_t half;
    for (int64_t i = 0; i < n; i++) {
        zero_convert(ZERO_FP32, x->type, 1, x->wide + i, &half);
        zero_convert(x->type, ZERO_FP32, 1, &half, x->wide + i);
    }
}

/* The oracle's results are kept, and others compared with them: numbers of 16 bits may be off by the
 * last bit of the largest in the array. */
static inline void compare(call *c, int64_t n, const float *x)
{
    float *oracle = c->oracle + c->n_results;
    c->n_results += n;
    assert_true(c->n_results <= RESULTS);
    if (c->is_oracle)
        memcpy(oracle, x, (size_t)n * sizeof *x);
    else if (!c->is_odd)
        assert_true(test_error(n, x, oracle) < 1.0 / 128);
}

/* The halves are the wide numbers rounded. */
static inline void check_rows(call *c, const numbers *x, int64_t n)
{
    float *got = test_floats(c->pool, n);
    zero_convert(x->type, ZERO_FP32, n, x->half, got);
    round_wide(x, n);
    assert_same_numbers(n, got, x->wide);
    compare(c, n, got);
}

/* Results in fp32: of the call on rows of 16 bits, and of the one in fp32. */
static inline void check_floats(call *c, int64_t n, const float *got, const float *want)
{
    assert_same_numbers(n, got, want);
    compare(c, n, got);
}

static inline zero_dropout dropout_of(int with)
{
    return (zero_dropout){{.seed = 4, .purpose = ZERO_RNG_TEST, .sample = 1},
                          with ? 0.25f : 0.0f};
}

static inline int64_t heads_of(const call *c)
{
    return c->cols % 3 == 0 ? 3 : 1;
}

/* ---- one operation, everywhere ---- */

typedef void operation(call *c);

/* B, T, columns: at, below and above whole registers, tiles and pieces. */
static const int64_t shapes[][3] = {{1, 1, 1},  {2, 3, 15},  {1, 5, 16},  {3, 2, 33},
                                    {1, 2, 64}, {2, 3, 257}, {1, 2, 1025}};

static inline void run(operation *op, const machine *m, call c)
{
    void *pool = NULL;
    assert_int_equal(test_pool_make(&pool), 0); /* the same random numbers each time */
    c.pool = pool, c.m = m;
    op(&c);
    test_pool_free(&pool);
}

/* The first machine is the oracle. */
static inline void check_operation(test_pool *pool, operation *op, const machine *m, int n)
{
    float *oracle = test_floats(pool, RESULTS);
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (int way = 0; way < 8; way++)
            for (int i = 0; i < n; i++)
                run(op, &m[i],
                    (call){.type = halves[way & 1],
                           .B = shapes[s][0],
                           .T = shapes[s][1],
                           .cols = shapes[s][2],
                           .in_place = way & 2,
                           .is_odd = way & 4,
                           .oracle = oracle,
                           .is_oracle = i == 0});
}
