/* The plan of hybrid sharding: its ledger, and the clocks of a step whose shard groups have
 * a wire of their own within nodes. */
#include "nn/shape.h"
#include "nn/share.h"
#include "plan/plan.h"
#include "plan/plan_time.h"
#include "sharding/formula.h"
#include "sharding/schedule_exchange.h"
#include "support/made_model.h"
#include "support/planned.h"
#include "support/schedule_job.h"

/* Two units, each with a group of its own, and no time to compute. */
static zero_model two_groups(void)
{
    static const int64_t n_params[] = {64 * 64, 3 * 64 * 64};
    made_unit units[2];
    for (int u = 0; u < 2; u++)
        units[u] = (made_unit){
            .n_groups = 1, .groups = {u}, .sizes = {.out = 1, .saved = 1, .row_loss = u}};
    return made_model(2, n_params, 2, units);
}

static const zero_plan_machine machine = {.bandwidth = 1e6,
                                          .node_bandwidth = 4e6,
                                          .flops = 1e30,
                                          .disk_read = 1e5,
                                          .disk_write = 1e5};

/* ---- the ledger ---- */

static void check_ledger(const zero_model *model, int stage, int R, int M)
{
    schedule_job job;
    zero_plan_ledger ledger;
    zero_plan_input input = job_input(model, stage, 6);
    input.shard_ranks = R;
    input.accumulation = M;
    job_open(&job, input, 6);
    zero_plan_add_up(&job.s[4], &ledger);
    zero_volume v = zero_traffic_total(&ledger.all_reduce.traffic);
    int64_t times = stage < 2 ? 1 : M;
    assert_int_equal(ledger.all_reduce.collectives, R < 6 ? 2 * 2 * times : 0);
    assert_true((double)v.bytes_sent == ledger.all_reduce.formula);
    assert_true(v.bytes_sent == v.bytes_received);
    assert_true((v.bytes_sent > 0) == (R < 6));
    double volume = zero_formula_volume(ledger.padded, R, stage, M) * sizeof(float);
    double both = ledger.reduce.formula + ledger.gather.formula;
    assert_true(fabs(both - volume) <= 1e-12 * volume);
    assert_true(ledger.formula ==
                zero_formula_state_bytes(model->n_params, R, stage, ZERO_FP32));
    if (M == 1) /* else gradients are accumulators */
        assert_true((double)ledger.states == ledger.formula + ledger.padding);
    job_close(&job);
}

TEST(the_ledger_has_what_replicas_send)
{
    zero_model model = two_groups();
    for (int stage = 0; stage < 4; stage++)
        for (int M = 1; M < 4; M++) {
            check_ledger(&model, stage, 1, M);
            check_ledger(&model, stage, 2, M);
            check_ledger(&model, stage, 6, M);
        }
    zero_model_destroy(&model);
}

/* Gathered once for any M: (M + 1) (N-1)/N Psi in all. */
TEST(the_formula_of_node_parameters_is_exact)
{
    zero_model model = two_groups();
    for (int M = 1; M < 4; M++) {
        schedule_job job;
        zero_plan_ledger ledger;
        zero_plan_input input = job_input(&model, 3, 4);
        input.accumulation = M;
        input.collectives = ZERO_ALGORITHM_HIER;
        input.node_parameters = 1;
        job_open(&job, input, 2);
        zero_plan_add_up(&job.s[0], &ledger);
        double once = zero_formula_exchanged(ledger.padded, 4) * sizeof(float);
        assert_true(ledger.gather.formula == once);
        assert_int_equal(ledger.gather.collectives, 2);
        assert_true(fabs(ledger.reduce.formula - M * once) <= 1e-12 * once);
        job_close(&job);
    }
    zero_model_destroy(&model);
}

/* ---- clocks ---- */

static double seconds_of(const zero_schedule *s, zero_op op, int g, double bandwidth)
{
    const zero_group_state *group = &s->groups[g];
    const zero_traffic *t = op == ZERO_OP_REDUCE   ? &group->reduce.traffic
                            : op == ZERO_OP_GATHER ? &group->gather.traffic
                                                   : &group->all_reduce.traffic;
    return (double)zero_traffic_total(t).bytes_sent / bandwidth;
}

/* Nothing but the network takes time. Group 1 is reduced first; its ALL_REDUCE and the
 * REDUCE of group 0 are in flight at once, on one wire or on two. */
