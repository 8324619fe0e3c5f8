/* The compiled programs: their order, and where their memory lies. What they compute, a run shows
 * (engine/test_any_run.c). */
#include "support/program_text.h"
#include "support/schedule_laws.h"

#include "nn/shape.h"
#include "support/made_model.h"
#include "support/planned.h"
#include "support/random_plan.h"

/* ---- a real model ---- */

static const zero_shape shapes[] = {
    {.layers = 1, .hidden = 4, .heads = 1, .seq = 3, .vocab = 5},
    {.layers = 2, .hidden = 24, .heads = 3, .seq = 17, .vocab = 50},
    {.layers = 3, .hidden = 8, .heads = 2, .seq = 9, .vocab = 4099},
};

/* The row of a stage agrees with the memory that its file holds. */
TEST(stages_hold_what_their_rows_say)
{
    zero_model model = built(&shapes[1]);
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++) {
        const zero_stage *row = zero_stage_at(stage);
        zero_plan_input input = job_input(&model, stage, 4);
        zero_schedule s = compiled(&input);
        for (int g = 0; g < model.n_groups; g++) {
            assert_int_equal(s.groups[g].param_held, row->parameters);
            assert_int_equal(s.groups[g].grad_held, row->gradients);
            assert_int_equal(s.groups[g].optimizer_held, row->optimizer);
        }
        assert_string_equal(zero_stage_words(stage), row->words);
        zero_schedule_destroy(&s);
    }
    assert_null(zero_stage_words(-1));
    assert_null(zero_stage_words(ZERO_STAGE_COUNT));
    zero_model_destroy(&model);
}

/* ---- places ---- */

static void check_gaps(zero_plan_input input)
{
    for (input.stage = 0; input.stage < ZERO_STAGE_COUNT; input.stage++) {
        zero_schedule s = compiled(&input);
        if ((double)s.own_bytes > 1.01 * (double)s.peak_bytes)
            fail_msg("stage %d: arena %zu, peak %zu", input.stage, s.own_bytes,
                     s.peak_bytes);
        zero_schedule_destroy(&s);
    }
}

static void check_gaps_of_preset(const char *name)
{
    zero_model model = built_preset(name);
    for (int bits = 0; bits < 8; bits++) {
        zero_plan_input input = job_input(&model, 0, 8);
        input.type = ZERO_BF16;
        input.seq = model.seq;
        input.bucket = 1 << 20;
        input.micro_batch = 4;
        input.recompute = bits & 1;
        input.reproducible = bits & 2;
        input.accumulation = bits & 4 ? 4 : 1;
        check_gaps(input);
    }
    zero_model_destroy(&model);
}

/* Without a window the arena holds everything. */
TEST(gaps_are_at_most_a_percent_of_memory)
{
    check_gaps_of_preset("gpt2");
    check_gaps_of_preset("gpt2-medium");
    check_gaps_of_preset("gpt2-xl");
}

/* Programs of more than 10,000 buffers are placed one by one. */
TEST(buffers_of_large_programs_do_not_overlap)
{
    zero_shape shape = {.layers = 90, .hidden = 64, .heads = 2, .seq = 8, .vocab = 300};
    zero_model model = built(&shape);
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage += 3) {
        zero_plan_input input = job_input(&model, stage, 4);
        input.accumulation = 32;
        input.recompute = stage % 2;
        zero_schedule s = compiled(&input);
        assert_true(s.n_buffers > 10000);
        laws_check_places(&s);
        assert_true((double)s.own_bytes <= 1.1 * (double)s.peak_bytes);
        zero_schedule_destroy(&s);
    }
    zero_model_destroy(&model);
}

/* ---- the order of design.md ---- */

static zero_model three_units(void)
{
    static const int64_t n_params[] = {100, 200, 300};
    made_unit units[3];
    for (int u = 0; u < 3; u++)
        units[u] = (made_unit){.n_groups = 1,
                               .groups = {u},
                               .sizes = {.out = 1, .saved = 1, .row_loss = u / 2}};
    return made_model(3, n_params, 3, units);
}

TEST(programs_read_as_their_files_say)
{
    static const char *const steps[] = {
        "LOAD, FORWARD 0, FORWARD 1, FORWARD 2, BACKWARD 2, REDUCE 2, BACKWARD 1, "
        "REDUCE_WAIT 2, GATHER 2, REDUCE 1, BACKWARD 0, REDUCE_WAIT 1, GATHER 1, REDUCE 0, "
        "REDUCE_WAIT 0, GATHER 0, GATHER_WAIT 2, GATHER_WAIT 1, GATHER_WAIT 0, LOSS, NORM "
        "0, "
        "NORM 1, NORM 2, OVERFLOW, UPDATE 0, UPDATE 1, UPDATE 2, ",
        "LOAD, GATHER_WAIT 0, FORWARD 0, GATHER_WAIT 1, FORWARD 1, GATHER_WAIT 2, FORWARD "
        "2, "
        "BACKWARD 2, REDUCE 2, BACKWARD 1, REDUCE_WAIT 2, REDUCE 1, NORM 2, BACKWARD 0, "
        "REDUCE_WAIT 1, REDUCE 0, NORM 1, REDUCE_WAIT 0, NORM 0, LOSS, OVERFLOW, UPDATE 0, "
        "GATHER 0, "
        "UPDATE 1, GATHER 1, UPDATE 2, GATHER 2, ",
        NULL,
        "LOAD, GATHER 0, GATHER_WAIT 0, GATHER 1, FORWARD 0, RELEASE 0, GATHER_WAIT 1, "
        "GATHER 2, FORWARD 1, RELEASE 1, GATHER_WAIT 2, FORWARD 2, GATHER 1, BACKWARD 2, "
        "RELEASE 2, REDUCE 2, GATHER_WAIT 1, GATHER 0, BACKWARD 1, RELEASE 1, REDUCE_WAIT "
        "2, "
        "REDUCE 1, NORM 2, GATHER_WAIT 0, BACKWARD 0, RELEASE 0, REDUCE_WAIT 1, REDUCE 0, "
        "NORM 1, REDUCE_WAIT 0, NORM 0, LOSS, OVERFLOW, UPDATE 0, UPDATE 1, UPDATE 2, ",
    };
    zero_model model = three_units();
    for (int stage = 0; stage <= 3; stage++) {
        schedule_job job;
        zero_plan_input input = job_input(&model, stage, 2);
        input.prefetch = 1;
        job_open(&job, input, 2);
        assert_program(&job.s[0], ZERO_PROGRAM_STEP, steps[stage == 2 ? 1 : stage]);
        job_close(&job);
    }
    zero_model_destroy(&model);
}

