/* Threads of a rank: operations on rows and on flat ranges have the bits of one thread. */
#include "support/team_test.h"

/* ---- rows ---- */

enum { ROWS = 129, COLS = 1030 };

static void rows(const zero_math *math, test_pool *pool, float *out)
{
    const zero_backend *cpu = &zero_backend_cpu;
    const int64_t n = ROWS * COLS;
    float *bias = test_floats(pool, COLS), *x = test_floats(pool, n);
    float *dy = test_floats(pool, n), *sums = out + 6 * n;
    memcpy(out, x, (size_t)n * sizeof *x);
    cpu->add_bias(
        math, &(zero_bias){
                  .rows = ROWS, .cols = COLS, .type = ZERO_FP32, .bias = bias, .x = out});
    cpu->bias_gelu(math, &(zero_bias){.rows = ROWS,
                                      .cols = COLS,
                                      .type = ZERO_FP32,
                                      .bias = bias,
                                      .x = out,
                                      .y = out + n});
    cpu->bias_gelu_backward(math, &(zero_bias_grad){.rows = ROWS,
                                                    .cols = COLS,
                                                    .x = out,
                                                    .dy = dy,
                                                    .dx = out + 2 * n,
                                                    .dbias = sums});
    cpu->bias_backward(
        math,
        &(zero_bias_grad){.rows = ROWS, .cols = COLS, .dy = dy, .dbias = sums + COLS});
    cpu->bias_backward(
        math,
        &(zero_bias_grad){
            .rows = ROWS, .cols = COLS, .dy = x, .accumulate = true, .dbias = sums + COLS});
    for (int masked = 0; masked < 2; masked++) {
        const zero_branch branch = {.dropout = {.p = masked ? 0.3f : 0.0f},
                                    .B = 3,
                                    .T = ROWS / 3,
                                    .cols = COLS,
                                    .bias = bias,
                                    .residual = x,
                                    .in = dy,
                                    .out = out + (3 + masked) * n};
        cpu->add_branch(math, &branch);
    }
    const zero_dropout d = {.p = 0.4f};
    cpu->dropout(math, &d, ZERO_FP32, 1, n, dy, out + 5 * n);
}

static void norms(const zero_math *math, test_pool *pool, float *out)
{
    const int64_t n = ROWS * COLS;
    float *x = test_floats(pool, n), *gain = test_floats(pool, COLS);
    float *bias = test_floats(pool, COLS), *dy = test_floats(pool, n);
    uint16_t *half = test_bytes(pool, 2 * COLS);
    zero_convert(ZERO_FP32, ZERO_BF16, COLS, gain, half);
    float *moments = out + 4 * n, *sums = moments + 4 * ROWS;
    for (int i = 0; i < 2; i++) {
        const zero_type type = i ? ZERO_BF16 : ZERO_FP32;
        const void *g = i ? (const void *)half : gain, *b = i ? (const void *)half : bias;
        float *mean = moments + 2 * i * ROWS, *rstd = mean + ROWS;
        const zero_layernorm_args a = {.eps = ZERO_LAYERNORM_EPS,
                                       .rows = ROWS,
                                       .C = COLS,
                                       .x = x,
                                       .type = type,
                                       .gain = g,
                                       .bias = b,
                                       .y = out + i * n,
                                       .mean = mean,
                                       .rstd = rstd};
        zero_backend_cpu.layernorm(math, &a);
        const zero_layernorm_grad_args d = {.rows = ROWS,
                                            .C = COLS,
                                            .x = x,
                                            .type = type,
                                            .gain = g,
                                            .mean = mean,
                                            .rstd = rstd,
                                            .dy = dy,
                                            .dx = out + (2 + i) * n,
                                            .accumulate = i == 1,
                                            .dgain = sums,
                                            .dbias = sums + COLS};
        zero_backend_cpu.layernorm_backward(math, &d);
    }
}

static void without_means(const zero_math *math, test_pool *pool, float *out)
{
    const int64_t n = ROWS * COLS;
    float *x = test_floats(pool, n), *gain = test_floats(pool, COLS);
    const zero_layernorm_args a = {.rows = ROWS,
                                   .C = COLS,
                                   .eps = 1e-6f,
                                   .x = x,
                                   .gain = gain,
                                   .y = out,
                                   .rstd = out + 2 * n};
    const zero_layernorm_grad_args d = {.rows = ROWS,
                                        .C = COLS,
                                        .x = x,
                                        .gain = gain,
                                        .rstd = a.rstd,
                                        .dy = x,
                                        .dx = out + n,
                                        .dgain = a.rstd + ROWS};
    zero_backend_cpu.layernorm(math, &a);
    zero_backend_cpu.layernorm_backward(math, &d);
}

