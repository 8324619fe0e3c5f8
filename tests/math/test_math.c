/* The cpu backend against the oracle, operation by operation, and what holds for both. */
#include "support/math_test.h"

#include <stdio.h>

#include "base/cpu_level.h"
#include "math/backends.h"
#include "math/blas.h"
#include "math/cpu_state.h"

/* The oracle rounds once, at the end. The cpu backend rounds at each of up to a few hundred
 * additions, 6e-8 each, mostly cancelling: errors of 1e-7 to 2e-6 of the largest result are
 * what single precision gives. A wrong term is off by 1e-3 or more. */
#define TOLERANCE 5e-6

#define assert_close(n, got, want) assert_true(test_error(n, got, want) < TOLERANCE)
#define assert_same(n, got, want) \
    assert_memory_equal(got, want, (size_t)(n) * sizeof(float))

static const zero_backend *const cpu = &zero_backend_cpu, *const naive =
                                                              &zero_backend_naive;

static float scratch[1 << 19]; /* calls come one after the other */

static zero_math opened(const zero_backend *backend)
{
    assert_true(zero_math_scratch() <= (int64_t)(sizeof scratch / sizeof scratch[0]));
    zero_math math = {.scratch = scratch};
    assert_int_equal(backend->open(&math), ZERO_OK);
    return math;
}

static const int64_t lengths[] = {1, 2, 7, 15, 16, 17, 61, 257, 1031, 70001};
static const int64_t shapes[][2] = {{1, 1},   {1, 17},  {3, 16},    {7, 257},
                                    {64, 48}, {5, 768}, {131, 1025}};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void check_gemm(test_pool *pool, const int64_t size[3], int flags, int64_t pad)
{
    zero_gemm g = {.m = size[0], .n = size[1], .k = size[2]};
    g.transpose_a = flags & 1, g.transpose_b = flags & 2, g.accumulate = flags & 4;
    int64_t rows_a = g.transpose_a ? g.k : g.m, cols_a = g.transpose_a ? g.m : g.k;
    int64_t rows_b = g.transpose_b ? g.n : g.k, cols_b = g.transpose_b ? g.k : g.n;
    if (pad) g.lda = cols_a + pad, g.ldb = cols_b + 2 * pad, g.ldc = g.n + 3 * pad;
    int64_t len_c = g.m * (g.n + 3 * pad);
    g.a = test_floats(pool, rows_a * (cols_a + pad));
    g.b = test_floats(pool, rows_b * (cols_b + 2 * pad));

    zero_math fast = opened(cpu), slow = opened(naive);
    float *want = test_floats(pool, len_c), *got = test_copy(pool, len_c, want);
    if (!g.accumulate && !pad) got[0] = NAN; /* must not be read */
    g.c = want;
    naive->gemm(&slow, &g);
    g.c = got;
    cpu->gemm(&fast, &g);
    assert_close(len_c, got, want); /* with what lies between the rows */
}

static void gemm_agrees_for_all_transposes_strides_and_sums(void **state)
{
    const int64_t sizes[][3] = {{1, 1, 1},     {1, 17, 5},   {7, 1, 64},
                                {61, 53, 47},  {16, 32, 0},  {257, 65, 3},
                                {600, 17, 40}, {3, 1100, 2}, {5, 9, 1025}};
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (int flags = 0; flags < 8; flags++)
            for (int64_t pad = 0; pad < 4; pad += 3)
                check_gemm(*state, sizes[s], flags, pad);
}

static void biases_agree(void **state)
{
    zero_math fast = opened(cpu), slow = opened(naive);
    for (size_t s = 0; s < COUNT(shapes); s++) {
        int64_t rows = shapes[s][0], cols = shapes[s][1];
        float *want = test_floats(*state, rows * cols);
        float *got = test_copy(*state, rows * cols, want),
              *bias = test_floats(*state, cols);
        naive->add_bias(&slow, rows, cols, ZERO_FP32, bias, want);
        cpu->add_bias(&fast, rows, cols, ZERO_FP32, bias, got);
        assert_same(rows * cols, got, want);
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            float *dwant = test_floats(*state, cols),
                  *dgot = test_copy(*state, cols, dwant);
            naive->bias_backward(&slow, rows, cols, want, accumulate, dwant);
            cpu->bias_backward(&fast, rows, cols, got, accumulate, dgot);
            assert_close(cols, dgot, dwant);
        }
    }
}

