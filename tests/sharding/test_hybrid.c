/* Hybrid sharding: groups cut over R of N_d ranks, with replicas that add their sums; and
 * parameters that stay in node memory. */
#include "nn/shape.h"
#include "sharding/checks.h"
#include "sharding/formula.h"
#include "support/planned.h"
#include "support/random_shards.h"
#include "support/schedule_laws.h"
#include "support/share.h"

static const zero_shape shape = {
    .layers = 2, .hidden = 24, .heads = 3, .seq = 17, .vocab = 50};

/* ---- at random ---- */

static void draw_file(zero_plan_input *input, uint64_t *random)
{
    if (made_draw(random, 3) != 0) return;
    random_offload(input, random);
    bool is_delayed = input->offload == ZERO_OFFLOAD_DELAYED;
    input->offload_parameters = input->stage == 3 && !is_delayed && made_draw(random, 2);
    input->offload_activations = input->recompute && made_draw(random, 2);
}

/* A rank's part of a model that 1 to 4 ranks of a TP group share, or a whole one. */
static void draw_share(zero_model *model, uint64_t *random)
{
    int ranks = 1 << made_draw(random, 3);
    if (made_draw(random, 4) != 0) return;
    made_share(model, (zero_share){ranks, made_draw(random, ranks), 2 * ranks});
}

TEST(any_model_keeps_all_laws)
{
    for (uint64_t trial = 0; trial < 1000; trial += TEST_SHARE(5)) {
        uint64_t random = trial + 50000;
        int nodes;
        zero_model model = made_random(&random);
        draw_share(&model, &random);
        zero_plan_input input = random_plan(&model, &random, &nodes);
        random_shards(&input, &random, &nodes);
        draw_file(&input, &random);
        laws_check_plan(input, nodes);
        zero_model_destroy(&model);
    }
}

/* ---- all ranks ---- */

static void assert_same(const zero_schedule *a, const zero_schedule *b)
{
    assert_int_equal(a->n_buffers, b->n_buffers);
    assert_memory_equal(a->buffers, b->buffers, (size_t)a->n_buffers * sizeof *a->buffers);
    for (int kind = 0; kind < ZERO_PROGRAMS; kind++) {
        const zero_program *x = &a->programs[kind], *y = &b->programs[kind];
        assert_int_equal(x->length, y->length);
        for (int at = 0; at < x->length; at++)
            assert_memory_equal(&x->code[at], &y->code[at], sizeof x->code[at]);
    }
    assert_memory_equal(a->groups, b->groups,
                        (size_t)a->input.model->n_groups * sizeof *a->groups);
    assert_int_equal(a->own_bytes, b->own_bytes);
    assert_int_equal(a->window_bytes, b->window_bytes);
}

TEST(as_many_shards_as_ranks_change_nothing)
{
    for (uint64_t trial = 0; trial < 300; trial += TEST_SHARE(5)) {
        uint64_t random = trial + 70000;
        int nodes;
        zero_model model = made_random(&random);
        zero_plan_input input = random_plan(&model, &random, &nodes);
        schedule_job plain, all;
        job_open(&plain, input, nodes);
        input.shard_ranks = input.n_ranks;
        job_open(&all, input, nodes);
        for (int r = 0; r < input.n_ranks; r++) assert_same(&plain.s[r], &all.s[r]);
        job_close(&plain);
        job_close(&all);
        zero_model_destroy(&model);
    }
}

/* ---- refusals ---- */

static void assert_spread_refused(zero_plan_input input, int nodes, const char *text)
{
    zero_layout layout;
    assert_ok(zero_layout_init_blocks(&layout, input.n_ranks, nodes));
    input.layout = &layout;
    assert_refused(input, text);
    zero_layout_destroy(&layout);
}

/* A plan of 12 ranks, 4 of which shard together, with one number changed. */
#define CHANGED(field, value) \
    (input = job_input(&model, 3, 12), input.shard_ranks = 4, input.field = (value), input)

