/* Optimizer states in the host's memory beside a device (offload_host): where they lie, what a step
 * copies, and that every reader and writer of states finds them. (Its bits: test_any_run.c.) */
#include "support/faulty_unit.h"

#include "fake/fake.h"
#include "sharding/checks.h"
#include "sharding/schedule_device.h"
#include "sharding/schedule_exchange.h"
#include "state/host_copies.h"
#include "state/run_memory.h"

static test_setup setup_of(int stage, zero_type type)
{
    test_setup setup = test_setup_of(stage, type);
    setup.backend = &zero_backend_fake;
    setup.plan.device = setup.plan.offload_host = 1;
    setup.plan.offload = ZERO_OFFLOAD_END;
    return setup;
}

static test_setup on_cpu(test_setup setup)
{
    setup.backend = &zero_backend_cpu;
    setup.plan.device = setup.plan.offload_host = 0;
    setup.plan.offload = ZERO_OFFLOAD_OFF;
    return setup;
}

/* ---- memory ---- */

static void settle(test_run *run)
{
    all_ok(zero_engine_settle(&run->engine));
}

static void check_places(const zero_schedule *s, const zero_schedule *plain)
{
    size_t states = plain->class_peak[ZERO_CLASS_OPTIMIZER];
    size_t masters = s->input.type == ZERO_FP32 ? states / 2 : 0; /* they are a copy now */
    assert_all(s->class_peak[ZERO_CLASS_OPTIMIZER] == 0);
    assert_all(s->host_class_peak[ZERO_CLASS_OPTIMIZER] == states + masters);
    assert_all(s->class_peak[ZERO_CLASS_PARAMETERS] ==
               plain->class_peak[ZERO_CLASS_PARAMETERS]);
    assert_all(s->own_bytes + states <= plain->own_bytes);
}

static void check_ledger(const test_run *run)
{
    zero_peak planned, measured;
    all_ok(zero_runner_memory(&run->engine.runner, &planned, &measured));
    assert_all(memcmp(&planned, &measured, sizeof planned) == 0);
}

TEST(states_leave_the_device)
{
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++)
        for (zero_type type = ZERO_FP32; type <= ZERO_FP16; type++) {
            test_setup setup = setup_of(stage, type), plain = setup;
            test_run run, other;
            if ((stage + (int)type) % 2 == 0) setup.plan.offload = ZERO_OFFLOAD_LAZY;
            plain.plan.offload_host = 0;
            plain.plan.offload = ZERO_OFFLOAD_OFF;
            test_run_open(&run, &setup, test_size);
            test_run_open(&other, &plain, test_size);
            check_places(&run.engine.schedule, &other.engine.schedule);
            test_run_steps(&run, 0, 2);
            settle(&run);
            check_ledger(&run);
            test_run_close(&run);
            test_run_close(&other);
        }
}

/* ---- copies ---- */

/* The bytes of a step: those of its collectives, and those of its own. */
static void check_step(test_run *run, int step, bool is_skipped)
{
    const zero_schedule *s = &run->engine.schedule;
    const zero_link *link = &run->engine.runner.link;
    zero_copied_bytes own = zero_schedule_copies(s, ZERO_PROGRAM_STEP);
    zero_traffic reduce = zero_schedule_traffic(s, ZERO_PROGRAM_STEP, ZERO_OP_REDUCE);
    zero_traffic gather = zero_schedule_traffic(s, ZERO_PROGRAM_STEP, ZERO_OP_GATHER);
    uint64_t fetched = own.row_losses + own.gradients + own.squares;
    uint64_t stored = own.tokens + (is_skipped ? 0 : own.parameters);
    settle(run);
    zero_traffic_add(&reduce, 1, &gather);
    fetched += link->bytes_fetched + (uint64_t)reduce.bytes_fetched;
    stored += link->bytes_stored + (uint64_t)reduce.bytes_stored;
    test_run_steps(run, step, 1);
    settle(run);
    assert_all(run->last.overflow == is_skipped);
    assert_all(link->bytes_fetched == fetched && link->bytes_stored == stored);
}

TEST(a_step_copies_what_its_plan_says)
{
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++)
        for (int M = 1; M <= 2; M++) {
            test_setup setup = setup_of(stage, M == 1 ? ZERO_FP32 : ZERO_BF16);
            test_run run;
            setup.plan.accumulation = M;
            test_run_open(&run, &setup, test_size);
            test_run_steps(&run, 0, 1); /* looks at what units define */
            check_step(&run, 1, false);
            check_step(&run, 2, false);
            test_run_close(&run);
        }
}

