/* --partition-activations: the ranks of a TP group keep pieces of what --recompute keeps. Memory and
 * traffic change, bits do not. Each run has a twin on the same ranks that keeps whole outputs in
 * memory. */
#include "engine/file_ledger.h"
#include "sharding/formula.h"
#include "sharding/offload.h"
#include "sharding/schedule_exchange.h"
#include "state/run_memory.h"
#include "support/job_place.h"
#include "support/same_bits.h"

/* The sums of any degree up to four divide twelve heads. */
static const zero_shape shape = {.layers = 3,
                                 .hidden = 48,
                                 .heads = 12,
                                 .seq = 7,
                                 .vocab = 30,
                                 .dropout = 0.1f,
                                 .seed = 5};

typedef struct {
    test_outcome out;
    size_t kept; /* bytes at most, measured */
} outcome;

/* Kept buffers are used first and last by the instructions that the plan says. */
static void expect_lives(const test_run *run)
{
    const zero_schedule *s = &run->engine.schedule;
    for (int id = 0; id < s->n_buffers; id++) {
        const zero_buffer *b = &s->buffers[id];
        const zero_life *touch = &run->engine.runner.touched[id];
        if (b->class != ZERO_CLASS_KEPT || b->space == ZERO_SPACE_FILE) continue;
        assert_int_equal(touch->first, b->first);
        assert_int_equal(touch->last, b->last);
    }
}

static void check_memory(test_run *run, outcome *o)
{
    zero_peak planned, measured;
    assert_ok(zero_runner_memory(&run->engine.runner, &planned, &measured));
    assert_memory_equal(&planned, &measured, sizeof planned);
    o->kept = measured.of_class[ZERO_CLASS_KEPT];
    expect_lives(run);
}

static void expect_traffic(const test_run *run, zero_op op, int64_t bytes)
{
    zero_traffic planned = zero_engine_planned_traffic(&run->engine, op), moved;
    zero_duration spent;
    zero_engine_measured_traffic(&run->engine, op, &moved, &spent);
    assert_memory_equal(&planned, &moved, sizeof planned);
    if (bytes >= 0) assert_true(zero_traffic_total(&moved).bytes_sent == bytes);
}

/* The bytes that all COLLECTs send; -1: not known here, as the TP group is on several nodes. */
static int64_t collected(const test_run *run)
{
    const zero_schedule *s = &run->engine.schedule;
    const zero_plan_input *in = &s->input;
    int64_t steps = run->engine.runner.walks[ZERO_PROGRAM_STEP];
    int64_t elements = in->micro_batch * in->seq * shape.hidden;
    double one = zero_formula_exchanged(elements, in->model->share.ranks);
    bool shares = zero_schedule_join_shares(s);
    if (shares && zero_schedule_tp_layout(s)->n_nodes > 1) return -1;
    if (shares && !in->offload_activations) return 0;
    return 4 * steps * in->accumulation * shape.layers * (int64_t)one;
}

/* The file has the pieces of all kept outputs but the last one, each in whole pages. */
static void expect_file(const test_run *run)
{
    const zero_schedule *s = &run->engine.schedule;
    const zero_plan_input *in = &s->input;
    zero_file_ledger l = zero_runner_file_ledger(&run->engine.runner);
    int64_t piece = in->micro_batch * in->seq * shape.hidden / in->model->share.ranks;
    size_t bytes = (size_t)(shape.layers - 1) * zero_offload_padded((size_t)piece * 4);
    assert_true(zero_file_ledger_is_as_planned(&l));
    assert_true(zero_offload_bytes(s, ZERO_CLASS_KEPT) == bytes);
}

static outcome train(const test_setup *setup)
{
    test_run run;
    outcome o;
    memset(&o, 0, sizeof o);
    test_run_open(&run, setup, test_size);
    o.out = test_run_outcome(&run);
    check_memory(&run, &o);
    expect_traffic(&run, ZERO_OP_JOIN, -1);
    if (setup->plan.partition_activations)
        expect_traffic(&run, ZERO_OP_COLLECT, collected(&run));
    if (setup->plan.partition_activations && setup->plan.offload_activations)
        expect_file(&run);
    test_run_close(&run);
    return o;
}

static void check(const test_setup *setup)
{
    test_setup twin = *setup;
    twin.directory = NULL;
    twin.plan.offload = ZERO_OFFLOAD_OFF;
    twin.plan.offload_activations = 0;
    twin.plan.partition_activations = 0;
    outcome want = train(&twin), got = train(setup);
    test_expect_outcome(setup, &got.out, &want.out);
    int64_t elements = setup->plan.micro_batch * shape.seq * shape.hidden;
    assert_all(want.kept == (size_t)(4 * shape.layers * elements));
    if (!setup->plan.offload_activations)
        assert_all(got.kept == want.kept / (size_t)setup->tp);
}

/* The routes of a TP group: messages, one node's memory, and both. */
static test_setup setup_of(int tp, int variant)
{
    static const struct {
        zero_algorithm algorithm;
        int nodes; /* 0: one for each TP group */
    } routes[] = {{ZERO_ALGORITHM_P2P, 1},
                  {ZERO_ALGORITHM_SHM, 1},
                  {ZERO_ALGORITHM_HIER, 0},
                  {ZERO_ALGORITHM_HIER, 2}};
    test_setup setup = test_standard;
    int route = variant % 4;
    setup.shape = shape;
    setup.tp = tp;
    setup.slices = tp;
    setup.fake_nodes = routes[route].nodes > 0 ? routes[route].nodes : test_size / tp;
    setup.plan = (zero_plan_input){
        .stage = variant / 4 % ZERO_STAGE_COUNT,
        .type = (zero_type)(variant % 3),
        .micro_batch = 1 + variant % 2,
        .accumulation = 1 + variant / 2 % 2,
        .collectives = routes[route].algorithm,
        .bucket = variant % 5 == 0 ? 2048 : 1 << 20,
        .serial = variant % 7 == 3,
        .recompute = true,
        .partition_activations = 1,
        .prefetch = 1,
        .check_replicas = 1,
    };
    return setup;
}

TEST(pieces_have_the_bits_of_wholes)
{
    for (int tp = 2; tp <= 4 && tp <= test_size; tp++)
        for (int variant = tp % 3; variant < 16 && test_size % tp == 0; variant += 3) {
            test_setup setup = setup_of(tp, variant);
            check(&setup);
        }
}

TEST(pieces_in_a_file_have_them_too)
{
    for (int tp = 2; tp <= 4 && tp <= test_size; tp++)
        for (int variant = tp % 3; variant < 12 && test_size % tp == 0; variant += 3) {
            test_setup setup = setup_of(tp, variant);
            setup.directory = test_place;
            setup.plan.offload = variant % 2 ? ZERO_OFFLOAD_LAZY : ZERO_OFFLOAD_END;
            setup.plan.offload_depth = 2;
            setup.plan.offload_activations = 1;
            check(&setup);
        }
}