TEST(shards_that_cannot_be_are_refused)
{
    zero_plan_input input;
    zero_model model = built(&shape);
    const char *all =
        "expected a power of two that divides them, or all of them: 1, 2, 4, 12";
    assert_refused(CHANGED(shard_ranks, 3), all);
    assert_refused(CHANGED(shard_ranks, 8), all);
    assert_refused(CHANGED(shard_ranks, 24), all);
    assert_refused(CHANGED(shard_ranks, -1), all);
    assert_refused(CHANGED(partition, ZERO_PARTITION_OWNER), "with --partition owner");
    assert_refused(CHANGED(device, 1), "with --device");
    assert_refused(CHANGED(bucket, 100), "--bucket 100 is below the");
    input = job_input(&model, 1, 8);
    input.shard_ranks = 1; /* with one rank a REDUCE needs no staging */
    input.bucket = 100;
    assert_refused(input, "a sum among 8 replicas needs");
    input = job_input(&model, 1, 6);
    input.shard_ranks = 2;
    input.collectives = ZERO_ALGORITHM_HIER;
    assert_spread_refused(input, 2, "put a multiple of 2 ranks on each node");
    zero_model_destroy(&model);
}

TEST(parameters_without_node_memory_are_refused)
{
    zero_model model = built(&shape);
    zero_plan_input input = job_input(&model, 3, 4);
    input.node_parameters = 1;
    assert_refused(input, "use --collectives auto, shm or hier");
    input.collectives = ZERO_ALGORITHM_MPI;
    assert_spread_refused(input, 2, "use --collectives auto, shm or hier");
    input.collectives = ZERO_ALGORITHM_HIER;
    assert_spread_refused(input, 4,
                          "share a node's memory: put several of them on each node");
    input.partition = ZERO_PARTITION_OWNER;
    assert_spread_refused(input, 2, "use --partition slice");
    input.partition = ZERO_PARTITION_SLICE;
    for (input.stage = 0; input.stage < 3; input.stage++)
        assert_spread_refused(input, 2, "needs --stage 3");
    input.device = 1;
    assert_spread_refused(input, 2, "--node-parameters with --device");
    zero_model_destroy(&model);
}

/* ---- bytes ---- */

static size_t of_class(const zero_schedule *s, zero_class cls)
{
    return s->class_peak[cls];
}

/* States are those of R ranks; replicas move 2 (K-1)/K of a shard for each REDUCE. */
static void check_bytes(const schedule_job *job)
{
    const zero_schedule *s = &job->s[0];
    const zero_plan_input *in = &s->input;
    int R = in->shard_ranks, K = in->n_ranks / R;
    int64_t psi = laws_padded(s);
    double states =
        (double)(of_class(s, ZERO_CLASS_PARAMETERS) + of_class(s, ZERO_CLASS_GRADIENTS) +
                 of_class(s, ZERO_CLASS_OPTIMIZER));
    assert_true(states == zero_formula_state_bytes(psi, R, in->stage, in->type));
    zero_traffic t = zero_schedule_traffic(s, ZERO_PROGRAM_STEP, ZERO_OP_ALL_REDUCE);
    zero_volume v = zero_traffic_total(&t);
    double times = zero_formula_reductions(in->stage, in->accumulation);
    assert_true((double)v.bytes_sent == 4 * times * zero_formula_all_reduced(psi, R, K));
    assert_true((double)v.bytes_sent == 4 * times * 2 * (K - 1) * ((double)psi / R / K));
    assert_true(v.bytes_received == v.bytes_sent);
}

TEST(bytes_are_those_of_the_formula)
{
    for (uint64_t trial = 0; trial < 64; trial++) {
        uint64_t random = trial;
        zero_model model = made_random(&random);
        zero_plan_input input = job_input(&model, (int)(trial % 4), trial % 3 ? 8 : 6);
        input.shard_ranks = 1 << made_draw(&random, 2);
        input.type = (zero_type)made_draw(&random, 3);
        schedule_job job, all;
        job_open(&job, input, input.n_ranks);
        check_bytes(&job);
        input.shard_ranks = 0;
        job_open(&all, input, input.n_ranks);
        assert_true(laws_padded(&all.s[0]) == laws_padded(&job.s[0]));
        job_close(&all);
        job_close(&job);
        zero_model_destroy(&model);
    }
}

