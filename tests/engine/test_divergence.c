/* Numbers that are not finite: steps that all ranks skip, and runs that all ranks end. */
#include "support/faulty_unit.h"
#include "support/gpt2_test.h"

enum { FAULTY_STEP = 2 };                   /* from 0 */
enum { UNIT = 2, TENSOR = ZERO_FC_WEIGHT }; /* of the second block */

static const zero_tensor *faulty_tensor(const test_run *run)
{
    return &run->model.units[UNIT].tensors[0][TENSOR];
}

/* ---- overflow in fp16 ---- */

/* The step with the fault three times, and then without it: skipped, forgiven; skipped and
 * halved twice; taken. */
static void check_skipping(test_run *run, test_fault *f)
{
    const float scales[] = {65536.0f, 32768.0f, 16384.0f};
    test_digest before = test_run_digest(run);
    for (int i = 0; i < 3; i++) {
        assert_all(test_step(run, FAULTY_STEP) == ZERO_OK && run->last.overflow);
        assert_all(run->engine.adam_steps == FAULTY_STEP && run->engine.skipped == i + 1);
        assert_all(run->engine.loss_scale.scale == scales[i]);
        assert_all(run->engine.loss_scale.clean_steps == 0);
        assert_all(test_same(test_run_digest(run), before));
    }
    f->step = -1;
    assert_all(test_step(run, FAULTY_STEP) == ZERO_OK && !run->last.overflow);
    assert_all(run->engine.adam_steps == FAULTY_STEP + 1);
    assert_all(!test_same(test_run_digest(run), before));
}

/* The digest of a run that takes the same steps, the last one with this loss scale. */
static test_digest digest_with_scale(const test_setup *setup, float scale)
{
    test_run run;
    test_run_open(&run, setup, test_size);
    test_run_steps(&run, 0, FAULTY_STEP);
    run.engine.loss_scale.scale = scale;
    test_run_steps(&run, FAULTY_STEP, 1);
    test_digest d = test_run_digest(&run);
    test_run_close(&run);
    return d;
}

TEST(an_overflow_on_one_rank_skips_the_step_on_all)
{
    /* The second fault is finite in fp32, but not when rounded to fp16. */
    const float numbers[] = {INFINITY, -1e5f, NAN, 1e30f};
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++) {
        test_setup setup = test_setup_of(stage, ZERO_FP16);
        test_run run;
        test_fault f = {.step = FAULTY_STEP,
                        .is_mine = test_rank == stage % test_size,
                        .number = numbers[stage % 4]};
        test_run_open(&run, &setup, test_size);
        f.element = faulty_tensor(&run)->offset + 5;
        test_plant(&run, UNIT, &f);
        test_run_steps(&run, 0, FAULTY_STEP);
        assert_all(run.engine.loss_scale.clean_steps == FAULTY_STEP);
        check_skipping(&run, &f);
        test_digest want = digest_with_scale(&setup, 16384.0f);
        assert_all(test_same(test_run_digest(&run), want));
        test_run_close(&run);
    }
}

TEST(at_the_least_scale_an_overflow_ends_the_run)
{
    test_setup setup = test_setup_of(2, ZERO_FP16);
    test_run run;
    test_fault f = {.step = 0, .is_mine = test_rank == test_size - 1, .number = INFINITY};
    test_run_open(&run, &setup, test_size);
    test_plant(&run, UNIT, &f);
    run.engine.loss_scale.scale = 1.0f;
    assert_all(test_step(&run, 0) == ZERO_OK && run.last.overflow); /* forgiven */
    assert_all(test_step(&run, 0) == ZERO_ERR_DIVERGED);
    assert_all(run.engine.loss_scale.scale == 1.0f && run.engine.adam_steps == 0);
    test_run_close(&run);
}

/* ---- divergence in bf16 and fp32 ---- */

static void check_told(const test_run *run, const test_fault *f, int culprit)
{
    char rank[32];
    const char *text = zero_last_error();
    snprintf(rank, sizeof rank, "on rank %d,", culprit);
    assert_all(strstr(text, "step 3:") && strstr(text, rank));
    assert_all(strstr(text, run->model.units[UNIT].name) != NULL);
    assert_all((strstr(text, "forward") != NULL) == f->in_forward);
    assert_all((strstr(text, faulty_tensor(run)->name) != NULL) == !f->in_forward);
}