static void dropout_agrees_to_the_bit(void **state)
{
    zero_math fast = opened(cpu), slow = opened(naive);
    for (size_t s = 0; s < COUNT(lengths); s++) {
        int64_t n = lengths[s];
        float *a = test_floats(*state, 2 * n);
        float *want = test_floats(*state, 2 * n), *got = test_floats(*state, 2 * n);
        for (int p = 0; p < 2; p++) {
            zero_dropout d = {{.seed = 5, .purpose = ZERO_RNG_TEST, .sample = 3},
                              0.3f * (float)p};
            naive->dropout(&slow, &d, 2, n, a, want);
            cpu->dropout(&fast, &d, 2, n, a, got);
            assert_same(2 * n, got, want);
            memcpy(got, a, (size_t)(2 * n) * sizeof *a);
            cpu->dropout(&fast, &d, 2, n, got, got);
            assert_same(2 * n, got, want);
        }
    }
}

/* And with what they put together: bias, dropout, sum. Two samples, so that masks differ. */
static void branches_end_to_the_bit(void **state)
{
    zero_math fast = opened(cpu), slow = opened(naive);
    for (size_t s = 0; s < COUNT(shapes); s++) {
        int64_t T = shapes[s][0], cols = shapes[s][1], n = 2 * T * cols;
        float *around = test_floats(*state, n), *bias = test_floats(*state, cols);
        for (int p = 0; p < 2; p++) {
            zero_dropout d = {{.seed = 5, .purpose = ZERO_RNG_TEST, .sample = 3},
                              0.3f * (float)p};
            float *x = test_floats(*state, n), *want = test_copy(*state, n, x);
            float *steps = test_copy(*state, n, x);
            cpu->add_branch(&fast, &d, 2, T, cols, ZERO_FP32, bias, around, x);
            naive->add_branch(&slow, &d, 2, T, cols, ZERO_FP32, bias, around, want);
            assert_same(n, x, want);
            naive->add_bias(&slow, 2 * T, cols, ZERO_FP32, bias, steps);
            naive->dropout(&slow, &d, 2, T * cols, steps, steps);
            for (int64_t i = 0; i < n; i++) steps[i] = around[i] + steps[i];
            assert_same(n, x, steps);
        }
    }
}

static void check_gelu(test_pool *pool, int64_t rows, int64_t cols)
{
    zero_math fast = opened(cpu), slow = opened(naive);
    const int64_t n = rows * cols;
    float *x = test_floats(pool, n), *bias = test_floats(pool, cols);
    for (int64_t i = 0; i < n; i++) x[i] *= i % 5 == 0 ? 8.0f : 1.0f;
    float *x2 = test_copy(pool, n, x), *want = test_floats(pool, n),
          *got = test_floats(pool, n);
    naive->bias_gelu(&slow, rows, cols, ZERO_FP32, bias, x, want);
    cpu->bias_gelu(&fast, rows, cols, ZERO_FP32, bias, x2, got);
    assert_same(n, x2, x);
    assert_close(n, got, want);
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        float *dy = test_floats(pool, n), *dbias = test_floats(pool, cols);
        float *dbias2 = test_copy(pool, cols, dbias);
        naive->bias_gelu_backward(&slow, rows, cols, x, dy, want, accumulate, dbias);
        float *dx = accumulate ? dy : test_floats(pool, n);
        cpu->bias_gelu_backward(&fast, rows, cols, x, dy, dx, accumulate, dbias2);
        assert_close(n, dx, want);
        assert_close(cols, dbias2, dbias);
    }
}

static void gelu_agrees_also_far_from_zero(void **state)
{
    zero_math fast = opened(cpu);
    for (size_t s = 0; s < COUNT(lengths); s++) check_gelu(*state, 1, lengths[s]);
    for (size_t s = 0; s < COUNT(shapes); s++)
        check_gelu(*state, shapes[s][0], shapes[s][1]);
    const float one[] = {1, 1, 1, 1}, none[4] = {0};
    const float values[] = {0, 0, 1e4f, 1e30f}, slopes[] = {0, 0, 1, 1};
    float x[] = {-1e30f, -1e4f, 1e4f, 1e30f}, y[4], dx[4], dbias[4];
    cpu->bias_gelu(&fast, 1, 4, ZERO_FP32, none, x, y);
    cpu->bias_gelu_backward(&fast, 1, 4, x, one, dx, false, dbias);
    for (int i = 0; i < 4; i++) {
        assert_true(y[i] == values[i]);
        assert_true(fabsf(dx[i] - slopes[i]) < 1e-30f);
    }
}

