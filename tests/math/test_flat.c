/* Operations on flat ranges, which are the optimizer's states and gradients: in fp32 against the
 * oracle; on 16 bits, by every instruction set, with the bits of the same numbers widened. */
#include "support/math_machines.h"

#include "base/half.h"

static const zero_backend *const cpu = &zero_backend_cpu;
static const zero_backend *const naive = &zero_backend_naive;

static const int64_t lengths[] = {1, 2, 7, 15, 16, 17, 61, 257, 1031, 4096, 4097, 70001};

/* ---- the optimizer ---- */

TEST(adamw_agrees_to_the_bit)
{
    const zero_adamw recipe = test_recipe();
    zero_math fast = test_opened(cpu), slow = test_opened(naive);
    for (size_t s = 0; s < COUNT(lengths); s++) {
        int64_t n = lengths[s];
        float *grad = test_floats(*state, n), *p = test_floats(*state, n);
        float *m = test_floats(*state, n), *v = test_floats(*state, n);
        for (int64_t i = 0; i < n; i++) v[i] *= v[i]; /* not negative */
        float *p2 = test_copy(*state, n, p), *m2 = test_copy(*state, n, m);
        float *v2 = test_copy(*state, n, v);
        naive->adamw(&slow, &recipe,
                     &(zero_adamw_arrays){n, ZERO_FP32, grad, p, m, v, NULL, 0, NULL});
        cpu->adamw(&fast, &recipe,
                   &(zero_adamw_arrays){n, ZERO_FP32, grad, p2, m2, v2, NULL, 0, NULL});
        assert_same(n, p2, p);
        assert_same(n, m2, m);
        assert_same(n, v2, v);
    }
}

/* Under a constant gradient g, m / (1 - beta1^t) stays g and the root of v / (1 - beta2^t)
 * stays |g|: after the decay, each step moves by lr g / (|g| + eps). A large eps shows that it
 * is outside the root. */
TEST(adamw_moves_as_its_equation_says_under_constant_gradients)
{
    const zero_backend *const both[] = {cpu, naive};
    for (int k = 0; k < 2; k++) {
        zero_math math = test_opened(both[k]);
        zero_adamw h = test_recipe();
        h.eps = 0.25f;
        float grad[20], p[20], m[20] = {0}, v[20] = {0};
        double want[20];
        for (int i = 0; i < 20; i++) {
            grad[i] = i % 2 ? 1.0f : -1.0f;
            p[i] = (float)(want[i] = i);
        }
        for (h.step = 1; h.step <= 5; h.step++) {
            both[k]->adamw(
                &math, &h,
                &(zero_adamw_arrays){20, ZERO_FP32, grad, p, m, v, NULL, 0, NULL});
            for (int i = 0; i < 20; i++) { /* g = 0.5 grad */
                double step = 1e-2 * 0.5 * (double)grad[i] / (0.5 + 0.25);
                want[i] -= 1e-2 * 0.1 * want[i] + step;
            }
        }
        for (int i = 0; i < 20; i++) assert_true(fabs((double)p[i] - want[i]) < 2e-5);
    }
}

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

/* All machines against the oracle's step on the same numbers in fp32. */
static void check_adamw(test_pool *pool, const machine *m, int machines, zero_type type,
                        int64_t n)
{
    const zero_adamw recipe = test_recipe();
    numbers grad = make_numbers(pool, type, n);
    const float *start = test_floats(pool, n);
    if (n > 60) set_number(&grad, 50, NAN), set_number(&grad, 51, -INFINITY);
    states want = make_states(pool, n, start);
    naive->adamw(&m[0].math, &recipe,
                 &(zero_adamw_arrays){n, ZERO_FP32, grad.wide, want.master, want.m, want.v,
                                      NULL, 0, NULL});
    for (int i = 0; i < machines; i++) {
        states got = make_states(pool, n, start);
        float *rounded = test_floats(pool, n), *kept = test_floats(pool, n);
        m[i].ops->adamw(&m[i].math, &recipe,
                        &(zero_adamw_arrays){n, type, grad.half, got.master, got.m, got.v,
                                             got.param, 0, NULL});
        assert_same_states(n, &got, &want);
        zero_convert(type, ZERO_FP32, n, got.param, kept);
        m[i].ops->accumulate(&m[i].math, type, n, NULL, want.master, rounded);
        assert_same_numbers(n, kept, rounded);
        if (n > 60) assert_true(isnan(kept[50]) && isfinite(kept[49]));
    }
}

