/* All operations of a backend: they poll, and every instruction set gives the same bits. And the
 * list of backends. */
#include "support/math_machines.h"

#include "math/backends.h"
#include "math/blas.h"

static const zero_backend *const cpu = &zero_backend_cpu;

#define assert_polls(call) \
    do { \
        polls = 0; \
        call; \
        assert_true(polls >= 2); \
    } while (0)

TEST(long_operations_poll)
{
    int polls = 0;
    zero_math math = test_opened(cpu);
    math.poll = test_count_poll, math.poll_arg = &polls;
    const int64_t rows = 600, C = 256, n = rows * C;
    float *x = test_floats(*state, 3 * n), *y = test_floats(*state, 3 * n);
    float *w = test_floats(*state, n), *z = test_floats(*state, n),
          *u = test_floats(*state, n);
    int32_t *tokens = test_tokens(*state, rows, C);
    zero_gemm g = {.m = rows, .n = 200, .k = C, .a = x, .b = w, .c = y};
    zero_attention s = {.B = 1, .T = rows, .H = 2, .K = 2, .D = C / 2, .out = y, .lse = w};
    zero_dropout d = {{.purpose = ZERO_RNG_TEST}, 0.5f};
    s.work = test_floats(*state, zero_attention_workspace(&s));
    zero_attention_rows(&s, x, NULL);
    assert_polls(cpu->gemm(&math, &g));
    assert_polls(cpu->add_bias(
        &math,
        &(zero_bias){.rows = rows, .cols = C, .type = ZERO_FP32, .bias = w, .x = y}));
    assert_polls(cpu->bias_backward(
        &math, &(zero_bias_grad){
                   .rows = rows, .cols = C, .dy = x, .accumulate = true, .dbias = w}));
    assert_polls(cpu->add_branch(
        &math, &(zero_branch){d, 2, rows / 2, C, ZERO_FP32, ZERO_FP32, w, x, y, y}));
    assert_polls(cpu->dropout(&math, &d, ZERO_FP32, 1, n, x, y));
    assert_polls(cpu->bias_gelu(
        &math, &(zero_bias){
                   .rows = rows, .cols = C, .type = ZERO_FP32, .bias = w, .x = x, .y = y}));
    assert_polls(cpu->bias_gelu_backward(
        &math,
        &(zero_bias_grad){.rows = rows, .cols = C, .x = x, .dy = y, .dx = y, .dbias = w}));
    assert_polls(cpu->layernorm(&math, &(zero_layernorm_args){rows, C, ZERO_FP32, ZERO_FP32,
                                                              1e-5f, x, w, w, y, z, u}));
    assert_polls(cpu->layernorm_backward(
        &math, &(zero_layernorm_grad_args){rows, C, ZERO_FP32, ZERO_FP32, x, w, z, u, x, y,
                                           false, z, u}));
    assert_polls(cpu->attention(&math, &s));
    s.out = z, s.dout = u;
    zero_attention_rows(&s, x, y);
    assert_polls(cpu->attention_backward(&math, &s));
    const zero_swiglu gate = {
        .rows = rows, .F = C, .x = x, .y = y, .d = test_floats(*state, 2 * n)};
    assert_polls(cpu->swiglu(&math, &gate));
    assert_polls(cpu->swiglu_backward(&math, &gate));
    zero_turn turn = {.B = 1, .T = rows, .H = 2, .K = 2, .D = C / 4, .R = C / 4};
    turn.q = turn.to_q = turn.dq = (zero_heads){x, C, C / 4};
    turn.k = turn.to_k = turn.dk = (zero_heads){x + C / 2, C, C / 4};
    assert_polls(cpu->turn(&math, &turn));
    assert_polls(cpu->turn_backward(&math, &turn));
    assert_polls(
        cpu->embedding(&math, &(zero_embedding){1, rows, C, 0, 0, tokens, ZERO_FP32,
                                                ZERO_FP32, w, z, y, NULL}));
    assert_polls(cpu->embedding_backward(
        &math, &(zero_embedding_grad){1, rows, C, 0, 0, tokens, ZERO_FP32, x, w, z}));
}

TEST(losses_and_flat_ranges_poll)
{
    double sum;
    zero_exact exact = {0};
    const zero_adamw recipe = test_recipe();
    int polls = 0;
    zero_math math = test_opened(cpu);
    math.poll = test_count_poll, math.poll_arg = &polls;
    const int64_t rows = 600, C = 256, n = rows * C;
    float *x = test_floats(*state, n), *y = test_floats(*state, n);
    float *w = test_floats(*state, n), *z = test_floats(*state, n);
    int32_t *tokens = test_tokens(*state, rows, C);
    assert_polls(cpu->cross_entropy(&math, &(zero_cross_entropy){.rows = rows,
                                                                 .V = C,
                                                                 .targets = tokens,
                                                                 .dscale = 1.0f,
                                                                 .logits = y,
                                                                 .loss = w}));
    const zero_softmax slices = {.rows = rows,
                                 .V = C,
                                 .slices = 2,
                                 .ends = (const int64_t[]){C / 2, C},
                                 .targets = tokens,
                                 .logits = y,
                                 .stats = w,
                                 .ranks = 1,
                                 .all = w,
                                 .dscale = 1.0f,
                                 .loss = z};
    assert_polls(cpu->softmax_slices(&math, &slices));
    assert_polls(cpu->softmax_loss(&math, &slices));
    assert_polls(cpu->adamw(&math, &recipe,
                            &(zero_adamw_arrays){n, ZERO_FP32, x, y, w, z, NULL, 0, NULL}));
    assert_polls(cpu->sum_squares(&math, ZERO_FP32, n, x, &sum));
    assert_polls(cpu->exact_squares(&math, ZERO_FP32, n, x, &exact));
}