static void check_divergence(const test_setup *setup, bool in_forward, int culprit)
{
    test_run run;
    test_fault f = {.step = FAULTY_STEP,
                    .is_mine = test_rank == culprit,
                    .in_forward = in_forward,
                    .number = in_forward ? NAN : INFINITY};
    test_run_open(&run, setup, test_size);
    f.element = in_forward ? 7 : faulty_tensor(&run)->offset + 5;
    test_plant(&run, UNIT, &f);
    test_run_steps(&run, 0, FAULTY_STEP);
    test_digest before = test_run_digest(&run);
    assert_all(test_step(&run, FAULTY_STEP) == ZERO_ERR_DIVERGED);
    check_told(&run, &f, culprit);
    assert_all(test_same(test_run_digest(&run), before));
    assert_all(run.engine.adam_steps == FAULTY_STEP && run.engine.loss_scale.scale == 1.0f);

    f.step = -1; /* the run can continue as if nothing had happened */
    test_run_steps(&run, FAULTY_STEP, 1);
    test_digest after = test_run_digest(&run);
    assert_all(test_same(after, test_digest_after(setup, test_size, FAULTY_STEP + 1)));
    test_run_close(&run);
}

TEST(what_is_not_finite_is_told_by_all_ranks_and_changes_nothing)
{
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++)
        for (zero_type type = ZERO_FP32; type <= ZERO_BF16; type++)
            for (int in_forward = 0; in_forward <= 1; in_forward++) {
                test_setup setup = test_setup_of(stage, type);
                check_divergence(&setup, in_forward == 1, (stage + 1) % test_size);
            }
}

/* A unit of another program may have losses that its gradient does not show. */
TEST(a_loss_that_is_not_finite_is_told_though_the_gradient_is_finite)
{
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++)
        for (zero_type type = ZERO_FP32; type <= ZERO_FP16; type++) {
            test_setup setup = test_setup_of(stage, type);
            test_run run;
            char culprit[64];
            test_fault f = {.step = FAULTY_STEP,
                            .is_mine = test_rank == stage % test_size,
                            .in_loss = true,
                            .number = stage % 2 == 0 ? NAN : INFINITY,
                            .element = 3};
            test_run_open(&run, &setup, test_size);
            int head = run.model.n_units - 1;
            test_plant(&run, head, &f);
            test_run_steps(&run, 0, FAULTY_STEP);
            test_digest before = test_run_digest(&run);
            zero_status wanted = type == ZERO_FP16 ? ZERO_OK : ZERO_ERR_DIVERGED;
            assert_all(test_step(&run, FAULTY_STEP) == wanted);
            snprintf(culprit, sizeof culprit, "losses of %s, on rank %d,",
                     run.model.units[head].name, stage % test_size);
            if (type == ZERO_FP16) {
                assert_all(run.last.overflow);
            } else {
                all_told("the loss is not finite");
                all_told(culprit);
            }
            assert_all(test_same(test_run_digest(&run), before));
            test_run_close(&run);
        }
}

/* One rank goes wrong in a forward pass, another, or the same, later in a backward pass. */
TEST(the_first_of_several_faults_is_told)
{
    test_setup setup = test_setup_of(2, ZERO_BF16);
    test_run run;
    test_fault early = {.is_mine = test_rank == test_size - 1, .in_forward = true};
    test_fault late = {.is_mine = test_rank == 0};
    early.step = late.step = FAULTY_STEP;
    early.number = late.number = NAN;
    test_run_open(&run, &setup, test_size);
    test_plant(&run, UNIT, &early);
    test_plant(&run, UNIT - 1, &late);
    test_run_steps(&run, 0, FAULTY_STEP);
    assert_all(test_step(&run, FAULTY_STEP) == ZERO_ERR_DIVERGED);
    check_told(&run, &early, test_size - 1);
    test_run_close(&run);
}

/* A gradient that is finite in fp32, as backward writes it, but too large for its type. */
TEST(what_rounding_makes_infinite_is_told_as_such)
{
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++)
        for (int M = 1; M <= 2; M++) {
            test_setup setup = test_setup_of(stage, ZERO_FP16);
            test_run run;
            test_fault f = {
                .step = 0, .is_mine = test_rank == test_size - 1, .number = 1e5f};
            setup.plan.accumulation = M;
            test_run_open(&run, &setup, test_size);
            f.element = faulty_tensor(&run)->offset + 5;
            test_plant(&run, UNIT, &f);
            run.engine.loss_scale.scale = 1.0f;
            run.engine.loss_scale.hysteresis = 1;
            assert_all(test_step(&run, 0) == ZERO_ERR_DIVERGED);
            char culprit[32];
            snprintf(culprit, sizeof culprit, "on rank %d,", test_size - 1);
            all_told("is rounded to fp16");
            all_told(faulty_tensor(&run)->name);
            all_told(culprit);
            test_run_close(&run);
        }
}

/* Gradients and their squares are finite, but the sum over ranks is not. */
TEST(a_sum_that_is_not_finite_names_no_rank)
{
    test_setup setup = test_setup_of(1, ZERO_FP32);
    test_run run;
    test_fault f = {.step = 0, .is_mine = true, .number = 3e38f};
    test_run_open(&run, &setup, test_size);
    test_plant(&run, UNIT, &f);
    if (test_size == 1) {
        all_ok(test_step(&run, 0));
    } else {
        all_fail(test_step(&run, 0), ZERO_ERR_DIVERGED, "but not their sum");
    }
    test_run_close(&run);
}
