/* The cpu backend against the oracle, operation by operation, in fp32; flat ranges are in
 * test_flat.c, attention in test_attention.c. */
#include "support/math_test.h"

/* The oracle rounds once, at the end. The cpu backend rounds at each of up to a few hundred
 * additions, 6e-8 each, mostly cancelling: errors of single precision are 1e-7 to 2e-6 of the
 * largest result. A wrong term is off by 1e-3 or more. */
#define TOLERANCE 5e-6

#define assert_close(n, got, want) assert_true(test_error(n, got, want) < TOLERANCE)

static const zero_backend *const cpu = &zero_backend_cpu;
static const zero_backend *const naive = &zero_backend_naive;

static const int64_t lengths[] = {1, 2, 7, 15, 16, 17, 61, 257, 1031, 70001};
static const int64_t shapes[][2] = {{1, 1},   {1, 17},  {3, 16},    {7, 257},
                                    {64, 48}, {5, 768}, {131, 1025}};

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

    zero_math fast = test_opened(cpu), slow = test_opened(naive);
    float *want = test_floats(pool, len_c), *got = test_copy(pool, len_c, want);
    if (!g.accumulate && !pad) got[0] = NAN; /* must not be read */
    g.c = want;
    naive->gemm(&slow, &g);
    g.c = got;
    cpu->gemm(&fast, &g);
    assert_close(len_c, got, want); /* with what lies between the rows */
}

TEST(gemm_agrees_for_all_transposes_strides_and_sums)
{
    const int64_t sizes[][3] = {{1, 1, 1},     {1, 17, 5},   {7, 1, 64},
                                {61, 53, 47},  {16, 32, 0},  {257, 65, 3},
                                {600, 17, 40}, {3, 1100, 2}, {5, 9, 1025}};
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (int flags = 0; flags < 8; flags++)
            for (int64_t pad = 0; pad < 4; pad += 3)
                check_gemm(*state, sizes[s], flags, pad);
}

TEST(biases_agree)
{
    zero_math fast = test_opened(cpu), slow = test_opened(naive);
    for (size_t s = 0; s < COUNT(shapes); s++) {
        int64_t rows = shapes[s][0], cols = shapes[s][1];
        float *want = test_floats(*state, rows * cols);
        float *got = test_copy(*state, rows * cols, want),
              *bias = test_floats(*state, cols);
        naive->add_bias(
            &slow,
            &(zero_bias){
                .rows = rows, .cols = cols, .type = ZERO_FP32, .bias = bias, .x = want});
        cpu->add_bias(
            &fast,
            &(zero_bias){
                .rows = rows, .cols = cols, .type = ZERO_FP32, .bias = bias, .x = got});
        assert_same(rows * cols, got, want);
        for (int accumulate = 0; accumulate < 2; accumulate++) {
            float *dwant = test_floats(*state, cols),
                  *dgot = test_copy(*state, cols, dwant);
            naive->bias_backward(&slow, &(zero_bias_grad){.rows = rows,
                                                          .cols = cols,
                                                          .dy = want,
                                                          .accumulate = accumulate,
                                                          .dbias = dwant});
            cpu->bias_backward(&fast, &(zero_bias_grad){.rows = rows,
                                                        .cols = cols,
                                                        .dy = got,
                                                        .accumulate = accumulate,
                                                        .dbias = dgot});
            assert_close(cols, dgot, dwant);
        }
    }
}

TEST(dropout_agrees_to_the_bit)
{
    zero_math fast = test_opened(cpu), slow = test_opened(naive);
    for (size_t s = 0; s < COUNT(lengths); s++) {
        int64_t n = lengths[s];
        float *a = test_floats(*state, 2 * n);
        float *want = test_floats(*state, 2 * n), *got = test_floats(*state, 2 * n);
        for (int p = 0; p < 2; p++) {
            zero_dropout d = {{.seed = 5, .purpose = ZERO_RNG_TEST, .sample = 3},
                              0.3f * (float)p};
            naive->dropout(&slow, &d, ZERO_FP32, 2, n, a, want);
            cpu->dropout(&fast, &d, ZERO_FP32, 2, n, a, got);
            assert_same(2 * n, got, want);
            memcpy(got, a, (size_t)(2 * n) * sizeof *a);
            cpu->dropout(&fast, &d, ZERO_FP32, 2, n, got, got);
            assert_same(2 * n, got, want);
        }
    }
}