/* ---- models at random ---- */

/* Half of the plans whose ranks may reach their neighbours' devices do so. More slots of staging need a
 * larger bucket. */
static void reach_devices(zero_plan_input *input, int nodes, uint64_t *random)
{
    bool reads = input->collectives == ZERO_ALGORITHM_SHM ||
                 input->collectives == ZERO_ALGORITHM_HIER; /* neighbours' memory */
    input->ipc = input->device && reads && nodes < input->n_ranks && made_draw(random, 2);
    if (input->ipc) input->bucket = 9000;
}

TEST(any_model_keeps_all_laws)
{
    for (uint64_t trial = 0; trial < 2000; trial++) {
        uint64_t random = trial;
        int nodes;
        zero_model model = made_random(&random);
        zero_plan_input input = random_plan(&model, &random, &nodes);
        reach_devices(&input, nodes, &random);
        laws_check_plan(input, nodes);
        zero_model_destroy(&model);
    }
}

/* ---- sizes and refusals ---- */

/* 16 TB of model states, planned in little memory. */
TEST(a_model_of_10_to_the_12_parameters_is_compiled)
{
    zero_shape shape = {
        .layers = 128, .hidden = 25600, .heads = 160, .seq = 2048, .vocab = 50257};
    zero_model model = built(&shape);
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++) {
        zero_plan_input input = job_input(&model, stage, 1024);
        input.bucket = 1 << 17;
        input.accumulation = 4;
        input.type = ZERO_BF16;
        zero_schedule s = compiled(&input);
        laws_check_lifetimes(&s);
        laws_check_order(&s);
        assert_true(laws_padded(&s) >= model.n_params &&
                    model.n_params > INT64_C(1000000000000));
        zero_schedule_destroy(&s);
    }
    zero_model_destroy(&model);
}

/* A valid plan, with one number changed. */
#define CHANGED(field, value) \
    (input = job_input(&model, 3, 4), input.field = (value), input)

TEST(plans_that_make_no_sense_are_refused)
{
    zero_plan_input input;
    zero_model model = built(&shapes[0]);
    assert_refused(CHANGED(stage, ZERO_STAGE_COUNT), "a plan for stage");
    assert_refused(CHANGED(stage, -1), "expected a stage from 0 to");
    assert_refused(CHANGED(prefetch, -1), "prefetch -1");
    assert_refused(CHANGED(persist, -2), "persist -2");
    assert_refused(CHANGED(bucket, 100), "--bucket 100 is below the");
    assert_refused(CHANGED(bucket, 0), "buckets of 0 elements");
    assert_refused(CHANGED(micro_batch, INT64_MAX), "at most 2^24 tokens");
    assert_refused(CHANGED(seq, model.seq + 1), "the model takes 1 to");
    assert_refused(CHANGED(rank, 4), "a plan for rank 4 of 4");
    assert_refused(CHANGED(accumulation, 0), "each must be at least 1");
    assert_refused(CHANGED(accumulation, (1 << 17) + 1),
                   "expected at most 2^56 and 131072");
    assert_refused(CHANGED(n_ranks, 0), "a plan for 0 ranks");
    assert_refused(CHANGED(offload_host, 1), "lie in the host's memory already");
    zero_model_destroy(&model);
}

/* Their bytes would not fit 64 bits: 4 arrays of 2^62 bytes each. */
TEST(more_parameters_than_can_be_counted_in_bytes_are_refused)
{
    const int64_t n_params[] = {INT64_C(1) << 60};
    const made_unit unit = {
        .n_groups = 1, .groups = {0}, .sizes = {.out = 1, .row_loss = 1}};
    zero_model model = made_model(1, n_params, 1, &unit);
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++)
        assert_refused(job_input(&model, stage, 1), "expected at most 2^56");
    zero_model_destroy(&model);
}

TEST(reproducible_sums_need_powers_of_two_and_a_tree_of_ours)
{
    zero_model model = built(&shapes[0]);
    for (int stage = 0; stage < ZERO_STAGE_COUNT; stage++) {
        zero_plan_input input = job_input(&model, stage, 3);
        input.reproducible = true;
        assert_refused(input, "got 3 ranks x 1 microbatches");
        input.n_ranks = 4;
        input.accumulation = 6;
        assert_refused(input, "got 4 ranks x 6 microbatches");
        input.accumulation = 4;
        input.collectives = ZERO_ALGORITHM_MPI;
        assert_refused(input, "adds in an order of its own");
    }
    zero_model_destroy(&model);
}
