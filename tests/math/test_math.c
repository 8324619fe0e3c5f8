/* What operations must be, whoever computes them: test_operations.c only compares. */
#include "support/math_test.h"

#include "math/backends.h"
#include "math/cpu_kernels.h"
#include "math/cpu_state.h"

static const zero_backend *const cpu = &zero_backend_cpu;
static const zero_backend *const naive = &zero_backend_naive;

TEST(gelu_is_right_far_from_zero)
{
    zero_math fast = test_opened(cpu);
    const float one[] = {1, 1, 1, 1}, zeros[4] = {0};
    const float values[] = {0, 0, 1e4f, 1e30f}, slopes[] = {0, 0, 1, 1};
    for (int is_exact = 0; is_exact < 2; is_exact++) {
        float x[] = {-1e30f, -1e4f, 1e4f, 1e30f}, y[4], dx[4], dbias[4];
        const zero_bias b = {
            .rows = 1, .cols = 4, .bias = zeros, .x = x, .y = y, .is_exact = is_exact};
        const zero_bias_grad d = {.rows = 1,
                                  .cols = 4,
                                  .x = x,
                                  .dy = one,
                                  .dx = dx,
                                  .dbias = dbias,
                                  .is_exact = is_exact};
        cpu->bias_gelu(&fast, &b);
        cpu->bias_gelu_backward(&fast, &d);
        for (int i = 0; i < 4; i++) {
            assert_true(y[i] == values[i]);
            assert_true(fabsf(dx[i] - slopes[i]) < 1e-30f);
        }
    }
}

/* Against libm's error function in double, from -14 to 14. */
TEST(the_exact_gelu_and_its_slope_are_exact_to_single_precision)
{
    enum { n = 280001 };
    zero_math fast = test_opened(cpu);
    float *x = test_floats(*state, n), *y = test_floats(*state, n),
          *zeros = test_floats(*state, n), *dx = test_floats(*state, n),
          *one = test_floats(*state, n);
    for (int i = 0; i < n; i++)
        x[i] = (float)i * 1e-4f - 14.0f, zeros[i] = 0.0f, one[i] = 1.0f;
    cpu->bias_gelu(&fast, &(zero_bias){.rows = 1,
                                       .cols = n,
                                       .type = ZERO_FP32,
                                       .bias = zeros,
                                       .x = x,
                                       .y = y,
                                       .is_exact = true});
    cpu->bias_gelu_backward(&fast, &(zero_bias_grad){.rows = 1,
                                                     .cols = n,
                                                     .x = x,
                                                     .dy = one,
                                                     .dx = dx,
                                                     .is_exact = true,
                                                     .dbias = zeros});
    for (int i = 0; i < n; i++) {
        const double at = (double)x[i], below = 0.5 * erfc(-at * 0.70710678118654752440);
        const double slope = below + at * 0.39894228040143267794 * exp(-0.5 * at * at);
        const double apart = fabs((double)y[i] - at * below);
        assert_true(apart <= 2.1e-7 * fabs(at));
        assert_true(fabs(at) > 4.0 || apart <= 6e-7 * fabs(at * below));
        assert_true(fabs((double)dx[i] - slope) <= 2.5e-7);
    }
}

/* 2^-126 .. 2^127, through the only operation that shows single values of the exponential. */
TEST(the_exponential_is_exact_to_single_precision)
{
    zero_math fast = test_opened(cpu);
    double worst = 0.0;
    for (int i = 0; i <= 20000; i++) {
        float logits[2] = {0.0f, -(float)i * (87.0f / 20000.0f)}, loss;
        double wanted = exp((double)logits[1]), p = wanted / (1.0 + wanted);
        cpu->cross_entropy(&fast, &(zero_cross_entropy){.rows = 1,
                                                        .V = 2,
                                                        .targets = (const int32_t[]){0},
                                                        .dscale = 1.0f,
                                                        .logits = logits,
                                                        .loss = &loss});
        worst = fmax(worst, fabs((double)logits[1] / p - 1.0));
    }
    assert_true(worst < 2.5e-7); /* the exponential 1e-7, sum and quotient 6e-8 each */
}

TEST(losses_and_activations_keep_nan_and_infinity)
{
    const zero_backend *const both[] = {cpu, naive};
    for (int k = 0; k < 2; k++) {
        zero_math math = test_opened(both[k]);
        float logits[40] = {0}, loss[1], x[40] = {0}, y[40], mean[1], rstd[1];
        float gain[40] = {0};
        logits[33] = NAN, x[35] = NAN;
        both[k]->cross_entropy(&math, &(zero_cross_entropy){.rows = 1,
                                                            .V = 40,
                                                            .targets = (const int32_t[]){2},
                                                            .dscale = 1.0f,
                                                            .logits = logits,
                                                            .loss = loss});
        assert_true(isnan(loss[0]) && isnan(logits[0]));
        both[k]->bias_gelu(
            &math,
            &(zero_bias){
                .rows = 1, .cols = 40, .type = ZERO_FP32, .bias = gain, .x = x, .y = y});
        assert_true(isnan(y[35]) && y[34] == 0.0f);
        both[k]->layernorm(&math, &(zero_layernorm_args){.eps = ZERO_LAYERNORM_EPS,
                                                         .rows = 1,
                                                         .C = 40,
                                                         .x = x,
                                                         .gain = gain,
                                                         .bias = gain,
                                                         .y = y,
                                                         .mean = mean,
                                                         .rstd = rstd});
        assert_true(isnan(y[0]) && isnan(rstd[0]));
        x[35] = INFINITY;
        both[k]->bias_gelu(
            &math,
            &(zero_bias){
                .rows = 1, .cols = 40, .type = ZERO_FP32, .bias = gain, .x = x, .y = y});
        assert_true(isinf(y[35]));
        both[k]->cross_entropy(&math, &(zero_cross_entropy){.rows = 1,
                                                            .V = 40,
                                                            .targets = (const int32_t[]){2},
                                                            .dscale = 0.0f,
                                                            .logits = x,
                                                            .loss = loss});
        assert_true(isnan(loss[0]) || isinf(loss[0]));
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

/* 1 048 576 angles: four models' frequencies, positions up to 131 071. */
TEST(angles_are_exact_but_for_their_rounding)
{
    static const double thetas[] = {1e4, 5e5, 1e6, 1.3e5};
    static const int64_t starts[] = {0, 7168, 130048, 65536};
    const zero_cpu_kernels *kernels;
    float frequency[64], cosine[64], sine[64];
    for (int level = 0; (kernels = zero_cpu_kernels_at(level)); level++)
        for (int m = 0; m < 4; m++) {
            for (int i = 0; i < 64; i++)
                frequency[i] =
                    1.0f / (float)pow(thetas[m], (double)((float)(2 * i) / 128.0f));
            for (int64_t t = starts[0]; t < 4096; t++) {
                const int64_t at = starts[t / 1024] + t % 1024;
                kernels->angles(64, (float)at, frequency, cosine, sine);
                for (int i = 0; i < 64; i++) {
                    const double angle = (double)((float)at * frequency[i]);
                    assert_true(cosine[i] == (float)cos(angle));
                    assert_true(sine[i] == (float)sin(angle));
                }
            }
        }
}