/* Both backends, and the steps one by one: bias, dropout, sum. Two samples: their masks differ. */
TEST(branches_end_to_the_bit)
{
    zero_math fast = test_opened(cpu), slow = test_opened(naive);
    for (size_t s = 0; s < COUNT(shapes); s++) {
        int64_t T = shapes[s][0], cols = shapes[s][1], n = 2 * T * cols;
        float *residual = test_floats(*state, n), *bias = test_floats(*state, cols);
        for (int p = 0; p < 2; p++) {
            zero_dropout d = {{.seed = 5, .purpose = ZERO_RNG_TEST, .sample = 3},
                              0.3f * (float)p};
            float *x = test_floats(*state, n), *want = test_copy(*state, n, x);
            float *steps = test_copy(*state, n, x);
            float *apart = test_floats(*state, n), *naively = test_floats(*state, n);
            zero_branch b = {d, 2, T, cols, ZERO_FP32, ZERO_FP32, bias, residual, x, apart};
            cpu->add_branch(&fast, &b);
            b.out = naively;
            naive->add_branch(&slow, &b);
            b.out = x; /* in place */
            cpu->add_branch(&fast, &b);
            b.in = b.out = want;
            naive->add_branch(&slow, &b);
            assert_same(n, x, want);
            assert_same(n, apart, want);
            assert_same(n, naively, want);
            naive->add_bias(&slow, &(zero_bias){.rows = 2 * T,
                                                .cols = cols,
                                                .type = ZERO_FP32,
                                                .bias = bias,
                                                .x = steps});
            naive->dropout(&slow, &d, ZERO_FP32, 2, T * cols, steps, steps);
            for (int64_t i = 0; i < n; i++) steps[i] = residual[i] + steps[i];
            assert_same(n, x, steps);
        }
    }
}

/* The exact one has the same bits in both. */
static void check_gelu(test_pool *pool, int64_t rows, int64_t cols, bool is_exact)
{
    zero_math fast = test_opened(cpu), slow = test_opened(naive);
    const int64_t n = rows * cols;
    float *x = test_floats(pool, n), *bias = test_floats(pool, cols);
    for (int64_t i = 0; i < n; i++) x[i] *= i % 5 == 0 ? 8.0f : 1.0f;
    float *x2 = test_copy(pool, n, x), *want = test_floats(pool, n),
          *got = test_floats(pool, n);
    naive->bias_gelu(&slow, &(zero_bias){.rows = rows,
                                         .cols = cols,
                                         .type = ZERO_FP32,
                                         .bias = bias,
                                         .x = x,
                                         .y = want,
                                         .is_exact = is_exact});
    cpu->bias_gelu(&fast, &(zero_bias){.rows = rows,
                                       .cols = cols,
                                       .type = ZERO_FP32,
                                       .bias = bias,
                                       .x = x2,
                                       .y = got,
                                       .is_exact = is_exact});
    assert_same(n, x2, x);
    if (is_exact)
        assert_same(n, got, want);
    else
        assert_close(n, got, want);
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        float *dy = test_floats(pool, n), *dbias = test_floats(pool, cols);
        float *dbias2 = test_copy(pool, cols, dbias);
        naive->bias_gelu_backward(&slow, &(zero_bias_grad){.rows = rows,
                                                           .cols = cols,
                                                           .x = x,
                                                           .dy = dy,
                                                           .dx = want,
                                                           .is_exact = is_exact,
                                                           .accumulate = accumulate,
                                                           .dbias = dbias});
        float *dx = accumulate ? dy : test_floats(pool, n);
        cpu->bias_gelu_backward(&fast, &(zero_bias_grad){.rows = rows,
                                                         .cols = cols,
                                                         .x = x,
                                                         .dy = dy,
                                                         .dx = dx,
                                                         .is_exact = is_exact,
                                                         .accumulate = accumulate,
                                                         .dbias = dbias2});
        if (is_exact)
            assert_same(n, dx, want);
        else
            assert_close(n, dx, want);
        assert_close(cols, dbias2, dbias);
    }
}

