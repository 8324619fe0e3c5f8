/* Attention's kernels against the oracle, on a GPU or on the emulator; and which inputs an output
 * may depend on. Every call is made twice, with threads in either order, and gives equal bits
 * (kernels_test.h). */
#include "gpu/kernels_test.h"

/* The error of single precision: a GPU's exp2f alone is off by 2 in the last place, 2.4e-7, of each
 * probability and of their sum. A wrong term is off by 1e-3 or more. */
#define TOLERANCE 3e-6

#define LARGEST_GPU 90

static const zero_backend *const naive = &zero_backend_naive;

/* Everything that forward and backward read and write, in the host's memory. */
typedef struct {
    zero_attention s;
    int64_t n, n_in, rows; /* B T H D, B T (H + 2 K) D, B H T */
    float *qkv, *dout, *dqkv;
    int shift; /* of the device's arrays, in bytes: 4 forbids loads of 16 bytes */
} problem;

static problem make_problem(test_pool *pool, zero_attention s)
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
static problem same_inputs(test_pool *pool, const problem *of)
{
    problem x = *of;
    x.s.out = test_floats(pool, x.n), x.s.lse = test_floats(pool, x.rows);
    x.dqkv = test_floats(pool, x.n_in);
    zero_attention_rows(&x.s, x.qkv, x.dqkv);
    return x;
}

static void solve_naively(test_pool *pool, const problem *x)
{
    zero_math math = test_opened(naive);
    zero_attention s = x->s;
    s.work = test_floats(pool, naive->attention_workspace(&s));
    naive->attention(&math, &s);
    naive->attention_backward(&math, &s);
}

/* Outputs begin as NaN. Forward needs no gradients. */
static void solve_on(int capability, const problem *x)
{
    const int64_t float_bytes = (int64_t)sizeof(float);
    const int64_t bytes = x->n * float_bytes, lse_bytes = x->rows * float_bytes;
    const int64_t in_bytes = x->n_in * float_bytes;
    test_gpu g = test_gpu_begin(test_gpu_shared);
    zero_attention s = x->s, forward;
    s.work = NULL;
    const void *qkv = test_gpu_in(&g, x->qkv, in_bytes, x->shift);
    s.out = (float *)test_gpu_out(&g, NULL, bytes, x->shift);
    s.lse = (float *)test_gpu_out(&g, NULL, lse_bytes, x->shift);
    s.dout = (const float *)test_gpu_in(&g, x->dout, bytes, x->shift);
    void *dqkv = test_gpu_out(&g, NULL, in_bytes, x->shift);
    /* Half of the key heads at a time. */
    const zero_cuda_room room =
        test_gpu_room(&g, 4 * s.T * (s.B * s.K / 2 + 1) * (s.H / s.K));
    forward = s, forward.dout = NULL;
    zero_attention_rows(&forward, qkv, NULL);
    zero_attention_rows(&s, qkv, dqkv);
    while (test_gpu_next(&g)) {
        zero_cuda_attention(g.stream, capability, &forward);
        zero_cuda_attention_backward(g.stream, capability, &s, room);
    }
    memcpy(x->s.out, test_gpu_result(&g, s.out), (size_t)bytes);
    memcpy(x->s.lse, test_gpu_result(&g, s.lse), (size_t)lse_bytes);
    memcpy(x->dqkv, test_gpu_result(&g, dqkv), (size_t)in_bytes);
}

static void solve(const problem *x)
{
    solve_on(LARGEST_GPU, x);
}

static void check_close(const problem *got, const problem *want, double tolerance)
{
    assert_true(test_error(want->n, got->s.out, want->s.out) < tolerance);
    assert_true(test_error(want->rows, got->s.lse, want->s.lse) < tolerance);
    assert_true(test_error(want->n_in, got->dqkv, want->dqkv) < tolerance);
}

/* Factors are off by up to 2^-9 in bf16 and 2^-12 in fp16, and sums by less than four times that of
 * the largest. Both types have one source. */
static void check_against_oracle(zero_attention s, zero_type type)
{
    void *pool = NULL;
    assert_int_equal(test_pool_make(&pool), 0);
    problem want = make_problem(pool, s), got = same_inputs(pool, &want);
    solve_naively(pool, &want);
    solve(&got);
    check_close(&got, &want, TOLERANCE);
    got.s.factors = type;
    solve(&got);
    check_close(&got, &want, type == ZERO_BF16 ? 1.0 / 128 : 1.0 / 512);
    test_pool_free(&pool);
}

/* B T C H: at, below and above whole tiles of queries, keys and channels. Heads of more than 128
 * channels are computed in pieces, and in fp32. */
static const int64_t sizes[][4] = {
    {1, 1, 1, 1},    {2, 5, 6, 2},    {1, 15, 40, 1},  {2, 16, 16, 1},  {1, 17, 34, 2},
    {1, 64, 33, 1},  {1, 67, 64, 1},  {1, 100, 80, 2}, {1, 67, 80, 1},  {1, 65, 97, 1},
    {1, 67, 128, 1}, {1, 130, 64, 1}, {1, 67, 160, 1}, {1, 20, 300, 1}, {2, 70, 64, 4},
};

