/* zero_simulate: its times against the alpha-beta model, its accounts, and its refusals. */
#include "support/simulate_job.h"

#include "base/fail.h"

/* Large enough that small messages, which the plan leaves out, take less than 0.1 % of a step. */
static zero_model the_model(void)
{
    return simulate_gpt2(4, 512);
}

static zero_plan_input plan_of(const zero_model *model, int stage, int n_ranks)
{
    zero_plan_input in = zero_plan_input_standard(model, n_ranks, 0);
    in.stage = stage;
    in.micro_batch = 4;
    return in;
}

static double ratio_of(const simulate_job *job)
{
    zero_simulated r = simulate_run(job);
    return r.step / r.plan.step;
}

static void check_ratio(zero_plan_input in, int nodes, double least, double most)
{
    simulate_job job;
    simulate_open(&job, in, nodes);
    if (in.offload) job.input.machine.disk_read = job.input.machine.disk_write = 1e9;
    double ratio = ratio_of(&job);
    if (ratio < least || ratio > most) {
        zero_simulated r = simulate_run(&job);
        fail_msg("stage %d on %d nodes: simulated %.9f s, planned %.9f s: ratio %.6f",
                 in.stage, nodes, r.step, r.plan.step, ratio);
    }
    simulate_close(&job);
}

TEST(a_step_takes_the_planned_time)
{
    zero_model model = the_model();
    for (int stage = 0; stage < 4; stage++)
        check_ratio(plan_of(&model, stage, 8), 8, 0.998, 1.002);
    zero_model_destroy(&model);
}

/* These options change the program, and put nothing on a link that the plan does not know of. */
TEST(so_does_a_step_of_every_kind)
{
    zero_model model = the_model();
    for (int stage = 0; stage < 4; stage++) {
        zero_plan_input in = plan_of(&model, stage, 8);
        in.accumulation = 3;
        check_ratio(in, 8, 0.998, 1.002);
        in.accumulation = 1;
        in.recompute = true;
        check_ratio(in, 8, 0.998, 1.002);
        in.serial = true;
        check_ratio(in, 8, 0.998, 1.002);
        in.type = ZERO_BF16;
        check_ratio(in, 8, 0.998, 1.002);
    }
    zero_model_destroy(&model);
}

/* A disk may belong to one rank, or to four ranks of a node. */
TEST(so_does_a_step_beside_a_disk)
{
    zero_model model = the_model();
    for (int stage = 0; stage < 4; stage++)
        for (int nodes = 2; nodes <= 8; nodes *= 4) {
            zero_plan_input in = plan_of(&model, stage, 8);
            in.offload = ZERO_OFFLOAD_END;
            check_ratio(in, nodes, 0.99, 1.01);
            in.offload = ZERO_OFFLOAD_LAZY;
            check_ratio(in, nodes, 0.99, 1.01);
            in.offload = ZERO_OFFLOAD_BACKWARD;
            check_ratio(in, nodes, 0.99, 1.01);
            in.recompute = true;
            in.offload_activations = 1;
            in.offload_parameters = stage == 3;
            check_ratio(in, nodes, 0.99, 1.01);
        }
    zero_model_destroy(&model);
}

/* Shard groups on one node each, or all ranks on nodes of their own. In a window ranks wait for
 * their neighbours' phases, which a plan does not know. */
TEST(so_does_a_step_of_replicas)
{
    zero_model model = the_model();
    for (int stage = 0; stage < 4; stage++)
        for (int R = 2; R <= 4; R *= 2) {
            zero_plan_input in = plan_of(&model, stage, 8);
            in.shard_ranks = R;
            check_ratio(in, 8, 0.998, 1.005);
            check_ratio(in, 8 / R, 0.998, 1.005);
            in.collectives = ZERO_ALGORITHM_HIER;
            check_ratio(in, 8 / R, 0.998, 1.02);
        }
    zero_model_destroy(&model);
}

TEST(so_does_a_step_of_tp_groups)
{
    zero_model whole = the_model();
    for (int stage = 0; stage < 4; stage++)
        for (int tp = 2; tp <= 4; tp *= 2) {
            zero_model model;
            assert_ok(zero_model_share(&whole, (zero_share){tp, 0, tp}, &model));
            zero_plan_input in = plan_of(&model, stage, 4);
            check_ratio(in, 4, 0.998, 1.005);
            in.recompute = true;
            in.partition_activations = 1;
            check_ratio(in, 4, 0.998, 1.005);
            zero_model_destroy(&model);
        }
    zero_model_destroy(&whole);
}

