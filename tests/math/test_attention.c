/* Attention of the cpu backend: which inputs an output may depend on, and where they lie. */
#include "support/attention_laws.h"

#include "math/backends.h"
#include "math/cpu_state.h"

/* The error of single precision, as in test_math.c; a wrong term is off by 1e-3 or more. */
#define TOLERANCE 5e-6

static const zero_backend *const cpu = &zero_backend_cpu;
static const zero_backend *const naive = &zero_backend_naive;

/* The workspace's old contents and its alignment must not matter, and nothing may be written
 * past its end. */
static void solve(test_pool *pool, const zero_backend *ops, const zero_math *math,
                  const problem *x)
{
    const int64_t len = zero_attention_workspace(&x->s);
    float *memory = test_floats(pool, len + 2), *work = memory + 1;
    for (int64_t i = 0; i < len; i++) work[i] = NAN;
    memory[0] = work[len] = 3.0f;
    zero_attention s = x->s;
    s.work = work;
    ops->attention(math, &s);
    ops->attention_backward(math, &s);
    assert_true(memory[0] == 3.0f && work[len] == 3.0f);
}

static void solve_by_cpu(test_pool *pool, const problem *x)
{
    zero_math math = test_opened(cpu);
    solve(pool, cpu, &math, x);
}

static void solve_naively(test_pool *pool, const problem *x)
{
    zero_math math = test_opened(naive);
    solve(pool, naive, &math, x);
}

/* Keys and values of `few` for every query head of it. */
static problem with_copied_keys(test_pool *pool, const problem *few)
{
    zero_attention s = few->s;
    const int64_t H = s.H, group = H / s.K, D = s.D, row = (H + 2 * s.K) * D;
    s.K = H;
    problem all = make_problem(pool, s);
    for (int64_t t = 0; t < s.B * s.T; t++)
        for (int64_t i = 0; i < 3 * H; i++) { /* queries, keys and values */
            const int64_t head = i < H       ? i
                                 : i < 2 * H ? H + (i - H) / group
                                             : H + few->s.K + (i - 2 * H) / group;
            memcpy(all.qkv + (t * 3 * H + i) * D, few->qkv + t * row + head * D,
                   (size_t)D * sizeof(float));
        }
    memcpy(all.dout, few->dout, (size_t)few->n * sizeof(float));
    return all;
}

/* Sharing is a matter of addresses; only dk and dv are other sums. */
TEST(shared_keys_have_the_bits_of_copied_ones)
{
    enum { H = 6, T = 101, D = 20 };
    zero_math math = test_opened(cpu);
    for (int64_t K = 1; K <= H; K++)
        for (int p = 0; p < 4 && H % K == 0; p++) {
            void *pool = NULL;
            assert_int_equal(test_pool_make(&pool), 0);
            zero_attention s = {.B = 2, .T = T, .H = H, .K = K, .D = D};
            s.dropout = (zero_dropout){{.purpose = ZERO_RNG_TEST}, p & 1 ? 0.2f : 0.0f};
            s.factors = p & 2 ? ZERO_BF16 : ZERO_FP32;
            const problem few = make_problem(pool, s), all = with_copied_keys(pool, &few);
            solve(pool, cpu, &math, &few);
            solve(pool, cpu, &math, &all);
            assert_same(few.n, few.s.out, all.s.out);
            assert_same(few.rows, few.s.lse, all.s.lse);
            for (int64_t t = 0; t < s.B * T; t++)
                assert_same(H * D, few.dqkv + t * (H + 2 * K) * D,
                            all.dqkv + t * 3 * H * D);
            test_pool_free(&pool);
        }
}

