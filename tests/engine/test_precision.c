/* Types: the numbers kept in 16 bits, the loss scale, and that all types learn. */
#include "support/faulty_unit.h"

/* ---- what is kept ---- */

static void check_type(const test_run *run, int buffer, zero_type type)
{
    const zero_buffer *b = &run->engine.schedule.buffers[buffer];
    assert_int_equal(b->type, type);
    assert_int_equal(b->bytes % (ZERO_SHARD_GRANULE * zero_type_size(type)), 0);
}

/* The parameters that the forward pass reads are the masters, rounded. */
static void check_rounded(test_run *run, int g)
{
    const zero_group_state *s = &run->engine.schedule.groups[g];
    zero_state_block own = test_states(&run->engine, g);
    const uint16_t *param =
        zero_runner_element(&run->engine.runner, s->param, own.range.begin);
    for (int64_t i = 0; i < zero_range_len(own.range); i++) {
        uint16_t rounded;
        zero_convert(ZERO_FP32, run->setup.plan.type, 1, &own.master[i], &rounded);
        assert_int_equal(param[i], rounded);
    }
}

static void check_kept(test_run *run)
{
    zero_type type = run->setup.plan.type;
    for (int g = 0; g < run->model.n_groups; g++) {
        const zero_group_state *s = &run->engine.schedule.groups[g];
        check_type(run, s->param, type);
        check_type(run, s->grad, type);
        check_type(run, s->state[0], ZERO_FP32);
        check_type(run, s->state[1], ZERO_FP32);
        assert_true((s->master == ZERO_NO_BUFFER) == (type == ZERO_FP32));
        if (type == ZERO_FP32) continue;
        check_type(run, s->master, ZERO_FP32);
        check_rounded(run, g);
    }
}

TEST(parameters_and_gradients_are_kept_in_their_type_and_states_in_fp32)
{
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++)
        for (zero_type type = ZERO_FP32; type <= ZERO_FP16; type++)
            for (int M = 1; M <= 2; M++) {
                test_setup setup = test_setup_of(stage, type);
                test_run run;
                setup.plan.accumulation = M;
                test_run_open(&run, &setup, test_size);
                test_run_steps(&run, 0, 2);
                check_kept(&run);
                test_run_close(&run);
            }
}

/* ---- the scale ---- */

/* A unit that sets gradients to zero which are small without the scale. The others keep their
 * mantissa in fp16 under scales near the first one. */
static void coarse_backward(const zero_unit *unit, const zero_call *call)
{
    const test_fault *f = unit->shape;
    float least = 0.02f * call->batch->loss_seed;
    f->unit.backward(&f->unit, call);
    for (int k = 0; k < unit->n_groups; k++)
        for (int64_t i = 0; i < f->n_params[k]; i++)
            if (fabsf(call->grad[k][i]) < least) call->grad[k][i] = 0.0f;
}

typedef struct {
    test_digest digest;
    double norm;
    float scale;
} scaled;

/* Four steps of coarse gradients; the scale grows after `steps` of them. */
static scaled train_growing_after(const test_setup *setup, int64_t steps)
{
    test_run run;
    test_fault coarse[8];
    test_run_open(&run, setup, test_size);
    assert_true(run.model.n_units <= 8);
    for (int u = 0; u < run.model.n_units; u++) {
        coarse[u] = (test_fault){.step = -1};
        test_plant(&run, u, &coarse[u]);
        run.model.units[u].backward = coarse_backward;
    }
    run.engine.loss_scale.scale = 4096.0f;
    run.engine.loss_scale.clean_steps = ZERO_LOSS_SCALE_WINDOW - steps;
    test_run_steps(&run, 0, 4);
    scaled out = {test_run_digest(&run), run.last.grad_norm, run.engine.loss_scale.scale};
    assert_all(run.engine.adam_steps == 4);
    test_run_close(&run);
    return out;
}

TEST(growth_changes_no_bit_of_the_gradients)
{
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++) {
        test_setup setup = test_setup_of(stage, ZERO_FP16);
        scaled want = train_growing_after(&setup, 1000);
        assert_all(want.scale == 4096.0f && want.norm > 0.01);
        for (int64_t steps = 1; steps <= 4; steps++) {
            scaled got = train_growing_after(&setup, steps);
            assert_all(got.scale == 8192.0f);
            assert_all(got.norm == want.norm && test_same(got.digest, want.digest));
        }
    }
}

/* ---- learning ---- */

static void the_same_sample(const void *arg, int64_t step, int64_t i, int64_t T,
                            void *inputs, void *targets)
{
    (void)step;
    test_sample(arg, 0, i, T, inputs, targets);
}

static double loss_after(zero_type type, int steps)
{
    test_setup setup = test_setup_of(3, type);
    test_run run;
    setup.lr = 1e-2;
    test_run_open(&run, &setup, test_size);
    zero_source source = {.sample = the_same_sample, .arg = &run.setup};
    test_run_steps_on(&run, &source, 0, steps);
    double loss = run.last.loss;
    test_run_close(&run);
    return loss;
}

TEST(sixteen_bits_learn_as_thirty_two_do)
{
    double first = loss_after(ZERO_FP32, 1), last = loss_after(ZERO_FP32, 40);
    assert_all(last < 0.5 * first);
    for (zero_type type = ZERO_BF16; type <= ZERO_FP16; type++) {
        double loss = loss_after(type, 40);
        assert_all(fabs(loss - last) < 0.02 * first);
    }
}