/* Chains of broadcasts take longer than their bytes: they fill. */
TEST(owners_take_little_more)
{
    zero_model model = the_model();
    for (int stage = 0; stage < 4; stage++) {
        zero_plan_input in = plan_of(&model, stage, 8);
        in.partition = ZERO_PARTITION_OWNER;
        check_ratio(in, 8, 0.99, 1.1);
    }
    zero_model_destroy(&model);
}

/* ---- accounts ---- */

static double sum_of(const zero_simulated_rank *r)
{
    return r->compute + r->sums + r->exposed + r->waiting + r->disk;
}

static void check_account(const zero_simulated_rank *r)
{
    assert_true(fabs(sum_of(r) - r->step) <= 1e-9 * r->step);
}

/* The links are fast enough to hide all but the start and the end, so a step grows as the slow
 * rank's computing does. */
TEST(a_slow_rank_is_named)
{
    zero_model model = the_model();
    for (int stage = 0; stage < 4; stage++) {
        simulate_job job;
        simulate_open(&job, plan_of(&model, stage, 8), 8);
        zero_simulated usual = simulate_run(&job);
        job.input.n_slow = 1;
        job.input.slow[0] = (zero_slow_rank){.rank = 5, .factor = 0.8};
        zero_simulated slow = simulate_run(&job);
        assert_int_equal(slow.slowest, 5);
        double times = slow.step / usual.step;
        if (times < 1.2 || times > 1.25) fail_msg("stage %d: %.4f times", stage, times);
        check_account(&slow.of_slowest);
        check_account(&slow.mean);
        assert_true(slow.mean.waiting > 5 * slow.of_slowest.waiting);
        assert_true(fabs(slow.of_slowest.compute - 1.25 * slow.plan.compute) <=
                    1e-9 * slow.plan.compute);
        simulate_close(&job);
    }
    zero_model_destroy(&model);
}

/* ---- spans ---- */

typedef struct {
    const zero_program *p;
    double end[8]; /* of each rank's last span */
    double last;   /* of all spans */
    int n[8];
    double sum; /* of all numbers: two runs must agree on it */
} span_reader;

static void read_span(void *arg, const zero_simulated_span *span)
{
    span_reader *r = arg;
    assert_in_range(span->rank, 0, 7);
    assert_true(span->instruction == &r->p->code[r->n[span->rank]++]);
    assert_true(span->begin >= 0.0 && span->end >= span->begin);
    assert_true(span->waited >= 0.0 && span->waited <= span->end - span->begin + 1e-12);
    assert_true(span->end >= r->last);
    if (r->n[span->rank] > 1) assert_true(span->begin == r->end[span->rank]);
    r->end[span->rank] = r->last = span->end;
    r->sum += span->begin + 3.0 * span->end + 7.0 * span->waited * span->rank;
}

TEST(each_instruction_is_one_span)
{
    zero_model model = the_model();
    for (int stage = 0; stage < 4; stage++) {
        simulate_job job;
        simulate_open(&job, plan_of(&model, stage, 8), 8);
        span_reader readers[2];
        for (int k = 0; k < 2; k++) {
            readers[k] = (span_reader){.p = &job.s.programs[ZERO_PROGRAM_STEP]};
            job.input.span = read_span;
            job.input.arg = &readers[k];
            (void)simulate_run(&job);
            for (int r = 0; r < 8; r++)
                assert_int_equal(readers[k].n[r], readers[k].p->length);
        }
        assert_true(readers[0].sum == readers[1].sum);
        simulate_close(&job);
    }
    zero_model_destroy(&model);
}

/* ---- the same twice ---- */

static void assert_same_rank(const zero_simulated_rank *a, const zero_simulated_rank *b)
{
    assert_memory_equal(a, b, sizeof *a); /* doubles alone: no holes */
}

