/* Attention's kernels against the oracle, on a GPU or on the emulator; and which inputs an output
 * may depend on. Every call is made twice, with threads in either order, and gives equal bits
 * (launchers.h). */
#include "gpu/launchers.h"
#include "support/attention_laws.h"

static const zero_backend *const naive = &zero_backend_naive;

static void solve_naively(test_pool *pool, const problem *x)
{
    zero_math math = test_opened(naive);
    zero_attention s = x->s;
    s.work = test_floats(pool, naive->attention_workspace(&s));
    naive->attention(&math, &s);
    naive->attention_backward(&math, &s);
}

typedef struct {
    operation op;
    const problem *of;
} solving;

/* Outputs begin as NaN. Forward needs no gradients. */
static void both_directions(call *c)
{
    const problem *x = ((const solving *)(const void *)c->op)->of;
    zero_attention s = x->s, forward;
    const void *qkv = floats(c, "x", x->n_in, READ);
    s.out = floats(c, "y", x->n, WRITTEN), s.lse = floats(c, "lse", x->rows, WRITTEN);
    s.dout = floats(c, "dy", x->n, READ), s.work = NULL;
    void *dqkv = floats(c, "dx", x->n_in, WRITTEN);
    forward = s, forward.dout = NULL;
    zero_attention_rows(&forward, qkv, NULL);
    zero_attention_rows(&s, qkv, dqkv);
    while (next(c)) {
        launchers.attention(&c->where->math, &forward);
        launchers.attention_backward(&c->where->math, &s);
    }
}

static void take(const call *c, const char *name, float *to)
{
    const array *x = array_named(c, name);
    memcpy(to, c->after + x->at, (size_t)x->n * sizeof *to);
}

/* There is room for half of the key heads at a time. */
static void solve_on(test_pool *pool, int capability, const problem *x)
{
    const solving solve = {{.name = "attention", .make = both_directions}, x};
    const shape s = {.shift = x->shift / 4};
    float *given = test_floats(pool, x->n_in + x->n);
    memcpy(given, x->qkv, (size_t)x->n_in * sizeof *given);
    memcpy(given + x->n_in, x->dout, (size_t)x->n * sizeof *given);
    const size_t at = (size_t)x->n_in * sizeof *given;
    const call begins = {.n_arrays = 2,
                         .arrays = {{"x", "x", 0, ZERO_FP32, READ, x->n_in, 0},
                                    {"dy", "dy", 0, ZERO_FP32, READ, x->n, at}},
                         .after = (char *)given};
    site w;
    open_launchers(&w, 4 * x->s.T * (x->s.B * x->s.K / 2 + 1) * (x->s.H / x->s.K));
    w.math.device = capability;
    call c = make_call_given(&w, &solve.op, &s, &begins);
    take(&c, "y", x->s.out), take(&c, "lse", x->s.lse), take(&c, "dx", x->dqkv);
    drop_call(&c);
}

static void solve(test_pool *pool, const problem *x)
{
    solve_on(pool, LARGEST_GPU, x);
}

/* The output of a query that sees one key is its value, rounded to the type of factors, or as it is
 * where the GPU or the kernels do not have that type or size. */
static void check_values(test_pool *pool, int capability, zero_type factors, int64_t size,
                         zero_type rounded_to)
{
    problem x = make_problem(
        pool,
        (zero_attention){.B = 1, .T = 1, .H = 1, .K = 1, .D = size, .factors = factors});
    uint16_t half[160];
    float rounded[160];
    const float *values = x.qkv + 2 * size;
    memcpy(rounded, values, (size_t)size * sizeof(float));
    if (rounded_to != ZERO_FP32) {
        zero_convert(ZERO_FP32, rounded_to, size, values, half);
        zero_convert(rounded_to, ZERO_FP32, size, half, rounded);
    }
    solve_on(pool, capability, &x);
    assert_same(size, x.s.out, rounded);
}

TEST(values_are_rounded_where_the_device_has_the_type)
{
    check_values(*state, 90, ZERO_FP32, 35, ZERO_FP32);
    check_values(*state, 80, ZERO_BF16, 35, ZERO_BF16);
    check_values(*state, 75, ZERO_BF16, 35, ZERO_FP32);
    check_values(*state, 70, ZERO_FP16, 35, ZERO_FP16);
    check_values(*state, 60, ZERO_FP16, 35, ZERO_FP32);
    check_values(*state, 90, ZERO_FP16, 128, ZERO_FP16);
    check_values(*state, 90, ZERO_FP16, 129, ZERO_FP32);
    check_values(*state, 90, ZERO_BF16, 160, ZERO_FP32);
}

TEST(a_sample_has_the_bits_of_its_own_in_any_batch)
{
    check_batch(*state, solve, ZERO_FP32);
    check_batch(*state, solve, ZERO_FP16);
    check_batch(*state, solve, ZERO_BF16);
}

TEST(an_output_depends_on_the_past_alone)
{
    check_past(*state, solve, ZERO_FP32);
    check_past(*state, solve, ZERO_FP16);
    check_past(*state, solve, ZERO_BF16);
}

TEST(positions_that_no_loss_uses_have_no_gradient)
{
    check_future(*state, solve, ZERO_FP32);
    check_future(*state, solve, ZERO_FP16);
    check_future(*state, solve, ZERO_BF16);
}

/* Arrays need not be aligned to 16 bytes; that changes how they are loaded, and no bit. */
TEST(alignment_changes_no_bit)
{
    for (size_t i = 0; i < COUNT(types); i++) {
        problem x = make_problem(
            *state, (zero_attention){
                        .B = 1, .T = 70, .H = 2, .K = 2, .D = 36, .factors = types[i]});
        problem y = same_inputs(*state, &x);
        y.shift = 4;
        solve(*state, &x);
        solve(*state, &y);
        assert_same(x.n, y.s.out, x.s.out);
        assert_same(3 * x.n, y.dqkv, x.dqkv);
    }
}

TEST(large_scores_neither_overflow_nor_vanish)
{
    problem got = check_large_scores(*state, solve, solve_naively, 3 * TOLERANCE);
    got.s.factors =
        ZERO_FP16; /* scores are off by ones: only that they are finite is sure */
    solve(*state, &got);
    for (int64_t i = 0; i < 3 * got.n; i++) assert_true(isfinite(got.dqkv[i]));
}

TEST(infinity_and_nan_show)
{
    check_wrong(*state, solve, ZERO_FP32, NAN);
    check_wrong(*state, solve, ZERO_FP32, INFINITY);
    check_wrong(*state, solve, ZERO_BF16, NAN);
    check_wrong(*state, solve, ZERO_BF16, -INFINITY);
    check_wrong(*state, solve, ZERO_FP16, NAN);
    check_wrong(*state, solve, ZERO_FP16, 1e6f);
}