static double expected(const zero_schedule *s, double near, double far, bool one_wire)
{
    double r[2], a[2], g[2];
    for (int k = 0; k < 2; k++) {
        r[k] = seconds_of(s, ZERO_OP_REDUCE, k, near);
        a[k] = seconds_of(s, ZERO_OP_ALL_REDUCE, k, far);
        g[k] = seconds_of(s, ZERO_OP_GATHER, k, near);
    }
    if (one_wire) return r[1] + a[1] + r[0] + a[0] + g[1] + g[0];
    return r[1] + fmax(a[1], r[0]) + fmax(a[0], g[1]) + g[0];
}

static void check_time(int nodes, int R, double near, double far, bool one_wire)
{
    zero_model model = two_groups();
    schedule_job job;
    zero_plan_time time;
    zero_plan_input input = job_input(&model, 0, 4);
    input.shard_ranks = R;
    job_open(&job, input, nodes);
    assert_ok(zero_plan_time_step(&job.s[0], &machine, &time));
    double step = expected(&job.s[0], near, far, one_wire);
    if (fabs(time.step - step) > 1e-9 * step)
        fail_msg("%d nodes, R %d: %.9g s, expected %.9g", nodes, R, time.step, step);
    job_close(&job);
    zero_model_destroy(&model);
}

TEST(replicas_use_the_wire_between_their_nodes)
{
    check_time(2, 2, 4e6, 1e6, false); /* shard groups within nodes, replicas across */
    check_time(1, 2, 1e6, 1e6, true);  /* all on one node: one wire */
    check_time(4, 2, 1e6, 1e6, true);  /* all across */
    check_time(1, 1, 1e6, 1e6, true);
}

/* The seconds that the step's instructions up to `end` take, on a wire that is never idle. */
static double busy(const zero_schedule *s, zero_op end, double bandwidth)
{
    const zero_program *p = &s->programs[ZERO_PROGRAM_STEP];
    double seconds = 0.0;
    for (int at = 0; p->code[at].op != end; at++) {
        zero_traffic t = zero_instruction_traffic(s, &p->code[at]);
        seconds += (double)zero_traffic_total(&t).bytes_sent / bandwidth;
    }
    return seconds;
}

/* Nothing to compute, and a slow network: all that follows the first REDUCE_WAIT hides
 * behind the ALL_REDUCEs, but for the last GATHER. Before it JOINs delay the REDUCE that is
 * in flight on the same wire. */
TEST(joins_and_shard_groups_share_the_wire_of_a_node)
{
    static const zero_shape shape = {
        .layers = 2, .hidden = 24, .heads = 2, .seq = 17, .vocab = 50};
    zero_model model;
    zero_plan_machine slow = machine;
    schedule_job job;
    zero_plan_time time;
    zero_model whole = built(&shape);
    assert_ok(zero_model_share(&whole, (zero_share){2, 0, 2}, &model));
    slow.bandwidth = 1e3;
    zero_plan_input input = job_input(&model, 0, 4);
    input.shard_ranks = 2;
    job_open(&job, input, 2);
    const zero_schedule *s = &job.s[0];
    assert_ok(zero_plan_time_step(s, &slow, &time));
    double step = busy(s, ZERO_OP_REDUCE_WAIT, 4e6);
    for (int g = 0; g < model.n_groups; g++)
        step += seconds_of(s, ZERO_OP_ALL_REDUCE, g, 1e3);
    step += seconds_of(s, ZERO_OP_GATHER, 0, 4e6);
    assert_true(time.joins > 0.0);
    if (fabs(time.step - step) > 1e-9 * step)
        fail_msg("%.12g s, expected %.12g", time.step, step);
    job_close(&job);
    zero_model_destroy(&model);
    zero_model_destroy(&whole);
}

/* Four ranks of a node share its disk, though only two of them shard together. */
TEST(all_ranks_of_a_node_share_its_disk)
{
    zero_model model = two_groups();
    for (int R = 2; R <= 4; R += 2) {
        schedule_job job;
        zero_plan_time time;
        zero_plan_input input = job_input(&model, 2, 4);
        input.shard_ranks = R;
        input.offload = ZERO_OFFLOAD_END;
        input.offload_depth = 2;
        job_open(&job, input, 1);
        assert_ok(zero_plan_time_step(&job.s[0], &machine, &time));
        zero_offload_traffic t = zero_offload_count(&job.s[0], ZERO_PROGRAM_STEP);
        zero_file_traffic all = zero_offload_total(&t);
        double seconds =
            4.0 * ((double)all.bytes_read / 1e5 + (double)all.bytes_written / 1e5);
        assert_true(seconds > 0.0 && fabs(time.disk - seconds) <= 1e-9 * seconds);
        job_close(&job);
    }
    zero_model_destroy(&model);
}
