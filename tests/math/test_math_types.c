/* Weights and gradients of 16 bits: every call on them has the bits of the same call on the
 * same numbers widened to fp32, for the oracle and for the cpu backend on each instruction
 * set. */
#include "support/math_test.h"

#include "base/cpu_level.h"
#include "base/half.h"
#include "math/cpu_state.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define assert_same(n, got, want) \
    assert_memory_equal(got, want, (size_t)(n) * sizeof(float))

static const zero_backend *const cpu = &zero_backend_cpu, *const naive =
                                                              &zero_backend_naive;
static const zero_type halves[] = {ZERO_BF16, ZERO_FP16};
static const int64_t lengths[] = {1, 7, 16, 61, 1031, 4096, 4097, 70001};

/* A backend that is ready to compute: the oracle, or the cpu backend on one instruction set. */
typedef struct {
    const zero_backend *ops;
    zero_math math;
} machine;

#define MACHINES (1 + ZERO_CPU_LEVELS)

/* What the scratch held before must not matter: it starts as NaN. */
static int make_machines(test_pool *pool, machine m[MACHINES])
{
    const zero_cpu_kernels *kernels;
    int n = 0;
    int64_t room = zero_math_scratch() * (int64_t)sizeof(float);
    float *scratch = test_bytes(pool, room);
    memset(scratch, 0xff, (size_t)room);
    m[n++] = (machine){naive, {.scratch = scratch}};
    for (; (kernels = zero_cpu_kernels_at(n - 1)); n++)
        m[n] =
            (machine){cpu, {.state = {[ZERO_CPU_KERNELS] = kernels}, .scratch = scratch}};
    return n;
}

/* The same numbers twice. The 16-bit ones are aligned to two bytes and no more. */
typedef struct {
    zero_type type;
    uint16_t *half;
    float *wide;
} numbers;

static numbers make_numbers(test_pool *pool, zero_type type, int64_t n)
{
    numbers x = {.type = type, .wide = test_floats(pool, n)};
    x.half = (uint16_t *)test_bytes(pool, 2 * (n + 1)) + 1;
    zero_convert(ZERO_FP32, type, n, x.wide, x.half);
    zero_convert(type, ZERO_FP32, n, x.half, x.wide);
    return x;
}

static void set_number(numbers *x, int64_t i, float value)
{
    zero_convert(ZERO_FP32, x->type, 1, &value, x->half + i);
    zero_convert(x->type, ZERO_FP32, 1, x->half + i, x->wide + i);
}

/* Equal bits; but which NaN a NaN is may differ. */
static void assert_same_numbers(int64_t n, const float *got, const float *want)
{
    for (int64_t i = 0; i < n; i++) {
        if (isnan(got[i]) && isnan(want[i])) continue;
        if (memcmp(got + i, want + i, sizeof *got) != 0)
            fail_msg("element %lld: %g, not %g", (long long)i, (double)got[i],
                     (double)want[i]);
    }
}

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

static void products_have_the_bits_of_widened_weights(void **state)
{
    const int64_t sizes[][3] = {{1, 1, 1},    {1, 17, 5},    {61, 53, 47},
                                {16, 32, 0},  {257, 65, 3},  {3, 1100, 2},
                                {5, 9, 1025}, {130, 1, 200}, {600, 1030, 1100}};
    machine m[MACHINES];
    int n = make_machines(*state, m);
    for (int i = 0; i < n; i++)
        for (size_t s = 0; s < COUNT(sizes) - (m[i].ops == naive);
             s++) /* but the long one */
            for (int flags = 0; flags < 8; flags++)
                for (int t = 0; t < 2; t++)
                    check_gemm(*state, &m[i], halves[t], sizes[s], flags, 3 * (flags % 2));
}

/* ---- what reads gains, biases and embeddings ---- */

static void check_bias(test_pool *pool, const machine *m, zero_type type, int64_t rows,
                       int64_t cols)
{
    numbers bias = make_numbers(pool, type, cols);
    float *want = test_floats(pool, rows * cols), *got = test_copy(pool, rows * cols, want);
    m->ops->add_bias(&m->math, rows, cols, ZERO_FP32, bias.wide, want);
    m->ops->add_bias(&m->math, rows, cols, type, bias.half, got);
    assert_same(rows * cols, got, want);
}

