/* attention_laws.h - laws of attention, whoever computes it. */
#pragma once

#include "support/math_test.h"

/* Everything that forward and backward read and write, in the host's memory. */
typedef struct {
    zero_attention s;
    int64_t n, n_in, rows; /* B T H D, B T (H + 2 K) D, B H T */
    float *qkv, *dout, *dqkv;
    int shift; /* of the device's arrays, in bytes: 4 forbids loads of 16 bytes */
} problem;

static inline problem make_problem(test_pool *pool, zero_attention s)
{
    problem x = {.s = s, .n = s.B * s.T * s.H * s.D, .rows = s.B * s.H * s.T};
    x.n_in = s.B * s.T * (s.H + 2 * s.K) * s.D;
    x.qkv = test_floats(pool, x.n_in);
    x.s.dout = x.dout = test_floats(pool, x.n);
    x.s.out = test_floats(pool, x.n), x.s.lse = test_floats(pool, x.rows);
    x.dqkv = test_floats(pool, x.n_in);
    zero_attention_rows(&x.s, x.qkv, x.dqkv);
    return x;
}

/* The same inputs, with outputs of its own. */
static inline problem same_inputs(test_pool *pool, const problem *of)
{
    problem x = *of;
    x.s.out = test_floats(pool, x.n), x.s.lse = test_floats(pool, x.rows);
    x.dqkv = test_floats(pool, x.n_in);
    zero_attention_rows(&x.s, x.qkv, x.dqkv);
    return x;
}

/* Computes forward and backward. */
typedef void solver(test_pool *pool, const problem *x);

static inline void check_close(const problem *got, const problem *want, double tolerance)
{
    assert_true(test_error(want->n, got->s.out, want->s.out) < tolerance);
    assert_true(test_error(want->rows, got->s.lse, want->s.lse) < tolerance);
    assert_true(test_error(want->n_in, got->dqkv, want->dqkv) < tolerance);
}

/* A sample has the bits of its own in any batch. */
static inline void check_batch(test_pool *pool, solver *solve, zero_type factors)
{
    const int64_t T = 66, C = 40, H = 2, n = T * C;
    zero_attention spec = {.B = 3, .T = T, .H = H, .K = H, .D = C / H, .factors = factors};
    spec.dropout = (zero_dropout){{.purpose = ZERO_RNG_TEST}, 0.2f};
    problem all = make_problem(pool, spec);
    solve(pool, &all);
    for (int64_t b = 0; b < 3; b++) {
        spec.B = 1;
        spec.dropout.stream.sample = (uint64_t)b;
        problem one = make_problem(pool, spec);
        memcpy(one.qkv, all.qkv + b * 3 * n, (size_t)(3 * n) * sizeof(float));
        memcpy(one.dout, all.dout + b * n, (size_t)n * sizeof(float));
        solve(pool, &one);
        assert_same(n, one.s.out, (float *)all.s.out + b * n);
        assert_same(H * T, one.s.lse, all.s.lse + b * H * T);
        assert_same(3 * n, one.dqkv, all.dqkv + b * 3 * n);
    }
}

/* Changing positions from `t` on changes nothing before them. */
static inline void check_past(test_pool *pool, solver *solve, zero_type factors)
{
    const int64_t T = 100, C = 48, cuts[] = {1, 12, 40, 48, 64, 77, 99};
    problem was = make_problem(
        pool,
        (zero_attention){.B = 1, .T = T, .H = 2, .K = 2, .D = C / 2, .factors = factors});
    solve(pool, &was);
    for (size_t i = 0; i < COUNT(cuts); i++) {
        const int64_t t = cuts[i];
        problem is = same_inputs(pool, &was);
        is.qkv = test_floats(pool, is.n_in);
        memcpy(is.qkv, was.qkv, (size_t)(t * 3 * C) * sizeof(float));
        zero_attention_rows(&is.s, is.qkv, is.dqkv);
        solve(pool, &is);
        assert_same(t * C, is.s.out, was.s.out);
        for (int64_t h = 0; h < 2; h++) assert_same(t, is.s.lse + h * T, was.s.lse + h * T);
        assert_memory_not_equal(is.s.out, was.s.out, (size_t)is.n * sizeof(float));
    }
}

