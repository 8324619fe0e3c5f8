/* Weights of 16 bits: every call on them has the bits of the same call on the same numbers widened
 * to fp32, for the oracle and for the cpu backend on each instruction set. Flat ranges are in
 * test_flat.c. */
#include "support/math_machines.h"

/* ---- products ---- */

static void check_gemm(test_pool *pool, const machine *m, zero_type type,
                       const int64_t size[3], int flags, int64_t pad)
{
    zero_gemm g = {.m = size[0], .n = size[1], .k = size[2]};
    g.transpose_a = flags & 1, g.transpose_b = flags & 2, g.accumulate = flags & 4;
    int64_t rows_a = g.transpose_a ? g.k : g.m, cols_a = g.transpose_a ? g.m : g.k;
    int64_t rows_b = g.transpose_b ? g.n : g.k, cols_b = g.transpose_b ? g.k : g.n;
    if (pad) g.lda = cols_a + pad, g.ldb = cols_b + 2 * pad, g.ldc = g.n + 3 * pad;
    g.a = test_floats(pool, rows_a * (cols_a + pad));
    numbers b = make_numbers(pool, type, rows_b * (cols_b + 2 * pad));
    if (rows_b * cols_b > 100) set_number(&b, 50, INFINITY), set_number(&b, 70, NAN);

    int64_t len = g.m * (g.n + 3 * pad);
    float *want = test_floats(pool, len), *got = test_copy(pool, len, want);
    g.b = b.wide, g.c = want;
    m->ops->gemm(&m->math, &g);
    g.b = b.half, g.b_type = type, g.c = got;
    m->ops->gemm(&m->math, &g);
    assert_same(len, got, want);
}

TEST(products_have_the_bits_of_widened_weights)
{
    const int64_t sizes[][3] = {{1, 1, 1},    {1, 17, 5},    {61, 53, 47},
                                {16, 32, 0},  {257, 65, 3},  {3, 1100, 2},
                                {5, 9, 1025}, {130, 1, 200}, {600, 1030, 1100}};
    machine m[MACHINES];
    int n = make_machines(*state, m);
    for (int i = 0; i < n; i++) /* The long one takes too long for the oracle. */
        for (size_t s = 0; s < COUNT(sizes) - (m[i].ops == &zero_backend_naive); s++)
            for (int flags = 0; flags < 8; flags++)
                for (int t = 0; t < 2; t++)
                    check_gemm(*state, &m[i], halves[t], sizes[s], flags, 3 * (flags % 2));
}

/* ---- gains, biases and embeddings ---- */

static void check_bias(test_pool *pool, const machine *m, zero_type type, int64_t rows,
                       int64_t cols)
{
    numbers bias = make_numbers(pool, type, cols);
    float *want = test_floats(pool, rows * cols), *got = test_copy(pool, rows * cols, want);
    m->ops->add_bias(
        &m->math,
        &(zero_bias){
            .rows = rows, .cols = cols, .type = ZERO_FP32, .bias = bias.wide, .x = want});
    m->ops->add_bias(
        &m->math,
        &(zero_bias){
            .rows = rows, .cols = cols, .type = type, .bias = bias.half, .x = got});
    assert_same(rows * cols, got, want);
}

/* Operations that add a bias on the way. */
static void check_activation(test_pool *pool, const machine *m, zero_type type,
                             int64_t rows, int64_t cols)
{
    const int64_t n = rows * cols;
    const zero_dropout d = {{.purpose = ZERO_RNG_TEST}, 0.25f};
    numbers bias = make_numbers(pool, type, cols);
    const float *residual = test_floats(pool, n);
    float *y[2], *x[2] = {test_floats(pool, n)};
    x[1] = test_copy(pool, n, x[0]);
    for (int i = 0; i < 2; i++) {
        zero_type t = i ? type : ZERO_FP32;
        const void *b = i ? (void *)bias.half : bias.wide;
        y[i] = test_floats(pool, n);
        m->ops->bias_gelu(
            &m->math,
            &(zero_bias){
                .rows = rows, .cols = cols, .type = t, .bias = b, .x = x[i], .y = y[i]});
        m->ops->add_branch(&m->math, &(zero_branch){d, 1, rows, cols, t, ZERO_FP32, b,
                                                    residual, x[i], x[i]});
    }
    assert_same(n, y[1], y[0]);
    assert_same(n, x[1], x[0]);
}