static test_digest skip_a_step(const test_setup *setup)
{
    test_run run;
    test_run_open(&run, setup, test_size);
    test_run_steps(&run, 0, 2);
    test_digest before = test_run_digest(&run);
    float scale = run.engine.loss_scale.scale;
    run.engine.loss_scale.scale = 0x1p60f;
    if (setup->plan.device)
        check_step(&run, 2, true);
    else
        test_run_steps(&run, 2, 1);
    assert_all(run.last.overflow && run.engine.skipped == 1);
    assert_all(test_same(test_run_digest(&run), before));
    run.engine.loss_scale.scale = scale;
    test_run_steps(&run, 3, 2);
    assert_all(!run.last.overflow);
    test_digest after = test_run_digest(&run);
    test_run_close(&run);
    return after;
}

TEST(a_skipped_step_stores_no_parameters)
{
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++) {
        test_setup setup = setup_of(stage, ZERO_FP16), cpu = on_cpu(setup);
        assert_all(test_same(skip_a_step(&setup), skip_a_step(&cpu)));
    }
}

/* Between two walks the runner waits for gradients and collectives alone. */
TEST(a_step_drains_no_queue)
{
    test_setup setup = setup_of(2, ZERO_BF16);
    test_run run;
    test_run_open(&run, &setup, test_size);
    test_run_steps(&run, 0, 2);
    zero_fake_counts before = zero_fake_counted(&run.engine.runner.math);
    test_run_steps(&run, 2, 3);
    zero_fake_counts after = zero_fake_counted(&run.engine.runner.math);
    assert_all(after.syncs == before.syncs);
    test_run_close(&run);
}

/* ---- who reads and writes states ---- */

static zero_status halve(void *arg, const zero_state_block *block)
{
    (void)arg;
    for (int64_t i = 0; i < zero_range_len(block->range); i++) {
        block->master[i] *= 0.5f;
        block->part[2][i] += 1.0f;
    }
    return ZERO_OK;
}

/* Right after a step, whose copies of parameters may still be on their way. */
static test_digest write_states(const test_setup *setup)
{
    test_run run;
    test_run_open(&run, setup, test_size);
    test_run_steps(&run, 0, 2);
    settle(&run);
    for (int g = 0; g < run.model.n_groups; g++)
        assert_ok(zero_states_visit(&run.engine.runner, g,
                                    zero_states_held(&run.engine.schedule, g),
                                    ZERO_VISIT_CHANGE, halve, NULL));
    all_ok(zero_engine_publish(&run.engine));
    test_run_steps(&run, 2, 2);
    test_digest d = test_run_digest(&run);
    test_run_close(&run);
    return d;
}

TEST(written_states_reach_the_device)
{
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++)
        for (zero_type type = ZERO_FP32; type <= ZERO_BF16; type++) {
            test_setup setup = setup_of(stage, type), cpu = on_cpu(setup);
            if (stage % 2 == 0) setup.plan.offload = ZERO_OFFLOAD_LAZY;
            assert_all(test_same(write_states(&setup), write_states(&cpu)));
        }
}

/* ---- flipped bits ---- */

typedef struct {
    zero_array array;
    bool is_compared; /* else it is recorded */
    const char *said;
} flip_case;

/* A bit of an element that rank `test_size - 1` owns. A copy that is still on its way would take the
 * flipped bit along. */
static void flip(test_run *run, zero_array array)
{
    const zero_schedule *s = &run->engine.schedule;
    for (int g = 0; g < run->model.n_groups; g++) zero_host_await(&run->engine.runner, g);
    if (test_rank != test_size - 1) return;
    for (int g = 0; g < run->model.n_groups; g++) {
        zero_range held = zero_states_held(s, g);
        int buffer = s->groups[g].buffers[array];
        if (zero_range_is_empty(held)) continue;
        uint32_t *x = zero_runner_element(&run->engine.runner, buffer, held.begin);
        *x ^= UINT32_C(1) << 22;
        return;
    }
}

static void check_flip(int stage, zero_type type, const flip_case *c)
{
    test_setup setup = setup_of(stage, type);
    test_run run;
    if ((stage + (int)c->array) % 2 == 0) setup.plan.offload = ZERO_OFFLOAD_LAZY;
    setup.plan.check_replicas = c->is_compared;
    setup.plan.check_memory = !c->is_compared;
    test_run_open(&run, &setup, test_size);
    test_run_steps(&run, 0, 2);
    settle(&run);
    flip(&run, c->array);
    assert_all(test_step(&run, 2) == ZERO_ERR_CORRUPTED);
    assert_told(c->said);
    test_run_close(&run);
}

TEST(flipped_bits_of_states_are_found)
{
    static const flip_case cases[] = {
        {ZERO_ARRAY_MASTERS, true, "found other bits than its masters"},
        {ZERO_ARRAY_MASTERS, false, "masters"},
        {ZERO_ARRAY_STATES, false, "momentum"},
    };
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++)
        for (zero_type type = ZERO_FP32; type <= ZERO_BF16; type++)
            for (size_t k = 0; k < COUNT(cases); k++) check_flip(stage, type, &cases[k]);
}