TEST(gelu_agrees_also_far_from_zero)
{
    zero_math fast = test_opened(cpu);
    for (int is_exact = 0; is_exact < 2; is_exact++) {
        for (size_t s = 0; s < COUNT(lengths); s++)
            check_gelu(*state, 1, lengths[s], is_exact);
        for (size_t s = 0; s < COUNT(shapes); s++)
            check_gelu(*state, shapes[s][0], shapes[s][1], is_exact);
        const float one[] = {1, 1, 1, 1}, zeros[4] = {0};
        const float values[] = {0, 0, 1e4f, 1e30f}, slopes[] = {0, 0, 1, 1};
        float x[] = {-1e30f, -1e4f, 1e4f, 1e30f}, y[4], dx[4], dbias[4];
        cpu->bias_gelu(&fast, &(zero_bias){.rows = 1,
                                           .cols = 4,
                                           .type = ZERO_FP32,
                                           .bias = zeros,
                                           .x = x,
                                           .y = y,
                                           .is_exact = is_exact});
        cpu->bias_gelu_backward(&fast, &(zero_bias_grad){.rows = 1,
                                                         .cols = 4,
                                                         .x = x,
                                                         .dy = one,
                                                         .dx = dx,
                                                         .is_exact = is_exact,
                                                         .dbias = dbias});
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

static void check_layernorm(test_pool *pool, int64_t rows, int64_t C, bool accumulate)
{
    zero_math fast = test_opened(cpu), slow = test_opened(naive);
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
    zero_layernorm_args of = {.eps = ZERO_LAYERNORM_EPS,
                              .rows = rows,
                              .C = C,
                              .x = x,
                              .gain = gain,
                              .bias = bias};
    of.y = y[0], of.mean = mean[0], of.rstd = rstd[0];
    naive->layernorm(&slow, &of);
    of.y = y[1], of.mean = mean[1], of.rstd = rstd[1];
    cpu->layernorm(&fast, &of);
    assert_close(n, y[1], y[0]);
    assert_close(rows, mean[1], mean[0]);
    assert_close(rows, rstd[1], rstd[0]);
    zero_layernorm_grad_args grad = {.rows = rows, .C = C, .x = x, .gain = gain};
    grad.mean = mean[0], grad.rstd = rstd[0], grad.dy = dy, grad.accumulate = accumulate;
    grad.dx = dx[0], grad.dgain = dgain[0], grad.dbias = dbias[0];
    naive->layernorm_backward(&slow, &grad);
    grad.dx = dx[1], grad.dgain = dgain[1], grad.dbias = dbias[1];
    cpu->layernorm_backward(&fast, &grad);
    assert_close(n, dx[1], dx[0]);
    assert_close(C, dgain[1], dgain[0]);
    assert_close(C, dbias[1], dbias[0]);
}

TEST(layernorm_agrees)
{
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (int accumulate = 0; accumulate < 2; accumulate++)
            check_layernorm(*state, shapes[s][0], shapes[s][1], accumulate);
}

TEST(embeddings_agree_to_the_bit)
{
    zero_math fast = test_opened(cpu), slow = test_opened(naive);
    const int64_t sizes[][4] = {
        {1, 1, 1, 1}, {2, 7, 17, 5}, {3, 33, 48, 257}}; /* B T C V */
    for (size_t i = 0; i < COUNT(sizes); i++) {
        int64_t B = sizes[i][0], T = sizes[i][1], C = sizes[i][2], V = sizes[i][3];
        int32_t *tokens = test_tokens(*state, B * T, V);
        float *wte = test_floats(*state, V * C), *wpe = test_floats(*state, T * C);
        float *want = test_floats(*state, B * T * C), *got = test_floats(*state, B * T * C);
        zero_embedding of = {.B = B, .T = T, .C = C, .tokens = tokens};
        of.wte = wte, of.wpe = wpe, of.out = want;
        naive->embedding(&slow, &of);
        of.out = got;
        cpu->embedding(&fast, &of);
        assert_same(B * T * C, got, want);
        float *dwte = test_copy(*state, V * C, wte), *dwpe = test_copy(*state, T * C, wpe);
        zero_embedding_grad grad = {.B = B, .T = T, .C = C, .tokens = tokens};
        grad.dout = want, grad.dwte = wte, grad.dwpe = wpe;
        naive->embedding_backward(&slow, &grad);
        grad.dwte = dwte, grad.dwpe = dwpe;
        cpu->embedding_backward(&fast, &grad);
        assert_same(V * C, dwte, wte);
        assert_same(T * C, dwpe, wpe);
    }
}

TEST(cross_entropy_agrees_and_leaves_the_logits_if_asked)
{
    zero_math fast = test_opened(cpu), slow = test_opened(naive);
    const int64_t sizes[][2] = {{1, 1}, {3, 2}, {5, 16}, {4, 257}, {3, 1031}, {2, 50257}};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        int64_t rows = sizes[i][0], V = sizes[i][1], n = rows * V;
        int32_t *targets = test_tokens(*state, rows, V);
        float *logits = test_floats(*state, n), *want = test_copy(*state, n, logits);
        float *got = test_copy(*state, n, logits), *loss = test_floats(*state, rows);
        float *kept = test_floats(*state, rows), *oracle = test_floats(*state, rows);
        naive->cross_entropy(&slow, &(zero_cross_entropy){.rows = rows,
                                                          .V = V,
                                                          .targets = targets,
                                                          .dscale = 0.0f,
                                                          .logits = want,
                                                          .loss = oracle});
        cpu->cross_entropy(&fast, &(zero_cross_entropy){.rows = rows,
                                                        .V = V,
                                                        .targets = targets,
                                                        .dscale = 0.0f,
                                                        .logits = got,
                                                        .loss = kept});
        assert_same(n, want, logits);
        assert_same(n, got, logits);
        naive->cross_entropy(&slow, &(zero_cross_entropy){.rows = rows,
                                                          .V = V,
                                                          .targets = targets,
                                                          .dscale = 0.125f,
                                                          .logits = want,
                                                          .loss = oracle});
        cpu->cross_entropy(&fast, &(zero_cross_entropy){.rows = rows,
                                                        .V = V,
                                                        .targets = targets,
                                                        .dscale = 0.125f,
                                                        .logits = got,
                                                        .loss = loss});
        if (V > 1) assert_close(rows, loss, oracle);
        assert_close(n, got, want);
        assert_same(rows, kept, loss);
    }
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