TEST(adamw_moves_the_masters_as_in_fp32_and_rounds_them_to_the_parameters)
{
    machine m[MACHINES];
    int n = make_machines(*state, m);
    for (size_t s = 0; s < COUNT(lengths); s++)
        for (int t = 0; t < 2; t++) check_adamw(*state, m, n, halves[t], lengths[s]);
}

/* Flips a bit of two parameters, or of none. The word has the number of the first one, and nothing
 * else differs from an update that does not look. */
static void check_changes(test_pool *pool, const machine *m, zero_type type, int64_t n,
                          bool flips)
{
    const zero_adamw recipe = test_recipe();
    const int64_t first = INT64_C(1) << 40, low = n / 3, high = n - 1;
    const numbers grad = make_numbers(pool, type, n);
    const float *start = test_floats(pool, n);
    states want = make_states(pool, n, start), got = make_states(pool, n, start);
    uint64_t word = 0;
    zero_convert(ZERO_FP32, type, n, start, got.param);
    if (flips) got.param[high] ^= 0x8000, got.param[low] ^= low == high ? 0x8001 : 1;
    zero_adamw_arrays a = {n,      type,       grad.half, want.master, want.m,
                           want.v, want.param, first,     NULL};
    m->ops->adamw(&m->math, &recipe, &a);
    a.master = got.master, a.m = got.m, a.v = got.v, a.param = got.param;
    a.changed = &word;
    m->ops->adamw(&m->math, &recipe, &a);
    assert_true(word == (flips ? zero_changed(first + low) : 0));
    assert_same_states(n, &got, &want);
    assert_memory_equal(got.param, want.param, (size_t)(2 * n));
    m->ops->adamw(&m->math, &recipe, &a); /* the update has rounded the change away */
    assert_true(word == (flips ? zero_changed(first + low) : 0));
}

TEST(adamw_tells_the_first_parameter_that_is_not_its_master)
{
    machine m[MACHINES];
    int n = make_machines(*state, m);
    for (size_t s = 0; s < COUNT(lengths); s++)
        for (int i = 0; i < n; i++)
            for (int t = 0; t < 4; t++)
                check_changes(*state, &m[i], halves[t / 2], lengths[s], t % 2);
}

/* Returns true if all moments are zero. */
static bool check_moments(int64_t n, const float *m, const float *v)
{
    bool are_zero = true;
    for (int64_t i = 0; i < n; i++) {
        assert_true(fpclassify(m[i]) != FP_SUBNORMAL && fpclassify(v[i]) != FP_SUBNORMAL);
        are_zero = are_zero && m[i] == 0.0f && v[i] == 0.0f;
    }
    return are_zero;
}

static void check_without_gradients(test_pool *pool, const machine *m)
{
    enum { N = 37 };
    zero_adamw h = test_recipe();
    zero_math slow = test_opened(naive);
    const float grad[N] = {0}, *start = test_floats(pool, N);
    states want = make_states(pool, N, start), got = make_states(pool, N, start);
    bool are_zero = false;
    for (h.step = 1; h.step <= 3000; h.step++) {
        naive->adamw(&slow, &h,
                     &(zero_adamw_arrays){N, ZERO_FP32, grad, want.master, want.m, want.v,
                                          NULL, 0, NULL});
        m->ops->adamw(&m->math, &h,
                      &(zero_adamw_arrays){N, ZERO_FP32, grad, got.master, got.m, got.v,
                                           NULL, 0, NULL});
        are_zero = check_moments(N, got.m, got.v);
        assert_same_states(N, &got, &want);
    }
    assert_true(are_zero);
}