/* Shards of neighbours stay within a node; only replicas send across. */
TEST(only_replicas_send_across_nodes)
{
    static const zero_op within[] = {ZERO_OP_REDUCE, ZERO_OP_GATHER};
    zero_model model = built(&shape);
    for (int stage = 0; stage < 4; stage++) {
        schedule_job job;
        zero_plan_input input = job_input(&model, stage, 8);
        input.shard_ranks = 2;
        job_open(&job, input, 4);
        for (int r = 0; r < 8; r++) {
            const zero_schedule *s = &job.s[r];
            for (int k = 0; k < 2; k++) {
                zero_traffic t = zero_schedule_traffic(s, ZERO_PROGRAM_STEP, within[k]);
                assert_true(t.bytes_sent[ZERO_ACROSS] == 0 &&
                            t.bytes_sent[ZERO_INSIDE] > 0);
            }
            zero_traffic t =
                zero_schedule_traffic(s, ZERO_PROGRAM_STEP, ZERO_OP_ALL_REDUCE);
            assert_true(t.bytes_sent[ZERO_INSIDE] == 0 && t.bytes_sent[ZERO_ACROSS] > 0);
        }
        job_close(&job);
    }
    zero_model_destroy(&model);
}

/* In 16 bits a shard's sum waits in fp32 for its replicas: one is reduced, one added up. */
static void check_sums_in_flight(const zero_schedule *s)
{
    const zero_program *p = &s->programs[ZERO_PROGRAM_STEP];
    int most = 0;
    for (int at = 0; at < p->length; at++) {
        int n = 0;
        for (int id = 0; id < s->n_buffers; id++) {
            const zero_buffer *b = &s->buffers[id];
            bool is_alive =
                zero_buffer_is_of(b, ZERO_PROGRAM_STEP) && b->first <= at && at <= b->last;
            n += is_alive && b->class == ZERO_CLASS_IN_FLIGHT &&
                 b->bytes == (size_t)laws_padded(s) / 6 / 4 * sizeof(float);
        }
        most = n > most ? n : most;
    }
    assert_int_equal(most, s->input.serial ? 1 : 2);
}

TEST(at_most_two_sums_wait_for_replicas)
{
    enum { UNITS = 6 }; /* all of one size */
    int64_t n_params[UNITS];
    made_unit units[UNITS];
    for (int u = 0; u < UNITS; u++) {
        n_params[u] = 64 * 64;
        units[u] = (made_unit){
            .n_groups = 1, .groups = {u}, .sizes = {.out = 1, .row_loss = u == UNITS - 1}};
    }
    zero_model model = made_model(UNITS, n_params, UNITS, units);
    for (int bits = 0; bits < 8; bits++) {
        schedule_job job;
        zero_plan_input input = job_input(&model, bits % 4, 8);
        input.type = ZERO_BF16;
        input.shard_ranks = 4;
        input.serial = bits / 4;
        job_open(&job, input, 8);
        for (int r = 0; r < 8; r++) check_sums_in_flight(&job.s[r]);
        job_close(&job);
    }
    zero_model_destroy(&model);
}

/* ---- node memory ---- */

/* 2 nodes of 2 ranks: a step gathers each group once, for any M, and a rank pays half of
 * them all. */
TEST(a_step_gathers_each_group_once)
{
    zero_model model = built(&shape);
    for (int bits = 0; bits < 48; bits++) {
        schedule_job job;
        zero_plan_input input = job_input(&model, 3, 4);
        input.accumulation = 1 + bits % 3;
        input.prefetch = bits / 3 % 2;
        input.recompute = bits / 6 % 2;
        input.type = bits / 12 % 2 ? ZERO_BF16 : ZERO_FP32;
        input.persist = bits / 24 ? 100 : 0;
        input.collectives = ZERO_ALGORITHM_HIER;
        input.node_parameters = 1;
        job_open(&job, input, 2);
        const zero_schedule *s = &job.s[3];
        size_t all = 0;
        for (int g = 0; g < model.n_groups; g++) {
            assert_int_equal(laws_count(s, ZERO_PROGRAM_STEP, ZERO_OP_GATHER, g), 1);
            all += (size_t)s->groups[g].partition.padded * zero_type_size(input.type);
        }
        assert_true(of_class(s, ZERO_CLASS_GATHERED) == all / 2);
        laws_check(&job);
        job_close(&job);
    }
    zero_model_destroy(&model);
}