/* The gradients of positions from t on are zero before t's outputs are used. */
static inline void check_future(test_pool *pool, solver *solve, zero_type factors)
{
    const int64_t T = 100, C = 48, t = 65;
    problem x = make_problem(
        pool,
        (zero_attention){.B = 1, .T = T, .H = 2, .K = 2, .D = C / 2, .factors = factors});
    memset(x.dout + t * C, 0, (size_t)((T - t) * C) * sizeof(float));
    solve(pool, &x);
    for (int64_t i = t * 3 * C; i < T * 3 * C; i++) assert_true(x.dqkv[i] == 0.0f);
    assert_true(x.dqkv[t * 3 * C - 1] != 0.0f);
}

/* Scores whose exponentials, or their sum, leave the range of floats. Returns the problem. */
static inline problem check_large_scores(test_pool *pool, solver *solve, solver *oracle,
                                         double tolerance)
{
    problem want =
        make_problem(pool, (zero_attention){.B = 1, .T = 70, .H = 1, .K = 1, .D = 16});
    for (int64_t i = 0; i < 3 * want.n; i++) want.qkv[i] *= i % 48 < 32 ? 30.0f : 1.0f;
    problem got = same_inputs(pool, &want);
    oracle(pool, &want);
    solve(pool, &got);
    /* Scores are thousands, so their rounding alone is 1e-4. */
    assert_true(test_error(want.n, got.s.out, want.s.out) < 1e-3);
    assert_true(test_error(want.rows, got.s.lse, want.s.lse) < tolerance);
    assert_true(test_error(want.n_in, got.dqkv, want.dqkv) < 1e-3);
    return got;
}

static inline bool is_wrong(float x)
{
    return isnan(x) || isinf(x);
}

/* A number that fp16 does not have, or that no type has, must show where it was used. */
static inline void check_wrong(test_pool *pool, solver *solve, zero_type factors,
                               float wrong)
{
    enum { TIME = 70, SIZE = 4, AT = 20, LAST = TIME - 1 };
    const zero_attention spec = {
        .B = 1, .T = TIME, .H = 1, .K = 1, .D = SIZE, .factors = factors};
    problem query = make_problem(pool, spec), key = make_problem(pool, spec);
    problem value = make_problem(pool, spec), dout = make_problem(pool, spec);
    query.qkv[LAST * 3 * SIZE + 1] = wrong;
    key.qkv[AT * 3 * SIZE + SIZE + 1] = wrong;
    /* Minus infinity would be a score of probability zero. */
    key.qkv[AT * 3 * SIZE + 1] = copysignf(key.qkv[AT * 3 * SIZE + 1], wrong);
    value.qkv[AT * 3 * SIZE + 2 * SIZE + 1] = wrong;
    dout.dout[LAST * SIZE + 1] = wrong;
    solve(pool, &query), solve(pool, &key), solve(pool, &value), solve(pool, &dout);
    assert_true(is_wrong(((float *)query.s.out)[LAST * SIZE]) &&
                is_wrong(query.s.lse[LAST]));
    assert_true(is_wrong(query.dqkv[LAST * 3 * SIZE]));
    assert_true(is_wrong(key.s.lse[AT]) && is_wrong(key.dqkv[AT * 3 * SIZE]));
    assert_true(is_wrong(((float *)value.s.out)[LAST * SIZE + 1]) &&
                !is_wrong(value.s.lse[LAST]));
    assert_true(is_wrong(value.dqkv[LAST * 3 * SIZE]));
    assert_true(is_wrong(dout.dqkv[2 * SIZE + 1]) &&
                !is_wrong(((float *)dout.s.out)[LAST * SIZE]));
    assert_true(is_wrong(dout.dqkv[LAST * 3 * SIZE]));
}