/* 2^-126 .. 2^127 through the only operation that shows single values of the exponential.
 */
static void the_exponential_is_exact_to_single_precision(void **state)
{
    (void)state;
    zero_math fast = opened(cpu);
    double worst = 0.0;
    for (int i = 0; i <= 20000; i++) {
        float logits[2] = {0.0f, -(float)i * (87.0f / 20000.0f)}, loss;
        double wanted = exp((double)logits[1]), p = wanted / (1.0 + wanted);
        cpu->cross_entropy(&fast, 1, 2, (const int32_t[]){0}, 1.0f, logits, &loss);
        worst = fmax(worst, fabs((double)logits[1] / p - 1.0));
    }
    assert_true(worst < 2.5e-7); /* the exponential 1e-7, sum and quotient 6e-8 each */
}

static void check_layernorm(test_pool *pool, int64_t rows, int64_t C, bool accumulate)
{
    zero_math fast = opened(cpu), slow = opened(naive);
    int64_t n = rows * C;
    float *x = test_floats(pool, n), *gain = test_floats(pool, C),
          *bias = test_floats(pool, C);
    float *dy = test_floats(pool, n), *y[2], *mean[2], *rstd[2];
    for (int i = 0; i < 2; i++) {
        y[i] = test_floats(pool, n), mean[i] = test_floats(pool, rows);
        rstd[i] = test_floats(pool, rows);
    }
    float *sum = test_floats(pool, n), *dx[2] = {sum, test_copy(pool, n, sum)};
    float *dgain[2] = {test_copy(pool, C, gain), test_copy(pool, C, gain)};
    float *dbias[2] = {test_copy(pool, C, bias), test_copy(pool, C, bias)};
    naive->layernorm(&slow, rows, C, x, ZERO_FP32, gain, bias, y[0], mean[0], rstd[0]);
    cpu->layernorm(&fast, rows, C, x, ZERO_FP32, gain, bias, y[1], mean[1], rstd[1]);
    assert_close(n, y[1], y[0]);
    assert_close(rows, mean[1], mean[0]);
    assert_close(rows, rstd[1], rstd[0]);
    naive->layernorm_backward(&slow, rows, C, x, ZERO_FP32, gain, mean[0], rstd[0], dy,
                              dx[0], accumulate, dgain[0], dbias[0]);
    cpu->layernorm_backward(&fast, rows, C, x, ZERO_FP32, gain, mean[0], rstd[0], dy, dx[1],
                            accumulate, dgain[1], dbias[1]);
    assert_close(n, dx[1], dx[0]);
    assert_close(C, dgain[1], dgain[0]);
    assert_close(C, dbias[1], dbias[0]);
}

static void layernorm_agrees(void **state)
{
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (int accumulate = 0; accumulate < 2; accumulate++)
            check_layernorm(*state, shapes[s][0], shapes[s][1], accumulate);
}

static void embeddings_agree_to_the_bit(void **state)
{
    zero_math fast = opened(cpu), slow = opened(naive);
    const int64_t sizes[][4] = {
        {1, 1, 1, 1}, {2, 7, 17, 5}, {3, 33, 48, 257}}; /* B T C V */
    for (size_t i = 0; i < COUNT(sizes); i++) {
        int64_t B = sizes[i][0], T = sizes[i][1], C = sizes[i][2], V = sizes[i][3];
        int32_t *tokens = test_tokens(*state, B * T, V);
        float *wte = test_floats(*state, V * C), *wpe = test_floats(*state, T * C);
        float *want = test_floats(*state, B * T * C), *got = test_floats(*state, B * T * C);
        naive->embedding(&slow, B, T, C, tokens, ZERO_FP32, wte, wpe, want);
        cpu->embedding(&fast, B, T, C, tokens, ZERO_FP32, wte, wpe, got);
        assert_same(B * T * C, got, want);
        float *dwte = test_copy(*state, V * C, wte), *dwpe = test_copy(*state, T * C, wpe);
        naive->embedding_backward(&slow, B, T, C, tokens, want, wte, wpe);
        cpu->embedding_backward(&fast, B, T, C, tokens, want, dwte, dwpe);
        assert_same(V * C, dwte, wte);
        assert_same(T * C, dwpe, wpe);
    }
}