/* A denormal number costs 20 times the time of another, in each step of the rest of the run. */
TEST(moments_without_gradients_become_zero_and_are_never_denormal)
{
    machine m[MACHINES];
    int n = make_machines(*state, m);
    for (int i = 0; i < n; i++) check_without_gradients(*state, &m[i]);
}

/* ---- rounding and sums ---- */

static float rounded(zero_type type, float x)
{
    if (type == ZERO_BF16) return zero_from_bf16(zero_to_bf16(x));
    return type == ZERO_FP16 ? zero_from_fp16(zero_to_fp16(x)) : x;
}

/* All cases of rounding: too large, too small, ties, infinity, NaN. */
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

TEST(gradients_are_rounded_and_accumulated_as_each_number_alone)
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

/* Long enough to be stored past the caches; aligned for that, and not. */
TEST(long_groups_are_rounded_as_short_ones)
{
    const int64_t n = ((int64_t)1 << 20) + 77;
    const float *in = odd_floats(*state, n);
    uint16_t *want = test_bytes(*state, 2 * n), *memory = test_bytes(*state, 2 * n + 128);
    uint16_t *aligned = memory + (-(uintptr_t)memory % 64) / 2;
    zero_math math = {0};
    for (int t = 0; t < 2; t++)
        for (int shift = 0; shift < 2; shift++) {
            zero_convert(ZERO_FP32, halves[t], n, in, want);
            cpu->round(&math, halves[t], n, in, aligned + shift);
            assert_memory_equal(aligned + shift, want, (size_t)(2 * n));
        }
}

TEST(rounding_to_fp32_copies_in_place_too)
{
    machine m[MACHINES];
    int n = make_machines(*state, m);
    float *x = odd_floats(*state, 5000), *y = test_copy(*state, 5000, x);
    for (int i = 0; i < n; i++) {
        m[i].ops->round(&m[i].math, ZERO_FP32, 5000, x, x);
        assert_same(5000, x, y);
    }
}

static double squares(const zero_backend *ops, const zero_math *math, zero_type type,
                      int64_t n, const void *x)
{
    double sum;
    ops->sum_squares(math, type, n, x, &sum);
    return sum;
}

TEST(sums_of_squares_agree_to_the_bit_and_split_like_the_tree)
{
    zero_math fast = test_opened(cpu), slow = test_opened(naive);
    const int64_t n = 300001;
    float *x = test_floats(*state, n);
    const int64_t sizes[] = {0, 1, 63, 64, 65, 65536, 65537, 131072, 200000, 300001};
    for (size_t i = 0; i < COUNT(sizes); i++)
        assert_true(squares(cpu, &fast, ZERO_FP32, sizes[i], x) ==
                    squares(naive, &slow, ZERO_FP32, sizes[i], x));
    double left = squares(cpu, &fast, ZERO_FP32, 262144, x); /* the tree's left subtree */
    assert_true(left + squares(cpu, &fast, ZERO_FP32, n - 262144, x + 262144) ==
                squares(cpu, &fast, ZERO_FP32, n, x));
}

/* In any cut, on top of what is there already. */
TEST(exact_sums_agree_in_any_cut)
{
    const int64_t sizes[] = {0, 1, 63, 4097, 65537, 200000};
    machine m[MACHINES];
    int n = make_machines(*state, m);
    for (int t = 0; t < 2; t++) {
        numbers x = make_numbers(*state, halves[t], 200000);
        zero_exact want = {{0}}, wide = want, half = want;
        naive->exact_squares(&m[0].math, ZERO_FP32, 200000, x.wide, &want);
        assert_true(zero_exact_value(&want) > 0.0);
        for (int i = 0; i < n; i++)
            for (size_t s = 0; s < COUNT(sizes); s++) {
                const int64_t at = sizes[s], rest = 200000 - at;
                wide = half = (zero_exact){{0}};
                m[i].ops->exact_squares(&m[i].math, ZERO_FP32, rest, x.wide + at, &wide);
                m[i].ops->exact_squares(&m[i].math, ZERO_FP32, at, x.wide, &wide);
                m[i].ops->exact_squares(&m[i].math, halves[t], at, x.half, &half);
                m[i].ops->exact_squares(&m[i].math, halves[t], rest, x.half + at, &half);
                assert_memory_equal(&wide, &want, sizeof want);
                assert_memory_equal(&half, &want, sizeof want);
            }
    }
}