TEST(operations_on_rows_of_16_bits_poll)
{
    const zero_type half = ZERO_BF16;
    int polls = 0;
    zero_math math = test_opened(cpu);
    math.poll = test_count_poll, math.poll_arg = &polls;
    const int64_t rows = 600, C = 256, n = rows * C;
    uint16_t *x = test_bytes(*state, 2 * n), *y = test_bytes(*state, 2 * n);
    float *gain = test_floats(*state, C), *bias = test_floats(*state, C);
    float *mean = test_floats(*state, rows), *rstd = test_floats(*state, rows);
    const zero_dropout d = {{.purpose = ZERO_RNG_TEST}, 0.5f};
    const zero_bias with_bias = {
        .rows = rows, .cols = C, .rows_type = half, .bias = bias, .x = x, .y = y};
    const zero_bias_grad slopes = {.rows = rows,
                                   .cols = C,
                                   .rows_type = half,
                                   .x = x,
                                   .dy = y,
                                   .dx = y,
                                   .dbias = bias};
    memset(x, 0, 2 * (size_t)n), memset(y, 0, 2 * (size_t)n);
    assert_polls(cpu->add_bias(&math, &with_bias));
    assert_polls(cpu->bias_gelu(&math, &with_bias));
    assert_polls(cpu->bias_backward(&math, &slopes));
    assert_polls(cpu->bias_gelu_backward(&math, &slopes));
    assert_polls(cpu->dropout(&math, &d, half, 1, n, x, y));
    assert_polls(cpu->add_branch(
        &math, &(zero_branch){d, 2, rows / 2, C, ZERO_FP32, half, bias, x, y, y}));
    assert_polls(
        cpu->layernorm(&math, &(zero_layernorm_args){rows, C, ZERO_FP32, half, 1e-5f, x,
                                                     gain, bias, y, mean, rstd}));
    assert_polls(cpu->layernorm_backward(
        &math, &(zero_layernorm_grad_args){rows, C, ZERO_FP32, half, x, gain, mean, rstd, y,
                                           x, false, gain, bias}));
}

TEST(long_operations_on_16_bits_poll)
{
    double sum;
    const zero_adamw recipe = test_recipe();
    const int64_t n = 150000;
    int polls = 0;
    machine m[MACHINES];
    make_machines(*state, m);
    zero_math math = m[1].math;
    math.poll = test_count_poll, math.poll_arg = &polls;
    numbers x = make_numbers(*state, ZERO_BF16, n);
    float *y = test_floats(*state, n), *z = test_floats(*state, n);
    float *w = test_floats(*state, n);
    uint16_t *param = test_bytes(*state, 2 * n);
    zero_gemm g = {.m = 600, .n = 8, .k = 200, .b_type = ZERO_BF16};
    g.a = x.wide, g.b = x.half, g.c = y;
    assert_polls(cpu->gemm(&math, &g));
    assert_polls(
        cpu->adamw(&math, &recipe,
                   &(zero_adamw_arrays){n, ZERO_BF16, x.half, y, z, w, param, 0, NULL}));
    assert_polls(cpu->sum_squares(&math, ZERO_BF16, n, x.half, &sum));
    assert_polls(cpu->round(&math, ZERO_BF16, n, x.wide, x.half));
    assert_polls(cpu->accumulate(&math, ZERO_BF16, n, y, x.wide, y));
}