static void cross_entropy_agrees_and_leaves_the_logits_if_asked(void **state)
{
    zero_math fast = opened(cpu), slow = opened(naive);
    const int64_t sizes[][2] = {{1, 1}, {3, 2}, {5, 16}, {4, 257}, {3, 1031}, {2, 50257}};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        int64_t rows = sizes[i][0], V = sizes[i][1], n = rows * V;
        int32_t *targets = test_tokens(*state, rows, V);
        float *logits = test_floats(*state, n), *want = test_copy(*state, n, logits);
        float *got = test_copy(*state, n, logits), *loss = test_floats(*state, rows);
        float *kept = test_floats(*state, rows), *oracle = test_floats(*state, rows);
        naive->cross_entropy(&slow, rows, V, targets, 0.0f, want, oracle);
        cpu->cross_entropy(&fast, rows, V, targets, 0.0f, got, kept);
        assert_same(n, want, logits);
        assert_same(n, got, logits);
        naive->cross_entropy(&slow, rows, V, targets, 0.125f, want, oracle);
        cpu->cross_entropy(&fast, rows, V, targets, 0.125f, got, loss);
        if (V > 1) assert_close(rows, loss, oracle);
        assert_close(n, got, want);
        assert_same(rows, kept, loss);
    }
}

static void losses_and_activations_keep_nan_and_infinity(void **state)
{
    (void)state;
    const zero_backend *const both[] = {cpu, naive};
    for (int k = 0; k < 2; k++) {
        zero_math math = opened(both[k]);
        float logits[40] = {0}, loss[1], x[40] = {0}, y[40], mean[1], rstd[1];
        float gain[40] = {0};
        logits[33] = NAN, x[35] = NAN;
        both[k]->cross_entropy(&math, 1, 40, (const int32_t[]){2}, 1.0f, logits, loss);
        assert_true(isnan(loss[0]) && isnan(logits[0]));
        both[k]->bias_gelu(&math, 1, 40, ZERO_FP32, gain, x, y);
        assert_true(isnan(y[35]) && y[34] == 0.0f);
        both[k]->layernorm(&math, 1, 40, x, ZERO_FP32, gain, gain, y, mean, rstd);
        assert_true(isnan(y[0]) && isnan(rstd[0]));
        x[35] = INFINITY;
        both[k]->bias_gelu(&math, 1, 40, ZERO_FP32, gain, x, y);
        assert_true(isinf(y[35]));
        both[k]->cross_entropy(&math, 1, 40, (const int32_t[]){2}, 0.0f, x, loss);
        assert_true(isnan(loss[0]) || isinf(loss[0]));
    }
}

static const zero_adamw recipe = {.lr = 1e-2f,
                                  .beta1 = 0.9f,
                                  .beta2 = 0.95f,
                                  .eps = 1e-8f,
                                  .weight_decay = 0.1f,
                                  .grad_scale = 0.5f,
                                  .step = 3};

static void adamw_agrees_to_the_bit(void **state)
{
    zero_math fast = opened(cpu), slow = opened(naive);
    for (size_t s = 0; s < COUNT(lengths); s++) {
        int64_t n = lengths[s];
        float *grad = test_floats(*state, n), *p = test_floats(*state, n);
        float *m = test_floats(*state, n), *v = test_floats(*state, n);
        for (int64_t i = 0; i < n; i++) v[i] *= v[i]; /* not negative */
        float *p2 = test_copy(*state, n, p), *m2 = test_copy(*state, n, m);
        float *v2 = test_copy(*state, n, v);
        naive->adamw(&slow, &recipe, n, ZERO_FP32, grad, p, m, v, NULL);
        cpu->adamw(&fast, &recipe, n, ZERO_FP32, grad, p2, m2, v2, NULL);
        assert_same(n, p2, p);
        assert_same(n, m2, m);
        assert_same(n, v2, v);
    }
}