/* What adds a bias on its way. */
static void check_activation(test_pool *pool, const machine *m, zero_type type,
                             int64_t rows, int64_t cols)
{
    const int64_t n = rows * cols;
    const zero_dropout d = {{.purpose = ZERO_RNG_TEST}, 0.25f};
    numbers bias = make_numbers(pool, type, cols);
    const float *around = test_floats(pool, n);
    float *y[2], *x[2] = {test_floats(pool, n)};
    x[1] = test_copy(pool, n, x[0]);
    for (int i = 0; i < 2; i++) {
        zero_type t = i ? type : ZERO_FP32;
        const void *b = i ? (void *)bias.half : bias.wide;
        y[i] = test_floats(pool, n);
        m->ops->bias_gelu(&m->math, rows, cols, t, b, x[i], y[i]);
        m->ops->add_branch(&m->math, &d, 1, rows, cols, t, b, around, x[i]);
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
        m->ops->layernorm(&m->math, rows, C, x, t, g, b, y[i], mean[i], rstd[i]);
        m->ops->layernorm_backward(&m->math, rows, C, x, t, g, mean[i], rstd[i], dy, dx[i],
                                   false, dgain[i], dbias[i]);
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
    m->ops->embedding(&m->math, B, T, C, tokens, ZERO_FP32, wte.wide, wpe.wide, want);
    m->ops->embedding(&m->math, B, T, C, tokens, type, wte.half, wpe.half, got);
    assert_same(n, got, want);
}

static void biases_norms_and_embeddings_have_the_bits_of_widened_weights(void **state)
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

/* ---- the optimizer ---- */

static const zero_adamw recipe = {.lr = 1e-2f,
                                  .beta1 = 0.9f,
                                  .beta2 = 0.95f,
                                  .eps = 1e-8f,
                                  .weight_decay = 0.1f,
                                  .grad_scale = 0.5f,
                                  .step = 3};

/* Masters, both moments and rounded parameters of one range. */
typedef struct {
    float *master, *m, *v;
    uint16_t *param;
} states;

static states make_states(test_pool *pool, int64_t n, const float *start)
{
    states s = {.master = test_copy(pool, n, start), .m = test_copy(pool, n, start)};
    s.v = test_copy(pool, n, start);
    for (int64_t i = 0; i < n; i++) s.v[i] *= s.v[i]; /* second moments are not negative */
    s.param = (uint16_t *)test_bytes(pool, 2 * (n + 1)) + 1;
    memset(s.param, 0xff, (size_t)(2 * n));
    return s;
}

static void assert_same_states(int64_t n, const states *got, const states *want)
{
    assert_same_numbers(n, got->master, want->master);
    assert_same_numbers(n, got->m, want->m);
    assert_same_numbers(n, got->v, want->v);
}

/* A step on the same numbers in fp32, by the oracle, and all machines against it. */
static void check_adamw(test_pool *pool, const machine *m, int machines, zero_type type,
                        int64_t n)
{
    numbers grad = make_numbers(pool, type, n);
    const float *start = test_floats(pool, n);
    if (n > 60) set_number(&grad, 50, NAN), set_number(&grad, 51, -INFINITY);
    states want = make_states(pool, n, start);
    naive->adamw(&m[0].math, &recipe, n, ZERO_FP32, grad.wide, want.master, want.m, want.v,
                 NULL);
    for (int i = 0; i < machines; i++) {
        states got = make_states(pool, n, start);
        float *rounded = test_floats(pool, n), *kept = test_floats(pool, n);
        m[i].ops->adamw(&m[i].math, &recipe, n, type, grad.half, got.master, got.m, got.v,
                        got.param);
        assert_same_states(n, &got, &want);
        zero_convert(type, ZERO_FP32, n, got.param, kept);
        m[i].ops->accumulate(&m[i].math, type, n, NULL, want.master, rounded);
        assert_same_numbers(n, kept, rounded);
        if (n > 60) assert_true(isnan(kept[50]) && isfinite(kept[49]));
    }
}

static void
adamw_moves_the_masters_as_in_fp32_and_rounds_them_to_the_parameters(void **state)
{
    machine m[MACHINES];
    int n = make_machines(*state, m);
    for (size_t s = 0; s < COUNT(lengths); s++)
        for (int t = 0; t < 2; t++) check_adamw(*state, m, n, halves[t], lengths[s]);
}

/* ---- rounding and sums ---- */

static float rounded(zero_type type, float x)
{
    if (type == ZERO_BF16) return zero_from_bf16(zero_to_bf16(x));
    return type == ZERO_FP16 ? zero_from_fp16(zero_to_fp16(x)) : x;
}

/* Of every size that rounding meets: too large, too small, ties, infinity, NaN. */
static float *odd_floats(test_pool *pool, int64_t n)
{
    static const float odd[] = {65520.0f,    65519.0f, 1e-39f,   1e-6f, 3.4e38f,
                                1.00390625f, -0.0f,    INFINITY, NAN};
    float *x = test_floats(pool, n);
    for (int64_t i = 0; i < n; i += 3) x[i] = odd[(size_t)(i / 3) % COUNT(odd)];
    return x;
}

static void check_round(test_pool *pool, const machine *m, zero_type type, int64_t n)
{
    const float *in = odd_floats(pool, n);
    char *out = test_bytes(pool, n * (int64_t)zero_type_size(type));
    float *wide = test_floats(pool, n), *want = test_floats(pool, n);
    for (int64_t i = 0; i < n; i++) want[i] = rounded(type, in[i]);
    m->ops->round(&m->math, type, n, in, out);
    zero_convert(type, ZERO_FP32, n, out, wide);
    assert_same_numbers(n, wide, want);
}

static void check_accumulate(test_pool *pool, const machine *m, zero_type type, int64_t n)
{
    const float *leaf = odd_floats(pool, n), *sum = test_floats(pool, n);
    float *want = test_floats(pool, n), *alone = test_floats(pool, n);
    float *out = test_floats(pool, n), *on_sum = test_copy(pool, n, sum);
    float *on_leaf = test_copy(pool, n, leaf), *alone_on_leaf = test_copy(pool, n, leaf);
    for (int64_t i = 0; i < n; i++) {
        alone[i] = rounded(type, leaf[i]);
        want[i] = sum[i] + alone[i];
    }
    m->ops->accumulate(&m->math, type, n, sum, leaf, out);
    m->ops->accumulate(&m->math, type, n, on_sum, leaf, on_sum);
    m->ops->accumulate(&m->math, type, n, sum, on_leaf, on_leaf);
    m->ops->accumulate(&m->math, type, n, NULL, alone_on_leaf, alone_on_leaf);
    assert_same_numbers(n, out, want);
    assert_same_numbers(n, on_sum, want);
    assert_same_numbers(n, on_leaf, want);
    assert_same_numbers(n, alone_on_leaf, alone);
}

static void gradients_are_rounded_and_accumulated_as_each_number_alone(void **state)
{
    machine m[MACHINES];
    int n = make_machines(*state, m);
    for (int i = 0; i < n; i++)
        for (size_t s = 0; s < COUNT(lengths); s++)
            for (int type = ZERO_FP32; type <= ZERO_FP16; type++) {
                check_round(*state, &m[i], (zero_type)type, lengths[s]);
                check_accumulate(*state, &m[i], (zero_type)type, lengths[s]);
            }
}

/* Long enough to be stored past the caches, where that can be aligned and where it cannot. */
static void long_groups_are_rounded_as_short_ones(void **state)
{
    const int64_t n = ((int64_t)1 << 20) + 77;
    const float *in = odd_floats(*state, n);
    uint16_t *want = test_bytes(*state, 2 * n), *room = test_bytes(*state, 2 * n + 128);
    uint16_t *aligned = room + (-(uintptr_t)room % 64) / 2;
    zero_math math = {0};
    for (int t = 0; t < 2; t++)
        for (int shift = 0; shift < 2; shift++) {
            zero_convert(ZERO_FP32, halves[t], n, in, want);
            cpu->round(&math, halves[t], n, in, aligned + shift);
            assert_memory_equal(aligned + shift, want, (size_t)(2 * n));
        }
}

static void rounding_to_fp32_copies_in_place_too(void **state)
{
    machine m[MACHINES];
    int n = make_machines(*state, m);
    float *x = odd_floats(*state, 5000), *y = test_copy(*state, 5000, x);
    for (int i = 0; i < n; i++) {
        m[i].ops->round(&m[i].math, ZERO_FP32, 5000, x, x);
        assert_same(5000, x, y);
    }
}

static void sums_of_squares_have_the_bits_of_widened_numbers(void **state)
{
    const int64_t sizes[] = {0, 1, 63, 65, 4096, 4097, 65537, 131072, 200000};
    machine m[MACHINES];
    int n = make_machines(*state, m);
    for (int t = 0; t < 2; t++) {
        numbers x = make_numbers(*state, halves[t], 200000);
        for (size_t s = 0; s < COUNT(sizes); s++)
            for (int i = 0; i < n; i++)
                assert_true(
                    m[i].ops->sum_squares(&m[i].math, halves[t], sizes[s], x.half) ==
                    naive->sum_squares(&m[0].math, ZERO_FP32, sizes[s], x.wide));
        for (int i = 0; i < n; i++) {
            set_number(&x, 150000, INFINITY);
            assert_true(
                isinf(m[i].ops->sum_squares(&m[i].math, halves[t], 200000, x.half)));
            set_number(&x, 70000, NAN);
            assert_true(
                isnan(m[i].ops->sum_squares(&m[i].math, halves[t], 200000, x.half)));
            set_number(&x, 70000, 1.0f);
        }
    }
}

/* ---- cuts, polls, room ---- */

static void run_range(const machine *m, zero_type type, int64_t at, int64_t n,
                      const uint16_t *grad, const states *s, float *sum, uint16_t *out)
{
    m->ops->adamw(&m->math, &recipe, n, type, grad + at, s->master + at, s->m + at,
                  s->v + at, s->param + at);
    m->ops->accumulate(&m->math, type, n, sum + at, s->m + at, sum + at);
    m->ops->round(&m->math, type, n, sum + at, out + at);
}

static void a_cut_range_gives_the_same_bits(void **state)
{
    const int64_t n = 70001, cuts[] = {1, 16, 61, 4096, 65537};
    machine m[MACHINES];
    int last = make_machines(*state, m) - 1;
    for (int t = 0; t < 2; t++) {
        numbers grad = make_numbers(*state, halves[t], n);
        const float *start = test_floats(*state, n);
        states whole = make_states(*state, n, start);
        float *sum = test_copy(*state, n, start);
        uint16_t *out = test_bytes(*state, 2 * n), *out2 = test_bytes(*state, 2 * n);
        run_range(&m[1], halves[t], 0, n, grad.half, &whole, sum, out);
        for (size_t c = 0; c < COUNT(cuts); c++) {
            states parts = make_states(*state, n, start);
            float *sum2 = test_copy(*state, n, start);
            run_range(&m[last], halves[t], 0, cuts[c], grad.half, &parts, sum2, out2);
            run_range(&m[last], halves[t], cuts[c], n - cuts[c], grad.half, &parts, sum2,
                      out2);
            assert_same_states(n, &parts, &whole);
            assert_memory_equal(parts.param, whole.param, (size_t)(2 * n));
            assert_same(n, sum2, sum);
            assert_memory_equal(out2, out, (size_t)(2 * n));
        }
    }
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
    const int64_t n = 150000;
    int polls = 0;
    machine m[MACHINES];
    make_machines(*state, m);
    zero_math math = m[1].math;
    math.poll = count_poll, math.poll_arg = &polls;
    numbers x = make_numbers(*state, ZERO_BF16, n);
    states s = make_states(*state, n, x.wide);
    float *y = test_floats(*state, n);
    zero_gemm g = {.m = 600, .n = 8, .k = 200, .b_type = ZERO_BF16};
    g.a = x.wide, g.b = x.half, g.c = y;
    assert_polls(cpu->gemm(&math, &g));
    assert_polls(
        cpu->adamw(&math, &recipe, n, ZERO_BF16, x.half, s.master, s.m, s.v, s.param));
    assert_polls((void)cpu->sum_squares(&math, ZERO_BF16, n, x.half));
    assert_polls(cpu->round(&math, ZERO_BF16, n, x.wide, x.half));
    assert_polls(cpu->accumulate(&math, ZERO_BF16, n, y, x.wide, y));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_with_pool(products_have_the_bits_of_widened_weights),
        test_with_pool(biases_norms_and_embeddings_have_the_bits_of_widened_weights),
        test_with_pool(
            adamw_moves_the_masters_as_in_fp32_and_rounds_them_to_the_parameters),
        test_with_pool(gradients_are_rounded_and_accumulated_as_each_number_alone),
        test_with_pool(long_groups_are_rounded_as_short_ones),
        test_with_pool(rounding_to_fp32_copies_in_place_too),
        test_with_pool(sums_of_squares_have_the_bits_of_widened_numbers),
        test_with_pool(a_cut_range_gives_the_same_bits),
        test_with_pool(long_operations_poll),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
