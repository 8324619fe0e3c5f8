/* The ledger of the scratch file: bytes read and written are those planned, and the formula's. */
#define TEST_HAS_MAIN
#include "engine/file_ledger.h"
#include "fake/fake.h"
#include "io/scratch_file.h"
#include "state/run_memory.h"
#include "support/disk_place.h"
#include "support/engine_test.h"

#include <unistd.h>

static char directory[] = "file-ledger-XXXXXX";

/* ---- runs ---- */

static void run_begin(test_run *run, const test_setup *setup)
{
    *run = (test_run){.setup = *setup, .comm = &run->own};
    test_split(test_size, 0, &run->own);
    assert_ok(zero_model_build(&setup->shape, &run->model));
    zero_engine_spec spec = {.plan = zero_engine_place(setup->plan, &run->model, run->comm),
                             .backend = setup->backend,
                             .seed = setup->seed,
                             .eval_batches = 1,
                             .directory = directory};
    zero_status st = zero_engine_init(&run->engine, &spec, run->comm);
    all_ok(st);
}

static void settle(test_run *run)
{
    all_ok(zero_engine_settle(&run->engine));
}

/* ---- what the formula says ---- */

/* Bytes of a group's blocks with this many bytes per element, pages full. */
static uint64_t block_bytes(const test_run *run, int g, uint64_t bytes)
{
    const zero_schedule *s = &run->engine.schedule;
    const zero_partition *p = &s->groups[g].partition;
    int64_t n = p->padded, block = ZERO_OFFLOAD_BLOCK;
    uint64_t sum = 0;
    if (s->input.stage > 0) n = zero_range_len(zero_partition_piece(p, run->comm->rank));
    if (s->input.stage > 0 && s->input.partition == ZERO_PARTITION_SLICE)
        assert_true(n == p->padded / run->comm->size);
    for (; n > 0; n -= block) {
        uint64_t content = (uint64_t)(n < block ? n : block) * bytes;
        sum += (content + ZERO_SCRATCH_ALIGN - 1) / ZERO_SCRATCH_ALIGN * ZERO_SCRATCH_ALIGN;
    }
    return sum;
}

static uint64_t model_bytes(const test_run *run, uint64_t bytes)
{
    uint64_t sum = 0;
    for (int g = 0; g < run->model.n_groups; g++) sum += block_bytes(run, g, bytes);
    return sum;
}

static void check_formula(const test_run *run, uint64_t updates)
{
    const zero_plan_input *in = &run->engine.schedule.input;
    zero_file_ledger l = zero_runner_file_ledger(&run->engine.runner);
    uint64_t states = model_bytes(run, in->type == ZERO_FP32 ? 8 : 12);
    uint64_t params =
        in->offload_parameters ? model_bytes(run, zero_type_size(in->type)) : 0;
    uint64_t read = in->type == ZERO_FP32 ? params : 0;
    assert_int_equal(l.measured.states.bytes_read, updates * (states + read));
    assert_int_equal(l.measured.states.bytes_written, updates * (states + params));
    assert_int_equal(l.planned_bytes[ZERO_CLASS_OPTIMIZER], states);
    assert_int_equal(l.planned_bytes[ZERO_CLASS_PARAMETERS], params);
}

static void check_ledger(const test_run *run)
{
    zero_file_ledger l = zero_runner_file_ledger(&run->engine.runner);
    const zero_schedule *s = &run->engine.schedule;
    assert_true(zero_file_ledger_is_as_planned(&l));
    for (int c = 0; c < ZERO_CLASSES; c++) {
        assert_int_equal(l.planned_bytes[c], l.measured_bytes[c]);
        assert_int_equal(l.planned_bytes[c], zero_offload_bytes(s, (zero_class)c));
    }
    if (s->input.offload_activations)
        assert_true(l.measured.activations.bytes_read > 0 &&
                    l.measured.activations.bytes_read ==
                        l.measured.activations.bytes_written);
    if (s->input.offload_parameters) assert_true(l.measured.parameters.reads > 0);
    assert_true(l.visits.bytes_written > 0); /* initial values */
}

/* Memory, too: slots, and beside a device what travels. */
static void check_memory(const test_run *run)
{
    zero_peak planned, measured;
    all_ok(zero_runner_memory(&run->engine.runner, &planned, &measured));
    assert_all(memcmp(&planned, &measured, sizeof planned) == 0);
}

static void check_setup(const test_setup *setup)
{
    test_run run;
    run_begin(&run, setup);
    test_run_steps(&run, 0, 2);
    settle(&run);
    check_formula(&run, 2);
    check_ledger(&run);
    check_memory(&run);
    (void)test_run_digest(&run); /* reads states and is in no plan */
    check_formula(&run, 2);
    check_ledger(&run);
    test_run_close(&run);
}