/* Under a constant gradient g, m / (1 - beta1^t) stays g and the root of v / (1 - beta2^t)
 * stays |g|: after the decay, each step moves by lr g / (|g| + eps). With eps so large, its
 * place outside the root is seen too. */
static void adamw_moves_as_its_equation_says_under_constant_gradients(void **state)
{
    (void)state;
    const zero_backend *const both[] = {cpu, naive};
    for (int k = 0; k < 2; k++) {
        zero_math math = opened(both[k]);
        zero_adamw h = recipe;
        h.eps = 0.25f;
        float grad[20], p[20], m[20] = {0}, v[20] = {0};
        double want[20];
        for (int i = 0; i < 20; i++) {
            grad[i] = i % 2 ? 1.0f : -1.0f;
            p[i] = (float)(want[i] = i);
        }
        for (h.step = 1; h.step <= 5; h.step++) {
            both[k]->adamw(&math, &h, 20, ZERO_FP32, grad, p, m, v, NULL);
            for (int i = 0; i < 20; i++) { /* g = 0.5 grad */
                double step = 1e-2 * 0.5 * (double)grad[i] / (0.5 + 0.25);
                want[i] -= 1e-2 * 0.1 * want[i] + step;
            }
        }
        for (int i = 0; i < 20; i++) assert_true(fabs((double)p[i] - want[i]) < 2e-5);
    }
}

static void a_cut_range_gives_the_same_bits(void **state)
{
    zero_math fast = opened(cpu);
    const int64_t n = 70001, cuts[] = {1, 16, 61, 4096, 65537};
    float *x = test_floats(*state, n), *zeros = test_floats(*state, n);
    memset(zeros, 0, (size_t)n * sizeof *zeros);
    float *y[2], *p[2], *m[2], *v[2];
    for (int i = 0; i < 2; i++) {
        y[i] = test_floats(*state, n), p[i] = test_copy(*state, n, x);
        m[i] = test_copy(*state, n, x), v[i] = test_copy(*state, n, zeros);
    }
    cpu->bias_gelu(&fast, 1, n, ZERO_FP32, zeros, x, y[0]);
    cpu->adamw(&fast, &recipe, n, ZERO_FP32, x, p[0], m[0], v[0], NULL);
    for (size_t c = 0; c < COUNT(cuts); c++) {
        const int64_t ends[] = {0, cuts[c], n};
        memcpy(p[1], x, (size_t)n * sizeof *x);
        memcpy(m[1], x, (size_t)n * sizeof *x);
        memcpy(v[1], zeros, (size_t)n * sizeof *x);
        for (int part = 0; part < 2; part++) {
            int64_t at = ends[part], len = ends[part + 1] - at;
            cpu->bias_gelu(&fast, 1, len, ZERO_FP32, zeros, x + at, y[1] + at);
            cpu->adamw(&fast, &recipe, len, ZERO_FP32, x + at, p[1] + at, m[1] + at,
                       v[1] + at, NULL);
        }
        assert_same(n, y[1], y[0]);
        assert_same(n, p[1], p[0]);
        assert_same(n, m[1], m[0]);
        assert_same(n, v[1], v[0]);
    }
}

static void sums_of_squares_agree_to_the_bit_and_split_like_the_tree(void **state)
{
    zero_math fast = opened(cpu), slow = opened(naive);
    const int64_t n = 300001;
    float *x = test_floats(*state, n);
    const int64_t sizes[] = {0, 1, 63, 64, 65, 65536, 65537, 131072, 200000, 300001};
    for (size_t i = 0; i < COUNT(sizes); i++)
        assert_true(cpu->sum_squares(&fast, ZERO_FP32, sizes[i], x) ==
                    naive->sum_squares(&slow, ZERO_FP32, sizes[i], x));
    double left =
        cpu->sum_squares(&fast, ZERO_FP32, 262144, x); /* the tree's own left part */
    assert_true(left + cpu->sum_squares(&fast, ZERO_FP32, n - 262144, x + 262144) ==
                cpu->sum_squares(&fast, ZERO_FP32, n, x));
}

static void count_poll(void *arg)
{
    ++*(int *)arg;
}

#define assert_polls(call) \
    do { \
        polls = 0; \
        call; \
        assert_true(polls >= 2); \
    } while (0)