static void check_layernorm(test_pool *pool, const machine *m, zero_type type, int64_t rows,
                            int64_t C)
{
    const int64_t n = rows * C;
    const float *x = test_floats(pool, n), *dy = test_floats(pool, n);
    numbers gain = make_numbers(pool, type, C), bias = make_numbers(pool, type, C);
    float *y[2], *mean[2], *rstd[2], *dx[2], *dgain[2], *dbias[2];
    for (int i = 0; i < 2; i++) {
        zero_type t = i ? type : ZERO_FP32;
        const void *g = i ? (void *)gain.half : gain.wide;
        const void *b = i ? (void *)bias.half : bias.wide;
        y[i] = test_floats(pool, n);
        mean[i] = test_floats(pool, rows), rstd[i] = test_floats(pool, rows);
        dx[i] = test_copy(pool, n, x);
        dgain[i] = test_floats(pool, C), dbias[i] = test_floats(pool, C);
        zero_layernorm_args of = {.eps = ZERO_LAYERNORM_EPS,
                                  .rows = rows,
                                  .C = C,
                                  .x = x,
                                  .type = t,
                                  .gain = g,
                                  .bias = b};
        of.y = y[i], of.mean = mean[i], of.rstd = rstd[i];
        m->ops->layernorm(&m->math, &of);
        zero_layernorm_grad_args grad = {
            .rows = rows, .C = C, .x = x, .type = t, .gain = g};
        grad.mean = mean[i], grad.rstd = rstd[i], grad.dy = dy;
        grad.dx = dx[i], grad.dgain = dgain[i], grad.dbias = dbias[i];
        m->ops->layernorm_backward(&m->math, &grad);
    }
    assert_same(n, y[1], y[0]);
    assert_same(n, dx[1], dx[0]);
    assert_same(C, dgain[1], dgain[0]);
    assert_same(C, dbias[1], dbias[0]);
}

static void check_embedding(test_pool *pool, const machine *m, zero_type type, int64_t T,
                            int64_t C)
{
    const int64_t B = 2, V = 19, n = B * T * C;
    const int32_t *tokens = test_tokens(pool, B * T, V);
    numbers wte = make_numbers(pool, type, V * C), wpe = make_numbers(pool, type, T * C);
    float *want = test_floats(pool, n), *got = test_floats(pool, n);
    zero_embedding of = {.B = B, .T = T, .C = C, .tokens = tokens};
    of.wte = wte.wide, of.wpe = wpe.wide, of.out = want;
    m->ops->embedding(&m->math, &of);
    of.type = type, of.wte = wte.half, of.wpe = wpe.half, of.out = got;
    m->ops->embedding(&m->math, &of);
    assert_same(n, got, want);
}

TEST(biases_norms_and_embeddings_have_the_bits_of_widened_weights)
{
    const int64_t shapes[][2] = {{1, 1}, {3, 17}, {5, 768}, {131, 1025}, {1, 262144}};
    machine m[MACHINES];
    int n = make_machines(*state, m);
    for (int i = 0; i < n; i++)
        for (size_t s = 0; s < COUNT(shapes); s++)
            for (int t = 0; t < 2; t++) {
                check_bias(*state, &m[i], halves[t], shapes[s][0], shapes[s][1]);
                check_activation(*state, &m[i], halves[t], shapes[s][0], shapes[s][1]);
                check_layernorm(*state, &m[i], halves[t], shapes[s][0], shapes[s][1]);
                check_embedding(*state, &m[i], halves[t], shapes[s][0], shapes[s][1]);
            }
}
