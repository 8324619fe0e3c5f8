/* The loss of a model that ranks share: with any dealing of the vocabulary's slices it has the same
 * bits. */
#include "support/math_test.h"

#include "base/number.h"
#include "base/tree.h"
#include "math/backends.h"
#include "math/cpu_state.h"

static const zero_backend *const both[] = {&zero_backend_cpu, &zero_backend_naive};

/* Where each slice ends, of all S. Neither the slices of a rank nor those of two ranks are
 * alike. */
static void cut_words(int64_t V, int S, int64_t *ends)
{
    const int64_t whole = (V + S - 1) / S;
    for (int s = 0; s < S; s++)
        ends[s] = zero_min((s + 1) * whole - s % 3, V - (S - 1 - s));
    ends[S - 1] = V;
}

typedef struct {
    int64_t rows, V;
    int S;
    const int64_t *ends;
    const int32_t *targets;
    const float *logits;
    float dscale;
} problem;

/* Rank `rank` of a dealing to `ranks`; its logits are copied. */
static zero_softmax softmax_of(test_pool *pool, const problem *p, int ranks, int rank)
{
    const int slices = p->S / ranks, first = rank * slices;
    int64_t *ends = test_bytes(pool, slices * (int64_t)sizeof *ends);
    zero_softmax s = {.rows = p->rows, .slices = slices, .ranks = ranks, .rank = rank};
    s.first = first > 0 ? p->ends[first - 1] : 0;
    for (int i = 0; i < slices; i++) ends[i] = p->ends[first + i] - s.first;
    s.V = ends[slices - 1];
    s.ends = ends, s.targets = p->targets, s.dscale = p->dscale;
    s.logits = test_floats(pool, s.rows * s.V), s.loss = test_floats(pool, s.rows);
    for (int64_t r = 0; r < s.rows; r++)
        memcpy(s.logits + r * s.V, p->logits + r * p->V + s.first,
               (size_t)s.V * sizeof(float));
    return s;
}

/* All ranks one after the other. Every rank gets the same losses; gradient [rows,V] is put
 * together. */
static void solve(test_pool *pool, const zero_backend *ops, const problem *p, int ranks,
                  float *loss, float *gradient)
{
    zero_math math = test_opened(ops);
    zero_softmax s[8];
    const int64_t stats = (2 * (p->S / ranks) + 1) * p->rows;
    float *all = test_floats(pool, ranks * stats);
    for (int i = 0; i < ranks; i++) {
        s[i] = softmax_of(pool, p, ranks, i);
        s[i].all = all, s[i].stats = all + i * stats;
        ops->softmax_slices(&math, &s[i]);
    }
    for (int i = 0; i < ranks; i++) {
        ops->softmax_loss(&math, &s[i]);
        if (i == 0) memcpy(loss, s[0].loss, (size_t)p->rows * sizeof *loss);
        assert_same(p->rows, s[i].loss, loss);
        for (int64_t r = 0; r < p->rows; r++)
            memcpy(gradient + r * p->V + s[i].first, s[i].logits + r * s[i].V,
                   (size_t)s[i].V * sizeof(float));
    }
}

static problem make_problem(test_pool *pool, int64_t rows, int64_t V, int S)
{
    int64_t *ends = test_bytes(pool, S * (int64_t)sizeof *ends);
    float *logits = test_floats(pool, rows * V);
    cut_words(V, S, ends);
    for (int64_t i = 0; i < rows * V; i++) logits[i] *= 8.0f;
    for (int64_t j = 0; j < V / 2; j++) logits[j] -= 200.0f; /* far below other slices */
    int32_t *targets = test_tokens(pool, rows, V);
    targets[1] = -1; /* a row that does not count */
    return (problem){rows, V, S, ends, targets, logits, 0.125f};
}

