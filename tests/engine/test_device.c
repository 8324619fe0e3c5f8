/* A run on the fake device, whose memory the host cannot touch and whose calls return early: large
 * groups, divergence, and what a step waits for. That it changes no bit shows test_any_run.c. */
#include "support/engine_test.h"

#include "fake/fake.h"

static void set_order(uint64_t order)
{
    char text[32];
    snprintf(text, sizeof text, "%" PRIu64, order);
    assert_int_equal(setenv("ZERO_FAKE_ORDER", text, 1), 0);
}

static test_setup on_device(test_setup setup)
{
    setup.backend = &zero_backend_fake;
    setup.plan.device = 1;
    return setup;
}

/* A plan with a device needs a backend with memory of its own, and the other way round. */
TEST(plan_and_backend_agree_on_the_device)
{
    for (int k = 0; k < 2; k++) {
        test_run run = {.setup = test_standard, .comm = &run.own};
        if (k == 0) run.setup.backend = &zero_backend_fake;
        if (k == 1) run.setup.plan.device = 1;
        test_split(test_size, 0, &run.own);
        assert_all(test_run_init(&run) == ZERO_ERR_INVALID);
        assert_told("device");
        test_run_close(&run);
    }
}

/* ---- more than two chunks ---- */

/* In fp32 masters are filled block by block, in a run without training 16-bit parameters piece by
 * piece. The third block and the third piece use the host's memory of the first. */
TEST(long_groups_pass_through_two_chunks)
{
    for (int k = 0; k < 2; k++) {
        test_setup setup = test_standard;
        setup.shape.hidden = 12;
        setup.shape.layers = 1;
        setup.shape.vocab = k == 0 ? 70000 : 270000;
        setup.plan.type = k == 0 ? ZERO_FP32 : ZERO_BF16;
        setup.plan.forward_only = k == 1;
        set_order(1 + (uint64_t)k);
        test_setup device = on_device(setup);
        zero_sampling how = {.temperature = 1.0, .known = setup.shape.vocab};
        int32_t text[2][1 + TEST_WORDS] = {{1}, {1}};
        for (int d = 0; d < 2; d++) {
            test_run run;
            test_run_open(&run, d == 0 ? &setup : &device, test_size);
            assert_ok(test_generate_text(&run.engine, &how, 1, TEST_WORDS, text[d]));
            test_run_close(&run);
        }
        assert_all(memcmp(text[0], text[1], sizeof text[0]) == 0);
    }
}

/* ---- a gradient that is not finite ---- */

static void diverge(const test_setup *setup, char *told, size_t size)
{
    test_run run;
    test_run_open(&run, setup, test_size);
    zero_source source = test_words(&run);
    zero_step_input in = test_step_input(&run, 0);
    in.lr = 1e20;
    all_ok(zero_engine_step(&run.engine, &source, &in, &run.last));
    in.step = 1;
    assert_all(zero_engine_step(&run.engine, &source, &in, &run.last) == ZERO_ERR_DIVERGED);
    snprintf(told, size, "%s", zero_last_error());
    test_run_close(&run);
}

TEST(a_divergence_is_told_as_on_the_cpu)
{
    char want[512], got[512];
    for (int stage = 0; stage <= 3; stage += 3) {
        test_setup setup = test_standard;
        setup.plan.stage = stage;
        test_setup device = on_device(setup);
        diverge(&setup, want, sizeof want);
        diverge(&device, got, sizeof got);
        if (test_rank == 0 && strcmp(want, got) != 0)
            print_error("on the CPU: %s\non the device: %s\n", want, got);
        assert_all(strstr(want, "forward pass") && strcmp(want, got) == 0);
    }
}

/* ---- waiting ---- */

typedef struct {
    int64_t syncs, waits;
} waited;

static waited count(const test_run *run)
{
    const zero_runner *r = &run->engine.runner;
    return (waited){zero_fake_counted(&r->math).syncs, r->link.waits};
}

/* A source that notes what was waited for before the last sample. */
typedef struct {
    const test_run *run;
    waited at_sample;
} watcher;

static void watched_sample(const void *arg, int64_t step, int64_t i, int64_t T,
                           void *inputs, void *targets)
{
    watcher *w = *(watcher *const *)arg;
    w->at_sample = count(w->run);
    test_sample(&w->run->setup, step, i, T, inputs, targets);
}

/* A step drains no queue. Until its last LOAD it waits for nothing at all: OVERFLOW of the step
 * before has ended the copies of two microbatches' tokens with everything else, so both slots are
 * free. LOSS waits for row losses whose copies are not over, OVERFLOW for the squares. Collectives
 * ask whether their copies are over, and wait in their own instructions alone. */
static int64_t check_waits(const test_setup *setup)
{
    int64_t all = 0, most = 1 + setup->plan.accumulation;
    test_run run;
    test_run_open(&run, setup, test_size);
    watcher w = {.run = &run}, *arg = &w;
    zero_source source = {.sample = watched_sample, .arg = &arg};
    test_run_steps(&run, 0, 2); /* the first one looks for numbers left undefined */
    for (int64_t step = 2; step < 5; step++) {
        waited before = count(&run);
        test_run_steps_on(&run, &source, step, 1);
        waited after = count(&run);
        int64_t waits = after.waits - before.waits;
        int64_t early = w.at_sample.waits - before.waits;
        if (waits > most || early > 0 || after.syncs != before.syncs)
            print_error("rank %d, stage %d: %" PRId64 " waits, %" PRId64
                        " of them before the last LOAD, and %" PRId64 " syncs in a step\n",
                        test_rank, setup->plan.stage, waits, early,
                        after.syncs - before.syncs);
        assert_all(waits <= most && early == 0 && after.syncs == before.syncs);
        all += waits;
    }
    test_run_close(&run);
    return all;
}

TEST(a_step_waits_in_overflow_and_for_what_is_not_over)
{
    int64_t waits = 0;
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++) {
        test_setup setup = on_device(test_standard);
        setup.plan.stage = stage;
        setup.plan.accumulation = 2;
        set_order(1 + (uint64_t)stage);
        waits += check_waits(&setup);
        set_order(0); /* copies are over when they have begun */
        int64_t at_once = check_waits(&setup);
        assert_all(at_once == 0);
    }
    /* How often a collective asks, and so how far queues get, depends on the machine's other work: a
     * rank may find all copies of a run over, but hardly all ranks those of all runs. */
    bool has_waited = waits > 0;
    MPI_Allreduce(MPI_IN_PLACE, &has_waited, 1, MPI_C_BOOL, MPI_LOR, MPI_COMM_WORLD);
    assert_all(has_waited);
}