static void long_operations_poll(void **state)
{
    int polls = 0;
    zero_math math = opened(cpu);
    math.poll = count_poll, math.poll_arg = &polls;
    const int64_t rows = 600, C = 256, n = rows * C;
    float *x = test_floats(*state, 3 * n), *y = test_floats(*state, 3 * n);
    float *w = test_floats(*state, n), *z = test_floats(*state, n),
          *u = test_floats(*state, n);
    int32_t *tokens = test_tokens(*state, rows, C);
    zero_gemm g = {.m = rows, .n = 8, .k = C, .a = x, .b = w, .c = y};
    zero_attention s = {.B = 1, .T = rows, .C = C, .H = 2};
    zero_dropout d = {{.purpose = ZERO_RNG_TEST}, 0.5f};
    float *work = test_floats(*state, zero_attention_workspace(&s));
    assert_polls(cpu->gemm(&math, &g));
    assert_polls(cpu->add_bias(&math, rows, C, ZERO_FP32, w, y));
    assert_polls(cpu->bias_backward(&math, rows, C, x, true, w));
    assert_polls(cpu->add_branch(&math, &d, 2, rows / 2, C, ZERO_FP32, w, x, y));
    assert_polls(cpu->dropout(&math, &d, 1, n, x, y));
    assert_polls(cpu->bias_gelu(&math, rows, C, ZERO_FP32, w, x, y));
    assert_polls(cpu->bias_gelu_backward(&math, rows, C, x, y, y, false, w));
    assert_polls(cpu->layernorm(&math, rows, C, x, ZERO_FP32, w, w, y, z, u));
    assert_polls(
        cpu->layernorm_backward(&math, rows, C, x, ZERO_FP32, w, z, u, x, y, false, z, u));
    assert_polls(cpu->attention(&math, &s, x, y, w, work));
    assert_polls(cpu->attention_backward(&math, &s, x, z, w, u, y, work));
    assert_polls(cpu->embedding(&math, 1, rows, C, tokens, ZERO_FP32, w, z, y));
    assert_polls(cpu->embedding_backward(&math, 1, rows, C, tokens, x, w, z));
    assert_polls(cpu->cross_entropy(&math, rows, C, tokens, 1.0f, y, w));
    assert_polls(cpu->adamw(&math, &recipe, n, ZERO_FP32, x, y, w, z, NULL));
    assert_polls((void)cpu->sum_squares(&math, ZERO_FP32, n, x));
}

/* Runs every operation that has kernels of its own on random input; returns all results. */
static float *run_kernels(test_pool *pool, const zero_cpu_kernels *kernels, int64_t *len)
{
    zero_math math = {
        .state = {[ZERO_CPU_KERNELS] = kernels, [ZERO_CPU_PANELS] = zero_panels_at(0)}};
    const int64_t B = 2, T = 67, C = 51, rows = B * T, n = rows * C;

    float *out = test_floats(pool, 18 * n + 4 * rows * T), *at = out;
    float *x = test_floats(pool, 3 * n), *w = test_floats(pool, C),
          *dy = test_floats(pool, n);
    int32_t *targets = test_tokens(pool, rows, C);
    zero_attention s = {B, T, C, 3, {{.purpose = ZERO_RNG_TEST}, 0.2f}, false};
    float *work = test_floats(pool, zero_attention_workspace(&s));

    float *lse = at, *y = lse + rows * s.H, *dqkv = y + n;
    cpu->attention(&math, &s, x, y, lse, work);
    cpu->attention_backward(&math, &s, x, y, lse, dy, dqkv, work);
    float *mean = dqkv + 3 * n, *rstd = mean + rows, *norm = rstd + rows, *dx = norm + n;
    float *dgain = dx + n, *dbias = dgain + C;
    cpu->layernorm(&math, rows, C, x, ZERO_FP32, w, w, norm, mean, rstd);
    cpu->layernorm_backward(&math, rows, C, x, ZERO_FP32, w, mean, rstd, dy, dx, false,
                            dgain, dbias);
    float *branch = dbias + C, *act = branch + n, *dact = act + n, *dsum = dact + n;
    float *logits = dsum + C, *loss = logits + n;
    memcpy(branch, dy, (size_t)n * sizeof *dy);
    cpu->add_branch(&math, &s.dropout, B, T, C, ZERO_FP32, w, x, branch);
    cpu->bias_gelu(&math, rows, C, ZERO_FP32, w, x, act);
    cpu->bias_gelu_backward(&math, rows, C, x, dy, dact, false, dsum);
    memcpy(logits, x, (size_t)n * sizeof *x);
    cpu->cross_entropy(&math, rows, C, targets, 0.1f, logits, loss);
    float *m = loss + rows, *v = m + n, *p = v + n;
    memset(m, 0, (size_t)(2 * n) * sizeof *m);
    cpu->adamw(&math, &recipe, n, ZERO_FP32, dy, p, m, v, NULL);
    *len = p + n - out;
    return out;
}

