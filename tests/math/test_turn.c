/* Rotary positions: slices of heads, positions one by one, and angles against the C library's
 * functions. */
#include "support/math_machines.h"

#include "math/backends.h"

/* Queries and keys of B T rows [H D | K D | K D], which turn in place or elsewhere, and gradients alike. */
typedef struct {
    int64_t B, T, H, K, D, R;
    bool has_gains;
    int slices;
} shape;

typedef struct {
    zero_turn t;
    int64_t n, n_turned, n_rstd, n_sums;
    float *x, *turned, *rstd, *d, *sums;
} problem;

static zero_heads heads_of(float *rows, int64_t first, int64_t stride, int64_t D)
{
    return zero_heads_of(ZERO_FP32, rows, first, stride, D);
}

static problem make_problem(test_pool *pool, shape s)
{
    const int64_t q = s.H * s.D, k = s.K * s.D, rows = s.B * s.T, row = q + 2 * k;
    problem p = {.n = rows * row, .n_turned = rows * (q + k), .n_rstd = rows * (s.H + s.K)};
    p.n_sums = 2 * s.slices * s.D;
    p.x = test_floats(pool, p.n), p.d = test_floats(pool, p.n);
    p.turned = test_floats(pool, p.n_turned);
    p.rstd = test_floats(pool, p.n_rstd), p.sums = test_floats(pool, p.n_sums);
    p.t = (zero_turn){.B = s.B, .T = s.T, .H = s.H, .K = s.K, .D = s.D, .R = s.R};
    for (int64_t i = 0; i < s.R / 2; i++)
        p.t.frequency[i] = (float)pow(10000.0, -2.0 * (double)i / (double)s.R);
    p.t.q = heads_of(p.x, 0, row, s.D), p.t.k = heads_of(p.x, q, row, s.D);
    p.t.to_q = heads_of(p.turned, 0, q + k, s.D),
    p.t.to_k = heads_of(p.turned, q, q + k, s.D);
    p.t.dq = heads_of(p.d, 0, row, s.D), p.t.dk = heads_of(p.d, q, row, s.D);
    p.t.slices = s.slices, p.t.accumulate = s.B > 1, p.t.sums = p.sums;
    p.t.rstd = p.rstd, p.t.eps = 1e-6f;
    if (s.has_gains)
        p.t.gain_q = test_floats(pool, s.D), p.t.gain_k = test_floats(pool, s.D);
    return p;
}

static void solve(const zero_backend *ops, const zero_math *math, const problem *p)
{
    ops->turn(math, &p->t);
    ops->turn_backward(math, &p->t);
}

/* A rank with half of the heads, of q and of k. */
static problem half_of(test_pool *pool, const problem *p, int half)
{
    const int64_t D = p->t.D, row = (p->t.H + 2 * p->t.K) * D;
    problem h = *p;
    h.x = test_copy(pool, p->n, p->x), h.d = test_copy(pool, p->n, p->d);
    h.t.H /= 2, h.t.K /= 2, h.t.slices /= 2;
    h.t.q = heads_of(h.x, half * h.t.H * D, row, D);
    h.t.k = heads_of(h.x, (p->t.H + half * h.t.K) * D, row, D);
    h.t.dq = heads_of(h.d, half * h.t.H * D, row, D);
    h.t.dk = heads_of(h.d, (p->t.H + half * h.t.K) * D, row, D);
    h.t.to_q = h.t.q,
    h.t.to_k = h.t.k; /* not read before they are turned back: see below */
    h.t.rstd = test_floats(pool, p->n_rstd);
    h.t.sums = h.sums =
        p->sums ? test_copy(pool, p->n_sums / 2, p->sums + half * p->n_sums / 2) : NULL;
    return h;
}

TEST(a_slice_of_heads_has_the_sums_that_it_has_alone)
{
    void *pool;
    assert_int_equal(test_pool_make(&pool), 0);
    const zero_math math = test_opened(&zero_backend_cpu);
    problem whole = make_problem(pool, (shape){1, 13, 8, 4, 20, 12, true, 4});
    whole.t.accumulate = false;
    for (int half = 0; half < 2; half++) {
        problem all = whole, own = half_of(pool, &whole, half);
        all.d = test_copy(pool, whole.n, whole.d);
        const int64_t D = whole.t.D, row = (whole.t.H + 2 * whole.t.K) * D;
        all.t.dq = heads_of(all.d, 0, row, D),
        all.t.dk = heads_of(all.d, whole.t.H * D, row, D);
        solve(&zero_backend_cpu, &math, &all);
        zero_turn forward = own.t;
        float *elsewhere = test_floats(pool, whole.n);
        forward.to_q = heads_of(elsewhere, 0, row, D);
        forward.to_k = heads_of(elsewhere, whole.t.H * D, row, D);
        zero_backend_cpu.turn(&math, &forward);
        zero_backend_cpu.turn_backward(&math, &own.t);
        assert_same(whole.n_sums / 2, own.sums, all.sums + half * whole.n_sums / 2);
        for (int64_t r = 0; r < 13; r++)
            assert_same(own.t.H * D, own.d + r * row + half * own.t.H * D,
                        all.d + r * row + half * own.t.H * D);
    }
    test_pool_free(&pool);
}

/* A token after `past` others turns as it does in the whole text; in place, too. */
TEST(a_token_turns_by_its_position)
{
    enum { T = 21 };
    void *pool;
    assert_int_equal(test_pool_make(&pool), 0);
    const zero_backend *const both[] = {&zero_backend_cpu, &zero_backend_naive};
    for (int i = 0; i < 2; i++) {
        const zero_math math = test_opened(both[i]);
        problem p = make_problem(pool, (shape){1, T, 4, 2, 10, 8, true, 1});
        const int64_t row = p.n / T, turned = p.n_turned / T;
        both[i]->turn(&math, &p.t);
        for (int64_t t = 0; t < T; t++) {
            float *one = test_copy(pool, row, p.x + t * row);
            zero_turn alone = p.t;
            alone.T = 1, alone.past = &t, alone.rstd = test_floats(pool, 6);
            alone.q = alone.to_q = heads_of(one, 0, row, 10);
            alone.k = alone.to_k = heads_of(one, 40, row, 10);
            both[i]->turn(&math, &alone);
            assert_same(turned, one, p.turned + t * turned);
        }
    }
    test_pool_free(&pool);
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