static void words(const zero_math *math, test_pool *pool, float *out)
{
    enum { B = 3, T = 90, C = 500, V = 40 };
    const int64_t n = B * T * C;
    const int32_t *tokens = test_tokens(pool, B * T, V);
    const float *wte = test_floats(pool, V * C), *wpe = test_floats(pool, T * C);
    for (int shared = 0; shared < 2; shared++, out += n + (V + T) * C) {
        const zero_embedding e = {.B = B,
                                  .T = T,
                                  .C = C,
                                  .first = shared ? 10 : 0,
                                  .words = shared ? 20 : 0,
                                  .tokens = tokens,
                                  .wte = wte,
                                  .wpe = wpe,
                                  .out = out};
        const zero_embedding_grad d = {.B = B,
                                       .T = T,
                                       .C = C,
                                       .first = e.first,
                                       .words = e.words,
                                       .tokens = tokens,
                                       .dout = wte,
                                       .dwte = out + n,
                                       .dwpe = out + n + V * C};
        zero_backend_cpu.embedding(math, &e);
        zero_embedding_grad grad = d;
        grad.dout = out;
        zero_backend_cpu.embedding_backward(math, &grad);
    }
}

static void loss(const zero_math *math, test_pool *pool, float *out)
{
    enum { V = 1500 };
    const int32_t *targets = test_tokens(pool, ROWS, V);
    const float *logits = test_floats(pool, ROWS * V);
    const size_t bytes = ROWS * V * sizeof(float);
    memcpy(out, logits, bytes);
    zero_backend_cpu.cross_entropy(math, &(zero_cross_entropy){.rows = ROWS,
                                                               .V = V,
                                                               .targets = targets,
                                                               .dscale = 0.1f,
                                                               .logits = out,
                                                               .loss = out + ROWS * V});
    out += ROWS * (V + 1);
    memcpy(out, logits, bytes);
    float *stats = out + ROWS * V;
    const int64_t ends[] = {700, V};
    const zero_softmax s = {.rows = ROWS,
                            .V = V,
                            .slices = 2,
                            .ends = ends,
                            .targets = targets,
                            .logits = out,
                            .stats = stats,
                            .ranks = 1,
                            .all = stats,
                            .dscale = 0.1f,
                            .loss = stats + 5 * ROWS};
    zero_backend_cpu.softmax_slices(math, &s);
    zero_backend_cpu.softmax_loss(math, &s);
}

TEST(operations_on_rows_do_not_depend_on_threads)
{
    check(state, rows);
    check(state, norms);
    check(state, without_means);
    check(state, words);
    check(state, loss);
}

/* ---- flat ranges ---- */

static void flat(const zero_math *math, test_pool *pool, float *out)
{
    const zero_backend *cpu = &zero_backend_cpu;
    const int64_t n = 3 * ZERO_CPU_PIECE + 77;
    float *x = test_floats(pool, n), *y = test_floats(pool, n);
    zero_exact exact = {{0}};
    double sums[2];
    cpu->clear(math, 100, out);
    cpu->accumulate(math, ZERO_BF16, n, x, y, out);
    cpu->round(math, ZERO_FP16, n, x, out + n);
    for (int64_t less = 0; less < n; less += ZERO_CPU_PIECE - 65) {
        cpu->sum_squares(math, ZERO_FP32, n - less, x, &sums[0]);
        cpu->exact_squares(math, ZERO_FP32, n - less, x, &exact);
        sums[1] = zero_exact_value(&exact);
        memcpy(out + 2 * n, sums, sizeof sums), out += 4;
    }
    const zero_adamw h = {.lr = 0.1f,
                          .beta1 = 0.9f,
                          .beta2 = 0.99f,
                          .eps = 1e-8f,
                          .weight_decay = 0.1f,
                          .grad_scale = 0.5f,
                          .step = 2};
    const zero_adamw_arrays a = {
        .n = n / 2, .grad = x, .master = y, .m = out + 3 * n, .v = out + 4 * n};
    cpu->adamw(math, &h, &a);
    memcpy(out + 2 * n, y, (size_t)(n / 2) * sizeof *y);
}

TEST(operations_on_flat_ranges_do_not_depend_on_threads)
{
    check(state, flat);
}