static void every_instruction_set_gives_the_same_bits(void **state)
{
    (void)state;
    const zero_cpu_kernels *kernels;
    assert_string_equal(zero_cpu_kernels_at(0)->name, zero_cpu_kernels_name());
    float *result[ZERO_CPU_LEVELS];
    void *pool[ZERO_CPU_LEVELS];
    int n = 0;
    for (int i = 0; (kernels = zero_cpu_kernels_at(i)); i++, n++) {
        int64_t len = 0;
        assert_int_equal(test_pool_make(&pool[i]), 0);
        result[i] = run_kernels(pool[i], kernels, &len);
        print_message("%s: %lld numbers\n", kernels->name, (long long)len);
        if (i > 0) assert_same(len, result[i], result[0]);
    }
    for (int i = 0; i < n; i++) test_pool_free(&pool[i]);
}

static void backends_are_found_by_name(void **state)
{
    (void)state;
    const zero_backend *found = NULL;
    assert_int_equal(zero_backend_find("cpu", &found), ZERO_OK);
    assert_ptr_equal(found, cpu);
    assert_int_equal(zero_backend_find("naive", &found), ZERO_OK);
    assert_ptr_equal(found, naive);
    assert_int_equal(zero_backend_find("tpu", &found), ZERO_ERR_INVALID);
    assert_ptr_equal(found, naive);
    assert_non_null(strstr(zero_last_error(), "'tpu'"));
}

static void every_backend_is_listed_and_offered(void **state)
{
    (void)state;
    const zero_backend *found = NULL;
    const char *name;
    int n = 0;
    assert_string_equal(zero_backend_name_at(0), "cpu");
    for (; (name = zero_backend_name_at(n)); n++) {
        assert_int_equal(zero_backend_find(name, &found), ZERO_OK);
        assert_string_equal(found->name, name);
    }
    assert_int_equal(n, 2);
    assert_int_equal(zero_backend_find("", &found), ZERO_ERR_INVALID);
    assert_non_null(
        strstr(zero_last_error(), "choose 'cpu' (fast) or 'naive' (plain loops"));
}

static void blas_tells_its_name_and_obeys(void **state)
{
    (void)state;
    char name[64] = "";
    zero_blas_name(name, sizeof name);
    assert_true(strlen(name) >= 4);
    /* Of a library that it has no name for it cannot know the threads either. */
    int expected = strcmp(name, "BLAS") == 0 ? 0 : 1;
    assert_int_equal(zero_blas_set_threads(1), expected);
    print_message("%s\n", name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_with_pool(gemm_agrees_for_all_transposes_strides_and_sums),
        test_with_pool(biases_agree),
        test_with_pool(dropout_agrees_to_the_bit),
        test_with_pool(branches_end_to_the_bit),
        test_with_pool(gelu_agrees_also_far_from_zero),
        test_with_pool(the_exponential_is_exact_to_single_precision),
        test_with_pool(layernorm_agrees),
        test_with_pool(embeddings_agree_to_the_bit),
        test_with_pool(cross_entropy_agrees_and_leaves_the_logits_if_asked),
        test_with_pool(losses_and_activations_keep_nan_and_infinity),
        test_with_pool(adamw_agrees_to_the_bit),
        test_with_pool(adamw_moves_as_its_equation_says_under_constant_gradients),
        test_with_pool(a_cut_range_gives_the_same_bits),
        test_with_pool(sums_of_squares_agree_to_the_bit_and_split_like_the_tree),
        test_with_pool(long_operations_poll),
        test_with_pool(every_instruction_set_gives_the_same_bits),
        test_with_pool(backends_are_found_by_name),
        test_with_pool(every_backend_is_listed_and_offered),
        test_with_pool(blas_tells_its_name_and_obeys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