TEST(two_runs_are_equal)
{
    zero_model model = the_model();
    simulate_job job;
    zero_plan_input in = plan_of(&model, 3, 8);
    in.collectives = ZERO_ALGORITHM_HIER;
    simulate_open(&job, in, 2);
    job.input.memory_bandwidth = 50e9;
    job.input.poll = 1e-4;
    job.input.n_slow = 1;
    job.input.slow[0] = (zero_slow_rank){.rank = 3, .factor = 0.9};
    zero_simulated a = simulate_run(&job), b = simulate_run(&job);
    assert_true(a.step == b.step && a.slowest == b.slowest);
    assert_same_rank(&a.of_slowest, &b.of_slowest);
    assert_same_rank(&a.mean, &b.mean);
    assert_true(a.busiest.kind == b.busiest.kind && a.busiest.which == b.busiest.which);
    assert_true(a.busiest.busy == b.busiest.busy && a.busiest.bytes == b.busiest.bytes);
    assert_true(a.messages == b.messages && a.events == b.events);
    assert_true(a.of_slowest.sums > 0.0);
    simulate_close(&job);
    zero_model_destroy(&model);
}

/* ---- polls, arithmetic ---- */

/* A look that comes late delays what others wait for, never the other way round. */
TEST(polls_and_sums_take_time)
{
    zero_model model = the_model();
    simulate_job job;
    simulate_open(&job, plan_of(&model, 3, 8), 8);
    job.input.machine.bandwidth = 1e9;
    double at_once = simulate_run(&job).step;
    job.input.poll = 1.0;
    assert_true(simulate_run(&job).step > at_once);
    job.input.poll = 0.0;
    job.input.memory_bandwidth = 10e9;
    zero_simulated r = simulate_run(&job);
    assert_true(r.step > at_once && r.of_slowest.sums > 0.0);
    check_account(&r.of_slowest);
    simulate_close(&job);
    zero_model_destroy(&model);
}

/* ---- the table of work ---- */

/* A wait that the table does not know would take no time, in a plan and here. */
TEST(every_wait_waits)
{
    for (int op = 0; op < ZERO_OP_KINDS; op++) {
        zero_op_row work = zero_ops[op];
        bool waits =
            work.kind == ZERO_WORK_EXCHANGE_WAIT || work.kind == ZERO_WORK_TRANSFER_WAIT;
        assert_int_equal(waits, strstr(zero_op_name((zero_op)op), "_WAIT") != NULL);
        if (work.kind != ZERO_WORK_EXCHANGE_WAIT) continue;
        zero_op_row begin = zero_ops[work.begun_by];
        assert_int_equal(begin.kind, ZERO_WORK_EXCHANGE);
        assert_int_equal(begin.among, work.among);
    }
}

/* ---- refusals ---- */

static void refused(const simulate_job *job, zero_status st, const char *word)
{
    zero_simulated out;
    assert_int_equal(zero_simulate(&job->s, &job->input, &out), st);
    assert_told(word);
}

TEST(what_would_take_too_much_is_refused)
{
    zero_model model = the_model();
    simulate_job job;
    zero_plan_input in = plan_of(&model, 3, 16384);
    in.bucket = 1 << 22;
    simulate_open(&job, in, 2048);
    refused(&job, ZERO_ERR_INVALID, "--collectives hier");
    job.input.most_messages = INT64_MAX;
    job.input.memory_limit = 1000000;
    refused(&job, ZERO_ERR_INVALID, "--memory-limit");
    simulate_close(&job);
    zero_model_destroy(&model);
}

TEST(what_cannot_be_simulated_is_refused)
{
    zero_model model = the_model();
    simulate_job job;
    zero_plan_input in = plan_of(&model, 1, 4);
    in.collectives = ZERO_ALGORITHM_MPI;
    simulate_open(&job, in, 4);
    refused(&job, ZERO_ERR_UNSUPPORTED, "--collectives mpi");
    simulate_close(&job);
    in.collectives = ZERO_ALGORITHM_P2P;
    in.device = 1;
    simulate_open(&job, in, 4);
    refused(&job, ZERO_ERR_UNSUPPORTED, "--device");
    simulate_close(&job);
    in.device = 0;
    simulate_open(&job, in, 4);
    job.input.steps = 1;
    refused(&job, ZERO_ERR_INVALID, "1 steps");
    job.input.steps = 2;
    job.input.n_slow = 1;
    job.input.slow[0] = (zero_slow_rank){.rank = 4, .factor = 1.0};
    refused(&job, ZERO_ERR_INVALID, "rank 4");
    simulate_close(&job);
    zero_model_destroy(&model);
}