static void check_dealings(test_pool *pool, const zero_backend *ops, int64_t V, int S)
{
    const problem p = make_problem(pool, 5, V, S);
    const int64_t n = p.rows * V;
    zero_math math = test_opened(ops);
    float *loss = test_floats(pool, p.rows), *gradient = test_floats(pool, n);
    float *want = test_copy(pool, n, p.logits), *wanted = test_floats(pool, p.rows);
    float *same = test_floats(pool, p.rows), *like = test_floats(pool, n);
    solve(pool, ops, &p, 1, loss, gradient);
    ops->cross_entropy(&math, &(zero_cross_entropy){.rows = p.rows,
                                                    .V = V,
                                                    .targets = p.targets,
                                                    .dscale = p.dscale,
                                                    .logits = want,
                                                    .loss = wanted});
    assert_true(test_error(p.rows, loss, wanted) < 1e-6);
    assert_true(test_error(n, gradient, want) < 1e-6);
    for (int ranks = 2; ranks <= S; ranks *= 2) {
        if (S % ranks != 0) continue;
        solve(pool, ops, &p, ranks, same, like);
        assert_same(p.rows, same, loss);
        assert_same(n, like, gradient);
    }
}

TEST(any_dealing_of_slices_has_the_same_loss_and_gradient)
{
    static const int64_t words[] = {17, 257, 5003};
    static const int slices[] = {1, 2, 3, 4, 6, 8};
    for (size_t k = 0; k < COUNT(both); k++)
        for (size_t v = 0; v < COUNT(words); v++)
            for (size_t s = 0; s < COUNT(slices); s++)
                check_dealings(*state, both[k], words[v], slices[s]);
}

/* The loss of one row whose slices have these sums, and 0 as largest logit. */
static float loss_of(const zero_backend *ops, int ranks, int slices, const float *sums)
{
    float all[6 * 3] = {0}, logits[1] = {0}, loss;
    zero_math math = test_opened(ops);
    for (int s = 0; s < ranks * slices; s++)
        all[s / slices * (2 * slices + 1) + slices + s % slices] = sums[s];
    ops->softmax_loss(&math, &(zero_softmax){.rows = 1,
                                             .V = 1,
                                             .slices = slices,
                                             .ends = (const int64_t[]){1},
                                             .targets = (const int32_t[]){0},
                                             .logits = logits,
                                             .ranks = ranks,
                                             .all = all,
                                             .loss = &loss});
    return loss;
}

/* Sums of slices that differ so much that another order shows in the loss. */
TEST(slices_are_added_along_the_tree)
{
    for (int trial = 0; trial < 4096; trial++) {
        float sums[6] = {1.0f};
        double exact[6] = {1.0};
        for (int s = 1; s < 6; s++)
            exact[s] = sums[s] = (float)(trial >> 2 * s & 7) * 0x1p-54f;
        const float want = (float)log(zero_tree_sum_scalars(6, exact));
        for (size_t k = 0; k < COUNT(both); k++)
            for (int ranks = 1; ranks <= 6; ranks++)
                if (6 % ranks == 0)
                    assert_true(loss_of(both[k], ranks, 6 / ranks, sums) == want);
    }
}

/* A slice of words that are ruled out has no number above -infinity, yet no NaN. Without dscale only
 * the loss is asked for. */
TEST(not_a_number_spoils_its_row_alone)
{
    enum { ROWS = 4, V = 40 };
    float gradient[ROWS * V], loss[ROWS], plain[ROWS];
    for (size_t k = 0; k < COUNT(both); k++) {
        problem p = make_problem(*state, ROWS, V, 4);
        float *logits = test_copy(*state, ROWS * V, p.logits);
        int32_t targets[ROWS] = {V - 1, V - 1, V - 1, V - 1};
        p.logits = logits, p.targets = targets;
        logits[V + 3] = NAN;
        for (int64_t j = 0; j < p.ends[0]; j++) logits[2 * V + j] = -INFINITY;
        for (int64_t j = 0; j < p.ends[0]; j++) logits[3 * V + j] = NAN;
        solve(*state, both[k], &p, 2, loss, gradient);
        p.dscale = 0.0f;
        solve(*state, both[k], &p, 4, plain, gradient);
        for (int r = 0; r < ROWS; r++) assert_true(!isfinite(loss[r]) == (r % 2 == 1));
        assert_true(isnan(loss[1]) && isnan(loss[3]));
        assert_true(plain[0] == loss[0] && plain[2] == loss[2]);
    }
}
