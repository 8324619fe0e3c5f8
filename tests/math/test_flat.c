/* What operations on flat ranges, which are the optimizer's states and gradients, must be:
 * that all backends and instruction sets have one's bits, test_operations.c shows. */
#include "support/math_machines.h"

#include "base/half.h"

static const zero_backend *const naive = &zero_backend_naive;

/* Under a constant gradient g, m / (1 - beta1^t) stays g and the root of v / (1 - beta2^t)
 * stays |g|: after the decay, each step moves by lr g / (|g| + eps). A large eps shows that it
 * is outside the root. */
TEST(adamw_moves_as_its_equation_says_under_constant_gradients)
{
    const zero_math math = test_opened(naive);
    zero_adamw h = test_recipe();
    h.eps = 0.25f;
    for (int i = 0; i < 20; i++) {
        const float grad = i % 2 ? 1.0f : -1.0f; /* g = 0.5 grad */
        float p = (float)i, m = 0.0f, v = 0.0f;
        const zero_adamw_arrays one = {
            .n = 1, .grad = &grad, .master = &p, .m = &m, .v = &v};
        double want = i;
        for (h.step = 1; h.step <= 5; h.step++) {
            naive->adamw(&math, &h, &one);
            want -= 1e-2 * 0.1 * want + 1e-2 * 0.5 * (double)grad / (0.5 + 0.25);
        }
        assert_true(fabs((double)p - want) < 2e-5);
    }
}

/* Which that update rounds away. */
TEST(adamw_tells_the_first_parameter_that_is_not_its_master)
{
    const zero_adamw recipe = test_recipe();
    const zero_math math = test_opened(naive);
    for (int flips = 0; flips < 4; flips++) {
        float x[3][4] = {{1, 2, 3, 4}};
        uint16_t param[4];
        uint64_t word = 0;
        const zero_adamw_arrays a = {4,    ZERO_BF16, param, x[0], x[1],
                                     x[2], param,     7,     &word};
        zero_convert(ZERO_FP32, ZERO_BF16, 4, x[0], param);
        if (flips & 1) param[3] ^= 0x8000;
        if (flips & 2) param[1] ^= 1;
        for (int round = 0; round < 2; round++) {
            naive->adamw(&math, &recipe, &a);
            assert_true(word == (flips ? zero_changed(flips & 2 ? 8 : 10) : 0));
        }
    }
}

/* A denormal number costs 20 times the time of another, in each step of the rest of the run. */
TEST(moments_without_gradients_become_zero_and_are_never_denormal)
{
    enum { N = 37 };
    zero_adamw h = test_recipe();
    const zero_math math = test_opened(naive);
    const float grad[N] = {0};
    float *x[3];
    for (int k = 0; k < 3; k++) x[k] = test_floats(*state, N);
    for (int i = 0; i < N; i++) x[2][i] *= x[2][i]; /* second moments are not negative */
    for (h.step = 1; h.step <= 3000; h.step++) {
        naive->adamw(&math, &h,
                     &(zero_adamw_arrays){
                         .n = N, .grad = grad, .master = x[0], .m = x[1], .v = x[2]});
        for (int i = 0; i < 2 * N; i++)
            assert_true(fpclassify(x[1 + i / N][i % N]) != FP_SUBNORMAL);
    }
    for (int i = 0; i < 2 * N; i++) assert_true(x[1 + i / N][i % N] == 0.0f);
}

/* ---- rounding and sums ---- */

/* All cases of rounding: too large, too small, ties, infinity, NaN. */
TEST(gradients_are_rounded_and_accumulated_as_each_number_alone)
{
    static const float odd[] = {65520.0f,    65519.0f, 1e-39f,   1e-6f, 3.4e38f,
                                1.00390625f, -0.0f,    INFINITY, NAN};
    enum { N = 3 * COUNT(odd) };
    const zero_math math = test_opened(naive);
    const float *sum = test_floats(*state, N);
    float *x = test_floats(*state, N), want[N], alone[N], out[N];
    for (int i = 0; i < N; i += 3) x[i] = odd[i / 3];
    for (zero_type type = ZERO_FP32; type <= ZERO_FP16; type++) {
        for (int i = 0; i < N; i++) {
            alone[i] = type == ZERO_BF16   ? zero_from_bf16(zero_to_bf16(x[i]))
                       : type == ZERO_FP16 ? zero_from_fp16(zero_to_fp16(x[i]))
                                           : x[i];
            want[i] = sum[i] + alone[i];
        }
        char rounded[sizeof out];
        naive->round(&math, type, N, x, rounded);
        zero_convert(type, ZERO_FP32, N, rounded, out);
        assert_same_numbers(N, out, alone);
        naive->accumulate(&math, type, N, NULL, x, out);
        assert_same_numbers(N, out, alone);
        naive->accumulate(&math, type, N, sum, x, out);
        assert_same_numbers(N, out, want);
    }
}

TEST(sums_of_squares_split_like_the_tree)
{
    const zero_math math = test_opened(naive);
    const int64_t n = 300001, left = 262144; /* the tree's left subtree */
    const float *x = test_floats(*state, n);
    double whole, sums[2];
    naive->sum_squares(&math, ZERO_FP32, n, x, &whole);
    naive->sum_squares(&math, ZERO_FP32, left, x, &sums[0]);
    naive->sum_squares(&math, ZERO_FP32, n - left, x + left, &sums[1]);
    assert_true(sums[0] + sums[1] == whole);
}

TEST(a_cut_range_has_the_same_gelu)
{
    const zero_math math = test_opened(&zero_backend_cpu);
    const int64_t n = 70001, cuts[] = {1, 16, 61, 4096, 65537};
    float *x = test_floats(*state, n), *y = test_floats(*state, n),
          *want = test_copy(*state, n, y);
    const float *bias = test_floats(*state, n);
    zero_bias b = {
        .rows = 1, .cols = n, .bias = bias, .x = test_copy(*state, n, x), .y = want};
    zero_backend_cpu.bias_gelu(&math, &b);
    for (size_t c = 0; c < COUNT(cuts); c++) {
        b.x = test_copy(*state, n, x), b.y = y, b.bias = bias, b.cols = cuts[c];
        zero_backend_cpu.bias_gelu(&math, &b);
        b.x = (float *)b.x + cuts[c], b.y = y + cuts[c], b.bias = bias + cuts[c];
        b.cols = n - cuts[c];
        zero_backend_cpu.bias_gelu(&math, &b);
        assert_same(n, y, want);
    }
}