TEST(sums_of_squares_have_the_bits_of_widened_numbers)
{
    const int64_t sizes[] = {0, 1, 63, 65, 4096, 4097, 65537, 131072, 200000};
    machine m[MACHINES];
    int n = make_machines(*state, m);
    for (int t = 0; t < 2; t++) {
        numbers x = make_numbers(*state, halves[t], 200000);
        for (size_t s = 0; s < COUNT(sizes); s++)
            for (int i = 0; i < n; i++)
                assert_true(squares(m[i].ops, &m[i].math, halves[t], sizes[s], x.half) ==
                            squares(naive, &m[0].math, ZERO_FP32, sizes[s], x.wide));
        for (int i = 0; i < n; i++) {
            set_number(&x, 150000, INFINITY);
            assert_true(isinf(squares(m[i].ops, &m[i].math, halves[t], 200000, x.half)));
            set_number(&x, 70000, NAN);
            assert_true(isnan(squares(m[i].ops, &m[i].math, halves[t], 200000, x.half)));
            set_number(&x, 70000, 1.0f);
        }
    }
}

/* ---- cuts ---- */

TEST(a_cut_range_gives_the_same_bits_in_fp32)
{
    const zero_adamw recipe = test_recipe();
    zero_math fast = test_opened(cpu);
    const int64_t n = 70001, cuts[] = {1, 16, 61, 4096, 65537};
    float *x = test_floats(*state, n), *zeros = test_floats(*state, n);
    memset(zeros, 0, (size_t)n * sizeof *zeros);
    float *y[2], *p[2], *m[2], *v[2];
    for (int i = 0; i < 2; i++) {
        y[i] = test_floats(*state, n), p[i] = test_copy(*state, n, x);
        m[i] = test_copy(*state, n, x), v[i] = test_copy(*state, n, zeros);
    }
    cpu->bias_gelu(
        &fast,
        &(zero_bias){
            .rows = 1, .cols = n, .type = ZERO_FP32, .bias = zeros, .x = x, .y = y[0]});
    cpu->adamw(&fast, &recipe,
               &(zero_adamw_arrays){n, ZERO_FP32, x, p[0], m[0], v[0], NULL, 0, NULL});
    for (size_t c = 0; c < COUNT(cuts); c++) {
        const int64_t ends[] = {0, cuts[c], n};
        memcpy(p[1], x, (size_t)n * sizeof *x);
        memcpy(m[1], x, (size_t)n * sizeof *x);
        memcpy(v[1], zeros, (size_t)n * sizeof *x);
        for (int part = 0; part < 2; part++) {
            int64_t at = ends[part], len = ends[part + 1] - at;
            cpu->bias_gelu(&fast, &(zero_bias){.rows = 1,
                                               .cols = len,
                                               .type = ZERO_FP32,
                                               .bias = zeros,
                                               .x = x + at,
                                               .y = y[1] + at});
            cpu->adamw(&fast, &recipe,
                       &(zero_adamw_arrays){len, ZERO_FP32, x + at, p[1] + at, m[1] + at,
                                            v[1] + at, NULL, 0, NULL});
        }
        assert_same(n, y[1], y[0]);
        assert_same(n, p[1], p[0]);
        assert_same(n, m[1], m[0]);
        assert_same(n, v[1], v[0]);
    }
}

static void run_range(const machine *m, zero_type type, int64_t at, int64_t n,
                      const uint16_t *grad, const states *s, float *sum, uint16_t *out)
{
    const zero_adamw recipe = test_recipe();
    m->ops->adamw(&m->math, &recipe,
                  &(zero_adamw_arrays){n, type, grad + at, s->master + at, s->m + at,
                                       s->v + at, s->param + at, 0, NULL});
    m->ops->accumulate(&m->math, type, n, sum + at, s->m + at, sum + at);
    m->ops->round(&m->math, type, n, sum + at, out + at);
}

TEST(a_cut_range_gives_the_same_bits)
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