/* Runs every operation that has kernels, on random input; returns all results. */
static float *run_kernels(test_pool *pool, const zero_cpu_kernels *kernels, int64_t *len)
{
    const zero_adamw recipe = test_recipe();
    zero_math math = {
        .state = {[ZERO_CPU_KERNELS] = kernels, [ZERO_CPU_PANELS] = zero_panels_at(0)}};
    const int64_t B = 2, T = 67, C = 51, rows = B * T, n = rows * C;

    float *out = test_floats(pool, 20 * n + 4 * rows * T), *at = out;
    float *x = test_floats(pool, 3 * n), *w = test_floats(pool, C),
          *dy = test_floats(pool, n);
    int32_t *targets = test_tokens(pool, rows, C);
    zero_attention s = {.B = B, .T = T, .H = 3, .K = 3, .D = C / 3};
    s.dropout = (zero_dropout){{.purpose = ZERO_RNG_TEST}, 0.2f};
    s.work = test_floats(pool, zero_attention_workspace(&s));

    float *lse = at, *y = lse + rows * s.H, *dqkv = y + n;
    s.out = y, s.lse = lse, s.dout = dy;
    zero_attention_rows(&s, x, dqkv);
    cpu->attention(&math, &s);
    cpu->attention_backward(&math, &s);
    float *mean = dqkv + 3 * n, *rstd = mean + rows, *norm = rstd + rows, *dx = norm + n;
    float *dgain = dx + n, *dbias = dgain + C;
    cpu->layernorm(&math, &(zero_layernorm_args){rows, C, ZERO_FP32, ZERO_FP32, 1e-5f, x, w,
                                                 w, norm, mean, rstd});
    cpu->layernorm_backward(
        &math, &(zero_layernorm_grad_args){rows, C, ZERO_FP32, ZERO_FP32, x, w, mean, rstd,
                                           dy, dx, false, dgain, dbias});
    float *branch = dbias + C, *act = branch + n, *dact = act + n, *dsum = dact + n;
    float *logits = dsum + C, *loss = logits + n;
    memcpy(branch, dy, (size_t)n * sizeof *dy);
    cpu->add_branch(&math, &(zero_branch){s.dropout, B, T, C, ZERO_FP32, ZERO_FP32, w, x,
                                          branch, branch});
    cpu->bias_gelu(
        &math,
        &(zero_bias){
            .rows = rows, .cols = C, .type = ZERO_FP32, .bias = w, .x = x, .y = act});
    cpu->bias_gelu_backward(
        &math, &(zero_bias_grad){
                   .rows = rows, .cols = C, .x = x, .dy = dy, .dx = dact, .dbias = dsum});
    memcpy(logits, x, (size_t)n * sizeof *x);
    cpu->cross_entropy(&math, &(zero_cross_entropy){.rows = rows,
                                                    .V = C,
                                                    .targets = targets,
                                                    .dscale = 0.1f,
                                                    .logits = logits,
                                                    .loss = loss});
    float *sliced = loss + rows, *stats = sliced + n, *losses = stats + 5 * rows;
    memcpy(sliced, x, (size_t)n * sizeof *x);
    const zero_softmax slices = {.rows = rows,
                                 .V = C,
                                 .slices = 2,
                                 .ends = (const int64_t[]){C / 3, C},
                                 .targets = targets,
                                 .logits = sliced,
                                 .stats = stats,
                                 .ranks = 1,
                                 .all = stats,
                                 .dscale = 0.1f,
                                 .loss = losses};
    cpu->softmax_slices(&math, &slices);
    cpu->softmax_loss(&math, &slices);
    float *m = losses + rows, *v = m + n, *p = v + n;
    memset(m, 0, (size_t)(2 * n) * sizeof *m);
    cpu->adamw(&math, &recipe,
               &(zero_adamw_arrays){n, ZERO_FP32, dy, p, m, v, NULL, 0, NULL});
    float *exact = p + n, *slope = exact + n;
    cpu->bias_gelu(&math, &(zero_bias){.rows = rows,
                                       .cols = C,
                                       .type = ZERO_FP32,
                                       .bias = w,
                                       .x = x,
                                       .y = exact,
                                       .is_exact = true});
    cpu->bias_gelu_backward(&math, &(zero_bias_grad){.rows = rows,
                                                     .cols = C,
                                                     .x = x,
                                                     .dy = dy,
                                                     .dx = slope,
                                                     .is_exact = true,
                                                     .dbias = dsum});
    *len = slope + n - out;
    return out;
}

TEST(every_instruction_set_gives_the_same_bits)
{
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

TEST(backends_are_found_by_name)
{
    const zero_backend *found = NULL;
    assert_ok(zero_backend_find("cpu", &found));
    assert_ptr_equal(found, cpu);
    assert_ok(zero_backend_find("naive", &found));
    assert_ptr_equal(found, &zero_backend_naive);
    assert_int_equal(zero_backend_find("tpu", &found), ZERO_ERR_INVALID);
    assert_ptr_equal(found, &zero_backend_naive);
    assert_told("'tpu'");
}

TEST(every_backend_is_listed_and_offered)
{
    const zero_backend *found = NULL;
    const char *name;
    int n = 0;
    assert_string_equal(zero_backend_name_at(0), "cpu");
    for (; (name = zero_backend_name_at(n)); n++) {
        assert_ok(zero_backend_find(name, &found));
        assert_string_equal(found->name, name);
    }
    assert_int_equal(n, 2);
    assert_int_equal(zero_backend_find("", &found), ZERO_ERR_INVALID);
    assert_non_null(
        strstr(zero_last_error(), "choose 'cpu' (fast) or 'naive' (plain loops"));
}

TEST(blas_tells_its_name_and_obeys)
{
    char name[64] = "";
    zero_blas_name(name, sizeof name);
    assert_true(strlen(name) >= 4);
    /* A library without a known name has no known call for threads. */
    int expected = strcmp(name, "BLAS") == 0 ? 0 : 1;
    assert_int_equal(zero_blas_set_threads(1), expected);
    print_message("%s\n", name);
}