/* Parameters come from the file once, too. */
TEST(a_step_reads_parameters_of_the_file_once)
{
    zero_model model = built(&shape);
    for (int place = ZERO_OFFLOAD_END; place < ZERO_OFFLOAD_DELAYED; place++) {
        schedule_job job;
        zero_plan_input input = job_input(&model, 3, 4);
        input.accumulation = 2;
        input.collectives = ZERO_ALGORITHM_HIER;
        input.node_parameters = 1;
        input.offload = (zero_offload)place;
        input.offload_depth = 2;
        input.offload_parameters = 1;
        job_open(&job, input, 2);
        for (int g = 0; g < model.n_groups; g++)
            assert_int_equal(
                laws_count(&job.s[1], ZERO_PROGRAM_STEP, ZERO_OP_FETCH_PARAM, g), 1);
        laws_check(&job);
        job_close(&job);
    }
    zero_model_destroy(&model);
}

/* ---- copies ---- */

static zero_copies copies(zero_plan_input input, int nodes, zero_array array)
{
    schedule_job job;
    job_open(&job, input, nodes);
    zero_copies kind = zero_copies_of(&job.s[0], 0, array);
    assert_true(kind == ZERO_COPIES_NONE || zero_has_copies(&job.s[0], kind));
    job_close(&job);
    return kind;
}

TEST(all_that_is_held_is_held_by_replicas)
{
    zero_model model = built(&shape);
    for (int stage = 0; stage < 4; stage++)
        for (int shm = 0; shm < 2; shm++) {
            zero_plan_input input = job_input(&model, stage, 4);
            input.shard_ranks = 2;
            input.collectives = shm ? ZERO_ALGORITHM_SHM : ZERO_ALGORITHM_P2P;
            zero_copies whole =
                shm && stage > 0 ? ZERO_COPIES_OF_NODES : ZERO_COPIES_OF_RANKS;
            zero_copies state_of =
                stage > 0 ? ZERO_COPIES_OF_REPLICAS : ZERO_COPIES_OF_RANKS;
            assert_int_equal(copies(input, 1, ZERO_ARRAY_PARAMETERS),
                             stage == 3 ? ZERO_COPIES_OF_REPLICAS : whole);
            assert_int_equal(copies(input, 1, ZERO_ARRAY_STATES), state_of);
            assert_int_equal(copies(input, 1, ZERO_ARRAY_MASTERS), ZERO_COPIES_NONE);
            input.type = ZERO_BF16;
            assert_int_equal(copies(input, 1, ZERO_ARRAY_MASTERS), state_of);
            bool masters_say_it = stage == 0 || stage == 3;
            assert_int_equal(copies(input, 1, ZERO_ARRAY_PARAMETERS),
                             masters_say_it ? ZERO_COPIES_NONE : whole);
        }
    zero_model_destroy(&model);
}

/* Two words, whatever there is to compare. */
TEST(comparing_replicas_as_well_takes_no_other_message)
{
    zero_model model = built(&shape);
    zero_plan_input input = job_input(&model, 2, 4);
    input.check_replicas = 1;
    int64_t sent[2];
    for (int hybrid = 0; hybrid < 2; hybrid++) {
        schedule_job job;
        input.shard_ranks = hybrid ? 2 : 4;
        job_open(&job, input, 2);
        zero_traffic t = zero_schedule_compare_traffic(&job.s[3]);
        sent[hybrid] = zero_traffic_total(&t).bytes_sent;
        job_close(&job);
    }
    assert_true(sent[0] == 3 * 16 && sent[1] == sent[0]);
    zero_model_destroy(&model);
}