/* ---- tests ---- */

static test_setup setup_of(int stage, zero_type type, zero_offload when)
{
    test_setup setup = test_standard;
    setup.shape.hidden = 12;
    setup.plan.stage = stage;
    setup.plan.type = type;
    setup.plan.offload = when;
    if (when == ZERO_OFFLOAD_DELAYED) setup.plan.delayed_from = 1;
    setup.plan.offload_depth = stage % 2 == 0 ? 2 : 4;
    setup.plan.partition =
        (zero_partition_scheme)((int)when % 2 == 0 ? ZERO_PARTITION_SLICE
                                                   : ZERO_PARTITION_OWNER);
    return setup;
}

static bool is_refused(zero_type type, zero_offload when)
{
    return when == ZERO_OFFLOAD_BACKWARD && type == ZERO_FP16;
}

TEST(every_byte_that_moves_is_planned)
{
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++)
        for (zero_type type = ZERO_FP32; type <= ZERO_FP16; type++)
            for (int when = ZERO_OFFLOAD_END; when < ZERO_OFFLOAD_PLACES; when++) {
                test_setup setup = setup_of(stage, type, (zero_offload)when);
                if (is_refused(type, (zero_offload)when)) continue;
                if (when == ZERO_OFFLOAD_BACKWARD) setup.clip = 0.0;
                check_setup(&setup);
            }
}

TEST(parameters_and_activations_are_planned_too)
{
    for (zero_type type = ZERO_FP32; type <= ZERO_FP16; type++)
        for (int when = ZERO_OFFLOAD_END; when <= ZERO_OFFLOAD_LAZY; when++) {
            test_setup setup = setup_of(3, type, (zero_offload)when);
            setup.shape.layers = 3;
            setup.plan.accumulation = 2;
            setup.plan.recompute = true;
            setup.plan.offload_activations = 1;
            setup.plan.offload_parameters = when == ZERO_OFFLOAD_LAZY;
            check_setup(&setup);
        }
}

/* A device changes nothing of what the file has: only masters of fp32, which the host keeps. */
TEST(so_are_those_beside_a_device)
{
    for (int when = ZERO_OFFLOAD_END; when < ZERO_OFFLOAD_PLACES; when++)
        for (zero_type type = ZERO_FP32; type <= ZERO_BF16; type++) {
            test_setup setup = setup_of(when % ZERO_STAGE_COUNT, type, (zero_offload)when);
            if (when == ZERO_OFFLOAD_BACKWARD) setup.clip = 0.0;
            setup.backend = &zero_backend_fake;
            setup.plan.device = 1;
            check_setup(&setup);
        }
}

/* The embedding has more elements than a block. */
TEST(several_blocks_of_a_group_have_a_page_of_padding_at_most)
{
    test_setup setup = setup_of(2, ZERO_BF16, ZERO_OFFLOAD_LAZY);
    setup.shape.vocab = 70001;
    setup.plan.micro_batch = 1;
    check_setup(&setup);
}

TEST(a_skipped_step_moves_nothing)
{
    for (int when = ZERO_OFFLOAD_END; when <= ZERO_OFFLOAD_LAZY; when++) {
        test_setup setup = setup_of(2, ZERO_FP16, (zero_offload)when);
        test_run run;
        run_begin(&run, &setup);
        test_run_steps(&run, 0, 1);
        settle(&run);
        check_formula(&run, 1);
        run.engine.loss_scale.scale = 0x1p60f;
        test_run_steps(&run, 1, 1);
        settle(&run);
        assert_true(run.last.overflow && run.engine.skipped == 1);
        check_formula(&run, 1);
        check_ledger(&run);
        run.engine.loss_scale.scale = 1.0f;
        test_run_steps(&run, 2, 1);
        settle(&run);
        check_formula(&run, 2);
        check_ledger(&run);
        test_run_close(&run);
    }
}

TEST(without_a_file_the_ledger_is_empty)
{
    test_setup setup = setup_of(1, ZERO_FP32, ZERO_OFFLOAD_OFF);
    test_run run;
    const zero_file_ledger none = {.visits.reads = 0};
    run_begin(&run, &setup);
    test_run_steps(&run, 0, 1);
    zero_file_ledger l = zero_runner_file_ledger(&run.engine.runner);
    assert_memory_equal(&l, &none, sizeof l);
    test_run_close(&run);
}

int main(int argc, char **argv)
{
    test_begin(&argc, &argv);
    assert_true(disk_place_make(directory));
    int failed = run_here(NULL, NULL);
    rmdir(directory);
    return test_end(failed);
}