static void check_sizes(float p, zero_type type)
{
    for (size_t i = 0; i < COUNT(sizes); i++)
        for (int64_t K = 1; K <= sizes[i][3]; K++)
            if (sizes[i][3] % K == 0)
                check_against_oracle(
                    (zero_attention){.B = sizes[i][0],
                                     .T = sizes[i][1],
                                     .H = sizes[i][3],
                                     .K = K,
                                     .D = sizes[i][2] / sizes[i][3],
                                     .first_head = 3,
                                     .dropout = {{.seed = 3, .purpose = ZERO_RNG_TEST}, p}},
                    type);
}

static void attention_agrees_with_the_oracle(void **state)
{
    (void)state;
    check_sizes(0.0f, ZERO_BF16);
}

static void attention_with_dropout_agrees_with_the_oracle(void **state)
{
    (void)state;
    check_sizes(0.3f, ZERO_FP16);
}

/* The output of a query that sees one key is its value, rounded to the type of factors, or as it is
 * where the GPU or the kernels do not have that type or size. */
static void check_values(test_pool *pool, int capability, zero_type factors, int64_t size,
                         zero_type rounded_to)
{
    problem x = make_problem(
        pool,
        (zero_attention){.B = 1, .T = 1, .H = 1, .K = 1, .D = size, .factors = factors});
    uint16_t half[160];
    float rounded[160];
    const float *values = x.qkv + 2 * size;
    memcpy(rounded, values, (size_t)size * sizeof(float));
    if (rounded_to != ZERO_FP32) {
        zero_convert(ZERO_FP32, rounded_to, size, values, half);
        zero_convert(rounded_to, ZERO_FP32, size, half, rounded);
    }
    solve_on(capability, &x);
    assert_same(size, x.s.out, rounded);
}

static void values_are_rounded_where_the_device_has_the_type(void **state)
{
    check_values(*state, 90, ZERO_FP32, 35, ZERO_FP32);
    check_values(*state, 80, ZERO_BF16, 35, ZERO_BF16);
    check_values(*state, 75, ZERO_BF16, 35, ZERO_FP32);
    check_values(*state, 70, ZERO_FP16, 35, ZERO_FP16);
    check_values(*state, 60, ZERO_FP16, 35, ZERO_FP32);
    check_values(*state, 90, ZERO_FP16, 128, ZERO_FP16);
    check_values(*state, 90, ZERO_FP16, 129, ZERO_FP32);
    check_values(*state, 90, ZERO_BF16, 160, ZERO_FP32);
}

static void check_batch(test_pool *pool, zero_type factors)
{
    const int64_t T = 66, C = 40, H = 2, n = T * C;
    zero_attention shape = {.B = 3, .T = T, .H = H, .K = H, .D = C / H, .factors = factors};
    shape.dropout = (zero_dropout){{.purpose = ZERO_RNG_TEST}, 0.2f};
    problem all = make_problem(pool, shape);
    solve(&all);
    for (int64_t b = 0; b < 3; b++) {
        shape.B = 1;
        shape.dropout.stream.sample = (uint64_t)b;
        problem one = make_problem(pool, shape);
        memcpy(one.qkv, all.qkv + b * 3 * n, (size_t)(3 * n) * sizeof(float));
        memcpy(one.dout, all.dout + b * n, (size_t)n * sizeof(float));
        solve(&one);
        assert_same(n, one.s.out, (float *)all.s.out + b * n);
        assert_same(H * T, one.s.lse, all.s.lse + b * H * T);
        assert_same(3 * n, one.dqkv, all.dqkv + b * 3 * n);
    }
}

static void a_sample_has_the_bits_of_its_own_in_any_batch(void **state)
{
    check_batch(*state, ZERO_FP32);
    check_batch(*state, ZERO_FP16);
    check_batch(*state, ZERO_BF16);
}

/* Changing positions from `t` on changes nothing before them. */
static void check_past(test_pool *pool, zero_type factors)
{
    const int64_t T = 100, C = 48, cuts[] = {1, 40, 64, 99};
    problem was = make_problem(
        pool,
        (zero_attention){.B = 1, .T = T, .H = 2, .K = 2, .D = C / 2, .factors = factors});
    solve(&was);
    for (size_t i = 0; i < COUNT(cuts); i++) {
        const int64_t t = cuts[i];
        problem is = same_inputs(pool, &was);
        is.qkv = test_floats(pool, is.n_in);
        memcpy(is.qkv, was.qkv, (size_t)(t * 3 * C) * sizeof(float));
        zero_attention_rows(&is.s, is.qkv, is.dqkv);
        solve(&is);
        assert_same(t * C, is.s.out, was.s.out);
        for (int64_t h = 0; h < 2; h++) assert_same(t, is.s.lse + h * T, was.s.lse + h * T);
        assert_memory_not_equal(is.s.out, was.s.out, (size_t)is.n * sizeof(float));
    }
}

static void an_output_depends_on_the_past_alone(void **state)
{
    check_past(*state, ZERO_FP32);
    check_past(*state, ZERO_FP16);
    check_past(*state, ZERO_BF16);
}

