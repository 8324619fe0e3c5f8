/* Attention's kernels against the oracle, on a GPU or on the emulator; and which inputs an output
 * may depend on. Every call is made twice, with threads in either order, and gives equal bits
 * (kernels_test.h). */
#include "gpu/kernels_test.h"
#include "support/attention_laws.h"

/* The error of single precision: a GPU's exp2f alone is off by 2 in the last place, 2.4e-7, of each
 * probability and of their sum. A wrong term is off by 1e-3 or more. */
#define TOLERANCE 3e-6

#define LARGEST_GPU 90

static const zero_backend *const naive = &zero_backend_naive;

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

static void solve(test_pool *pool, const problem *x)
{
    (void)pool;
    solve_on(LARGEST_GPU, x);
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

TEST(values_are_rounded_where_the_device_has_the_type)
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

TEST(a_sample_has_the_bits_of_its_own_in_any_batch)
{
    check_batch(*state, solve, ZERO_FP32);
    check_batch(*state, solve, ZERO_FP16);
    check_batch(*state, solve, ZERO_BF16);
}

TEST(an_output_depends_on_the_past_alone)
{
    check_past(*state, solve, ZERO_FP32);
    check_past(*state, solve, ZERO_FP16);
    check_past(*state, solve, ZERO_BF16);
}

TEST(positions_that_no_loss_uses_have_no_gradient)
{
    check_future(*state, solve, ZERO_FP32);
    check_future(*state, solve, ZERO_FP16);
    check_future(*state, solve, ZERO_BF16);
}

/* Arrays need not be aligned to 16 bytes; that changes how they are loaded, and no bit. */
TEST(alignment_changes_no_bit)
{
    const zero_type types[] = {ZERO_FP32, ZERO_FP16, ZERO_BF16};
    for (size_t i = 0; i < COUNT(types); i++) {
        problem x = make_problem(
            *state, (zero_attention){
                        .B = 1, .T = 70, .H = 2, .K = 2, .D = 36, .factors = types[i]});
        problem y = same_inputs(*state, &x);
        y.shift = 4;
        solve(*state, &x);
        solve(*state, &y);
        assert_same(x.n, y.s.out, x.s.out);
        assert_same(3 * x.n, y.dqkv, x.dqkv);
    }
}

TEST(large_scores_neither_overflow_nor_vanish)
{
    problem got = check_large_scores(*state, solve, solve_naively, 5 * TOLERANCE);
    got.s.factors =
        ZERO_FP16; /* scores are off by ones: only that they are finite is sure */
    solve(*state, &got);
    for (int64_t i = 0; i < 3 * got.n; i++) assert_true(isfinite(got.dqkv[i]));
}

TEST(infinity_and_nan_show)
{
    check_wrong(*state, solve, ZERO_FP32, NAN);
    check_wrong(*state, solve, ZERO_FP32, INFINITY);
    check_wrong(*state, solve, ZERO_BF16, NAN);
    check_wrong(*state, solve, ZERO_BF16, -INFINITY);
    check_wrong(*state, solve, ZERO_FP16, NAN);
    check_wrong(*state, solve, ZERO_FP16, 1e6f);
}
