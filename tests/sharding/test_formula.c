/* The paper's closed forms: the limits that it states, and laws between them. */

#include "support/test.h"

#include "sharding/formula.h"

static const int worlds[] = {1, 2, 3, 4, 7, 8, 64, 100, 1024, 65536};
static const int64_t models[] = {
    0, 1, 1000, 124439808, INT64_C(7500000000), INT64_C(1000000000000)};
static const zero_type types[] = {ZERO_FP32, ZERO_BF16, ZERO_FP16};

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-13 * fmax(fabs(a), fabs(b));
}

/* The rows of section 5 for 16 bits, and ours for fp32, as written. */
static double as_written(double psi, double n, int stage, zero_type type)
{
    const double half[] = {16.0 * psi, 4.0 * psi + 12.0 * psi / n,
                           2.0 * psi + 14.0 * psi / n, 16.0 * psi / n};
    const double full[] = {16.0 * psi, 8.0 * psi + 8.0 * psi / n,
                           4.0 * psi + 12.0 * psi / n, 16.0 * psi / n};
    return type == ZERO_FP32 ? full[stage] : half[stage];
}

static void for_all(void (*check)(int64_t psi, int n, int stage, zero_type type))
{
    for (size_t m = 0; m < COUNT(models); m++)
        for (size_t w = 0; w < COUNT(worlds); w++)
            for (int stage = 0; stage <= 3; stage++)
                for (size_t t = 0; t < COUNT(types); t++)
                    check(models[m], worlds[w], stage, types[t]);
}

static void check_states(int64_t psi, int n, int stage, zero_type type)
{
    double bytes = zero_formula_state_bytes(psi, n, stage, type);
    assert_true(near(bytes, as_written((double)psi, n, stage, type)));
    double alone = zero_formula_parameter_bytes(psi, n, stage, type);
    double parameter = type == ZERO_FP32 ? 4.0 : 2.0;
    assert_true(near(alone, parameter * (double)psi / (stage == 3 ? n : 1)));
}

TEST(states_cost_what_the_rows_say)
{
    for_all(check_states);
}

static void check_order(int64_t psi, int n, int stage, zero_type type)
{
    double here = zero_formula_state_bytes(psi, n, stage, type);
    double alone = 16.0 * (double)psi;
    assert_true(here >= alone / n * (1.0 - 1e-13) && here <= alone);
    if (n == 1) assert_true(near(here, alone));
    if (stage == 0 || psi == 0 || n == 1) return;
    assert_true(here < zero_formula_state_bytes(psi, n, stage - 1, type));
    assert_true(here > zero_formula_state_bytes(psi, n + 1, stage, type));
}

TEST(every_stage_and_every_rank_saves_and_one_rank_saves_nothing)
{
    for_all(check_order);
}

/* Section 5: 4 times, 8 times and N_d times less. */
TEST(with_many_ranks_the_savings_are_the_papers)
{
    const int many = 1 << 30;
    const int64_t psi = 1000000;
    double alone = zero_formula_state_bytes(psi, many, 0, ZERO_BF16);
    const double times[] = {1.0, 4.0, 8.0, many};
    for (int stage = 0; stage <= 3; stage++) {
        double saved = alone / zero_formula_state_bytes(psi, many, stage, ZERO_BF16);
        assert_true(fabs(saved / times[stage] - 1.0) < 1e-6);
    }
}

static void check_largest(int64_t psi, int n, int stage, zero_type type)
{
    double bytes = zero_formula_state_bytes(psi, n, stage, type);
    int64_t fits = zero_formula_largest_model(bytes, n, stage, type);
    assert_true(llabs(fits - psi) <= 1); /* one less where the division rounds down */
    double half = zero_formula_state_bytes(1, n, stage, type) / 2.0;
    assert_true(zero_formula_largest_model(bytes + half, n, stage, type) == psi);
}

TEST(the_largest_model_is_the_inverse)
{
    for_all(check_largest);
    assert_true(zero_formula_largest_model(0.0, 8, 3, ZERO_BF16) == 0);
    assert_true(zero_formula_largest_model(1e300, 8, 3, ZERO_BF16) == INT64_C(1) << 62);
}

static void check_volume(int64_t psi, int n, int stage, zero_type type)
{
    (void)type;
    double once = (double)psi * (n - 1) / n; /* one reduce-scatter, or one all-gather */
    for (int64_t M = 1; M <= 5; M++) {
        double reduces = stage >= 2 ? (double)M : 1.0;
        double gathers = stage == 3 ? 2.0 * (double)M : 1.0;
        assert_true(
            near(zero_formula_volume(psi, n, stage, M), (reduces + gathers) * once));
    }
}

TEST(a_step_moves_its_reductions_and_its_gathers)
{
    for_all(check_volume);
}

/* Section 7: 2 Psi for all but stage 3, which moves half as much again. */
TEST(with_many_ranks_the_volume_is_the_papers)
{
    for (int stage = 0; stage <= 3; stage++) {
        double psis = zero_formula_volume(1000000, 1 << 30, stage, 1) / 1e6;
        assert_true(fabs(psis - (stage == 3 ? 3.0 : 2.0)) < 1e-6);
    }
    assert_true(zero_formula_volume(1000000, 1, 3, 4) == 0.0);
}

static void check_replicas(int64_t psi, int n, int stage, zero_type type)
{
    (void)stage;
    (void)type;
    double all = 2.0 * (double)psi * (n - 1) / n; /* of an all-reduce among n ranks */
    assert_true(near(zero_formula_all_reduced(psi, 1, n), all));
    assert_true(zero_formula_all_reduced(psi, n, 1) == 0.0);
    for (int R = 1; R <= 8; R *= 2) {
        double within = 2.0 * zero_formula_exchanged(psi, R);
        double whole = 2.0 * zero_formula_exchanged(psi, R * n);
        assert_true(near(within + zero_formula_all_reduced(psi, R, n), whole));
    }
}

/* A reduce-scatter, an all-reduce of shards and an all-gather are an all-reduce among all. */
TEST(what_replicas_move_completes_an_all_reduce)
{
    for_all(check_replicas);
}