/* The gradients of positions from t on are zero before t's outputs are used. */
static void check_future(test_pool *pool, zero_type factors)
{
    const int64_t T = 100, C = 48, t = 65;
    problem x = make_problem(
        pool,
        (zero_attention){.B = 1, .T = T, .H = 2, .K = 2, .D = C / 2, .factors = factors});
    memset(x.dout + t * C, 0, (size_t)((T - t) * C) * sizeof(float));
    solve(&x);
    for (int64_t i = t * 3 * C; i < T * 3 * C; i++) assert_true(x.dqkv[i] == 0.0f);
    assert_true(x.dqkv[t * 3 * C - 1] != 0.0f);
}

static void positions_that_no_loss_uses_have_no_gradient(void **state)
{
    check_future(*state, ZERO_FP32);
    check_future(*state, ZERO_FP16);
    check_future(*state, ZERO_BF16);
}

/* Arrays need not be aligned to 16 bytes; that changes how they are loaded, and no bit. */
static void alignment_changes_no_bit(void **state)
{
    const zero_type types[] = {ZERO_FP32, ZERO_FP16, ZERO_BF16};
    for (size_t i = 0; i < COUNT(types); i++) {
        problem x = make_problem(
            *state, (zero_attention){
                        .B = 1, .T = 70, .H = 2, .K = 2, .D = 36, .factors = types[i]});
        problem y = same_inputs(*state, &x);
        y.shift = 4;
        solve(&x);
        solve(&y);
        assert_same(x.n, y.s.out, x.s.out);
        assert_same(3 * x.n, y.dqkv, x.dqkv);
    }
}

/* Scores whose exponentials, or their sum, leave the range of floats. */
static void large_scores_neither_overflow_nor_vanish(void **state)
{
    problem want =
        make_problem(*state, (zero_attention){.B = 1, .T = 70, .H = 1, .K = 1, .D = 16});
    for (int64_t i = 0; i < 3 * want.n; i++) want.qkv[i] *= i % 48 < 32 ? 30.0f : 1.0f;
    problem got = same_inputs(*state, &want);
    solve_naively(*state, &want);
    solve(&got);
    /* Scores are thousands, so their rounding alone is 1e-4. */
    assert_true(test_error(want.n, got.s.out, want.s.out) < 1e-3);
    assert_true(test_error(want.rows, got.s.lse, want.s.lse) < 5 * TOLERANCE);
    assert_true(test_error(want.n_in, got.dqkv, want.dqkv) < 1e-3);
    got.s.factors =
        ZERO_FP16; /* scores are off by ones: only that they are finite is sure */
    solve(&got);
    for (int64_t i = 0; i < 3 * got.n; i++) assert_true(isfinite(got.dqkv[i]));
}

static bool is_wrong(float x)
{
    return isnan(x) || isinf(x);
}

/* A number that fp16 does not have, or that no type has, must show where it was used. */
static void check_wrong(test_pool *pool, zero_type factors, float wrong)
{
    enum { TIME = 70, SIZE = 4, AT = 20, LAST = TIME - 1 };
    const zero_attention shape = {
        .B = 1, .T = TIME, .H = 1, .K = 1, .D = SIZE, .factors = factors};
    problem query = make_problem(pool, shape), key = make_problem(pool, shape);
    problem value = make_problem(pool, shape), dout = make_problem(pool, shape);
    query.qkv[LAST * 3 * SIZE + 1] = wrong;
    key.qkv[AT * 3 * SIZE + SIZE + 1] = wrong;
    /* Minus infinity would be a score of probability zero. */
    key.qkv[AT * 3 * SIZE + 1] = copysignf(key.qkv[AT * 3 * SIZE + 1], wrong);
    value.qkv[AT * 3 * SIZE + 2 * SIZE + 1] = wrong;
    dout.dout[LAST * SIZE + 1] = wrong;
    solve(&query), solve(&key), solve(&value), solve(&dout);
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

static void infinity_and_nan_show(void **state)
{
    check_wrong(*state, ZERO_FP32, NAN);
    check_wrong(*state, ZERO_FP32, INFINITY);
    check_wrong(*state, ZERO_BF16, NAN);
    check_wrong(*state, ZERO_BF16, -INFINITY);
    check_wrong(*state, ZERO_FP16, NAN);
    check_wrong(*state, ZERO_FP16, 1e6f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_with_pool(attention_agrees_with_the_oracle),
        test_with_pool(attention_with_dropout_agrees_with_the_oracle),
        test_with_pool(values_are_rounded_where_the_device_has_the_type),
        test_with_pool(a_sample_has_the_bits_of_its_own_in_any_batch),
        test_with_pool(an_output_depends_on_the_past_alone),
        test_with_pool(positions_that_no_loss_uses_have_no_gradient),
        test_with_pool(alignment_changes_no_bit),
        test_with_pool(large_scores_neither_overflow_nor_vanish),
        test_with_pool(infinity_and_nan_show),
    };
    return cmocka_run_group_tests(tests, test_gpu_open_group, test_gpu_close_group);
}