/* Rows of [H, (q, k, v), D], and three arrays. */
TEST(bits_do_not_depend_on_where_heads_lie)
{
    enum { H = 3, T = 70, D = 24, ROWS = 2 * T };
    const zero_backend *const both[] = {cpu, naive};
    for (int i = 0; i < 2; i++) {
        zero_math math = test_opened(both[i]);
        problem want =
            make_problem(*state, (zero_attention){.B = 2, .T = T, .H = H, .K = H, .D = D});
        problem mixed = same_inputs(*state, &want), apart = same_inputs(*state, &want);
        float *rows = test_floats(*state, want.n_in),
              *three = test_floats(*state, want.n_in);
        for (int64_t t = 0; t < ROWS; t++)
            for (int64_t part = 0; part < 3; part++)
                for (int64_t h = 0; h < H; h++) {
                    const float *from = want.qkv + ((t * 3 + part) * H + h) * D;
                    memcpy(rows + ((t * H + h) * 3 + part) * D, from, D * sizeof *rows);
                    memcpy(three + ((part * ROWS + t) * H + h) * D, from, D * sizeof *rows);
                }
        zero_heads *heads[] = {&mixed.s.q, &mixed.s.k, &mixed.s.v};
        zero_heads *grads[] = {&mixed.s.dq, &mixed.s.dk, &mixed.s.dv};
        zero_heads *each[] = {&apart.s.q, &apart.s.k, &apart.s.v};
        for (int64_t part = 0; part < 3; part++) {
            *heads[part] = (zero_heads){rows + part * D, 3 * H * D, 3 * D};
            *grads[part] = (zero_heads){mixed.dqkv + part * D, 3 * H * D, 3 * D};
            *each[part] = (zero_heads){three + part * ROWS * H * D, H * D, D};
        }
        solve(*state, both[i], &math, &want);
        solve(*state, both[i], &math, &mixed);
        solve(*state, both[i], &math, &apart);
        assert_same(want.n, mixed.s.out, want.s.out);
        assert_same(want.n, apart.s.out, want.s.out);
        assert_same(want.n_in, apart.dqkv, want.dqkv);
        for (int64_t t = 0; t < ROWS; t++)
            for (int64_t part = 0; part < 3; part++)
                for (int64_t h = 0; h < H; h++)
                    assert_same(D, mixed.dqkv + ((t * H + h) * 3 + part) * D,
                                want.dqkv + ((t * 3 + part) * H + h) * D);
    }
}

/* The output of a query that sees one key is its value, rounded if the kernels round. */
TEST(values_are_rounded_where_factors_are_bf16)
{
    zero_math math = test_opened(cpu);
    problem x = make_problem(
        *state,
        (zero_attention){.B = 1, .T = 1, .H = 2, .K = 2, .D = 35, .factors = ZERO_BF16});
    uint16_t half[70];
    float rounded[70];
    const float *values = x.qkv + 140;
    zero_convert(ZERO_FP32, ZERO_BF16, 70, values, half);
    zero_convert(ZERO_BF16, ZERO_FP32, 70, half, rounded);
    solve(*state, cpu, &math, &x);
    assert_memory_equal(x.s.out, zero_cpu_bf16_of(&math) ? rounded : values,
                        sizeof rounded);
    math.state[ZERO_CPU_BF16_PRODUCTS] = NULL;
    solve(*state, cpu, &math, &x);
    assert_memory_equal(x.s.out, values, sizeof rounded);
}

TEST(a_sample_has_the_bits_of_its_own_in_any_batch)
{
    check_batch(*state, solve_by_cpu, ZERO_FP32);
    check_batch(*state, solve_by_cpu, ZERO_BF16);
}

TEST(an_output_depends_on_the_past_alone)
{
    check_past(*state, solve_by_cpu, ZERO_FP32);
    check_past(*state, solve_by_cpu, ZERO_BF16);
}

TEST(large_scores_neither_overflow_nor_vanish)
{
    check_large_scores(*state, solve_by_cpu, solve_naively, TOLERANCE);
}

TEST(positions_that_no_loss_uses_have_no_gradient)
{
    check_future(*state, solve_by_cpu, ZERO_FP32);
    check_future(*state, solve_by_cpu, ZERO_BF16);
}

TEST(nan_and_infinity_show)
{
    check_wrong(*state, solve_by_cpu, ZERO_FP32, NAN);
    check_wrong(*state, solve_by_cpu, ZERO_FP32, INFINITY);
    check_wrong(*state, solve_naively, ZERO_FP32, NAN);
    check_wrong(*state, solve_naively, ZERO_FP32, INFINITY);
}
