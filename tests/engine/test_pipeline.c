/* Pipelines as programs: their order, messages and time, planned and simulated, against closed
 * forms. */

#include "sharding/compile.h"
#include "simulation/simulate.h"
#include "support/pipeline_test.h"
#include "support/planned.h"

static const zero_plan_machine no_network = {.bandwidth = INFINITY, .flops = 1.0};

/* ---- stages ---- */

static void check_deal(const zero_pipeline *p)
{
    int P = p->n_stages, least = LAYERS, most = 0;
    for (int s = 0; s < P; s++) {
        const zero_pipeline_place *stage = &p->stages[s].schedule.pipe;
        int blocks = stage->end_unit - stage->first_unit - (s == 0) - (s == P - 1);
        assert_int_equal(stage->first_unit,
                         s == 0 ? 0 : p->stages[s - 1].schedule.pipe.end_unit);
        least = blocks < least ? blocks : least;
        most = blocks > most ? blocks : most;
    }
    assert_int_equal(p->stages[P - 1].schedule.pipe.end_unit, p->plan.model->n_units);
    assert_true(least >= 1 && most - least <= 1);
}

TEST(blocks_are_dealt_evenly)
{
    for_all(check_deal);
}

/* ---- programs ---- */

static const zero_pipe_message *message_of(const zero_pipeline *p, int s,
                                           const zero_instruction *i)
{
    return &p->stages[s].schedule.messages[i->join];
}

/* The microbatches of all messages of one content, in order. */
static int list(const zero_pipeline *p, int s, zero_op op, zero_pipe_content content,
                int *microbatches)
{
    int n = 0;
    for (int at = 0; at < step_of(p, s)->length; at++) {
        const zero_instruction *i = &step_of(p, s)->code[at];
        if (i->op == op && message_of(p, s, i)->content == content)
            microbatches[n++] = i->microbatch;
    }
    return n;
}

static void check_same(const zero_pipeline *p, zero_pipe_content content, int from, int to)
{
    int sent[64], received[64];
    int n = list(p, from, ZERO_OP_SEND, content, sent);
    assert_int_equal(n, p->plan.accumulation);
    assert_int_equal(list(p, to, ZERO_OP_RECEIVE, content, received), n);
    assert_memory_equal(sent, received, (size_t)n * sizeof *sent);
    for (int k = 0; k < n; k++) assert_int_equal(sent[k], k);
}

static void check_messages(const zero_pipeline *p)
{
    int list_of[64], P = p->n_stages;
    for (int s = 0; s + 1 < P; s++) {
        check_same(p, ZERO_PIPE_OUTPUT, s, s + 1);
        check_same(p, ZERO_PIPE_GRADIENT, s + 1, s);
    }
    if (P > 1) check_same(p, ZERO_PIPE_FIRST, 0, P - 1);
    assert_int_equal(list(p, 0, ZERO_OP_RECEIVE, ZERO_PIPE_OUTPUT, list_of), 0);
    assert_int_equal(list(p, P - 1, ZERO_OP_RECEIVE, ZERO_PIPE_GRADIENT, list_of), 0);
}

TEST(every_receive_has_its_send)
{
    for_all(check_messages);
}

/* The state of a microbatch on a stage. */
enum { NOTHING, LOADED, RECEIVED, COMPUTED, SENT, RETURNED, DERIVED, ENDED, CAME, DONE };

static void step_on(int *state, int from, int to)
{
    assert_int_equal(*state, from);
    *state = to;
}

static void check_instruction(const zero_pipeline *p, int s, const zero_instruction *i,
                              int *states)
{
    const bool first = s == 0, last = s == p->n_stages - 1, alone = first && last;
    const zero_pipeline_place *at = &p->stages[s].schedule.pipe;
    int *m = &states[i->microbatch];
    const zero_pipe_content content =
        i->join >= 0 ? message_of(p, s, i)->content : ZERO_PIPE_CONTENTS;
    switch (i->op) {
    case ZERO_OP_LOAD: step_on(m, NOTHING, LOADED); break;
    case ZERO_OP_FORWARD:
        if (i->unit == at->first_unit) step_on(m, first ? LOADED : RECEIVED, COMPUTED);
        assert_int_equal(*m, COMPUTED);
        break;
    case ZERO_OP_BACKWARD:
        if (i->unit == 0 && !alone) {
            assert_true(last);
            step_on(m, CAME, DONE);
            break;
        }
        if (i->unit == at->end_unit - 1) step_on(m, last ? COMPUTED : RETURNED, DERIVED);
        assert_int_equal(*m, DERIVED);
        break;
    case ZERO_OP_RECEIVE_WAIT:
        if (content == ZERO_PIPE_OUTPUT) step_on(m, last ? LOADED : NOTHING, RECEIVED);
        if (content == ZERO_PIPE_GRADIENT) step_on(m, SENT, RETURNED);
        if (content == ZERO_PIPE_FIRST) step_on(m, ENDED, CAME);
        break;
    case ZERO_OP_SEND:
        if (content == ZERO_PIPE_OUTPUT) step_on(m, COMPUTED, SENT);
        if (content == ZERO_PIPE_GRADIENT) step_on(m, DERIVED, ENDED);
        if (content == ZERO_PIPE_FIRST) step_on(m, DERIVED, ENDED);
        break;
    case ZERO_OP_UPDATE:
        for (int k = 0; k < p->plan.accumulation; k++)
            assert_int_equal(states[k], alone ? DERIVED : last ? DONE : ENDED);
        break;
    default: break;
    }
}

/* Each microbatch takes the same way through a stage, and no group is updated before. */
static void check_order(const zero_pipeline *p)
{
    for (int s = 0; s < p->n_stages; s++) {
        int states[64] = {NOTHING};
        for (int at = 0; at < step_of(p, s)->length; at++)
            check_instruction(p, s, &step_of(p, s)->code[at], states);
    }
}

TEST(every_microbatch_passes_each_stage_once)
{
    for_all(check_order);
}

/* The microbatches in each gradient, a bit each: no sum loses one or has one twice. */
static void check_sums_of(const zero_pipeline *p)
{
    const uint32_t all = (UINT32_C(1) << p->plan.accumulation) - 1;
    for (int s = 0; s < p->n_stages; s++) {
        uint32_t *has = calloc((size_t)p->stages[s].schedule.n_buffers, sizeof *has);
        assert_non_null(has);
        for (int at = 0; at < step_of(p, s)->length; at++) {
            const zero_instruction *i = &step_of(p, s)->code[at];
            for (int k = 0; i->op == ZERO_OP_BACKWARD && k < ZERO_UNIT_GROUPS; k++)
                if (i->grad[k] != ZERO_NO_BUFFER && !i->accumulate[k])
                    has[i->grad[k]] = UINT32_C(1) << i->microbatch;
            uint32_t sum = i->sum == ZERO_NO_BUFFER ? 0 : has[i->sum];
            if (i->op == ZERO_OP_ACCUMULATE) {
                assert_int_equal(sum & has[i->in], 0);
                has[i->buffer] = sum | has[i->in];
            }
            if (i->op == ZERO_OP_ROUND) has[i->buffer] = has[i->in];
            if (i->op == ZERO_OP_REDUCE) assert_int_equal(has[i->in], all);
        }
        free(has);
    }
}

TEST(every_sum_has_each_microbatch_once)
{
    for_all(check_sums_of);
}

/* Each group has its gradient and its states in one stage; of the embedding, which the first
 * and the last unit read, that is the last one, and stage 0 gets the parameters. */
static void check_groups(const zero_pipeline *p)
{
    const zero_model *model = p->plan.model;
    int updates[LAYERS + 2] = {0}, reductions[LAYERS + 2] = {0};
    const bool is_cut = p->n_stages > 1;
    for (int s = 0; s < p->n_stages; s++) {
        int sends = 0, receives = 0;
        for (int at = 0; at < step_of(p, s)->length; at++) {
            const zero_instruction *i = &step_of(p, s)->code[at];
            if (i->op == ZERO_OP_UPDATE) {
                updates[i->group]++;
                assert_int_equal(p->stages[s].schedule.groups[i->group].stage, s);
            }
            if (i->op == ZERO_OP_REDUCE) reductions[i->group]++;
            if (i->op == ZERO_OP_UPDATE || i->group < 0 || i->join < 0) continue;
            assert_string_equal(model->groups[i->group].name, "embedding");
            assert_int_equal(message_of(p, s, i)->content, ZERO_PIPE_PARAMETERS);
            sends += i->op == ZERO_OP_SEND && updates[i->group] == 1;
            receives += i->op == ZERO_OP_RECEIVE;
        }
        assert_int_equal(sends, is_cut && s == p->n_stages - 1);
        assert_int_equal(receives, is_cut && s == 0);
    }
    for (int g = 0; g < model->n_groups; g++) {
        assert_int_equal(updates[g], 1);
        assert_int_equal(reductions[g], 1);
    }
}

TEST(every_group_is_updated_in_one_stage)
{
    for_all(check_groups);
}

/* Only the first unit's gradient can be made elsewhere. */
TEST(other_shared_groups_are_refused)
{
    zero_model model;
    zero_pipeline p;
    describe(&model);
    zero_plan_input in = input(&model, 2, 2, 1);
    model.units[2].groups[0] = model.units[LAYERS].groups[0];
    assert_fails(zero_pipeline_make(&p, &in), ZERO_ERR_INVALID, "shares group");
    zero_model_destroy(&model);
}

/* ---- time ---- */

/* The place of instruction `number` of a kind. */
static int find(const zero_program *p, zero_op op, int number)
{
    int at = 0;
    while (p->code[at].op != op || number-- > 0) at++;
    return at;
}

static double flops[LAYERS + 2];
static zero_unit_sizes (*sizes[LAYERS + 2])(const zero_unit *, int64_t, int64_t);
static const zero_unit *units;

static zero_unit_sizes with_flops(const zero_unit *unit, int64_t B, int64_t T)
{
    zero_unit_sizes n = sizes[unit - units](unit, B, T);
    n.flops = n.recompute_flops = flops[unit - units];
    return n;
}

/* The time on a machine of 1 flop per second, if a stage's forward pass takes forward[s] seconds, all
 * in its first block. Its backward pass takes twice that, and a recomputation as long. *simulated, if
 * not NULL, is the same of a simulation. */
static zero_pipeline_time walk(const zero_pipeline *p, const double *forward,
                               const zero_plan_machine *machine, zero_simulated *simulated)
{
    const zero_simulate_input on = {.machine = *machine,
                                    .adapter = INFINITY,
                                    .switch_ratio = 1.0,
                                    .memory_bandwidth = INFINITY,
                                    .steps = 2,
                                    .memory_limit = INT64_MAX,
                                    .most_messages = INT64_MAX};
    zero_pipeline_time t;
    zero_unit *all = (zero_unit *)p->plan.model->units;
    int n = p->plan.model->n_units;
    units = all;
    for (int u = 0; u < n; u++) {
        sizes[u] = all[u].sizes;
        all[u].sizes = with_flops;
        flops[u] = 1e-300;
    }
    for (int s = 0; s < p->n_stages; s++)
        flops[s == 0 ? 1 : p->stages[s].schedule.pipe.first_unit] = forward[s];
    zero_status st = zero_pipeline_walk((zero_pipeline *)p, machine, &t);
    if (st == ZERO_OK && simulated)
        st = zero_simulate(&p->stages[0].schedule, &on, simulated);
    for (int u = 0; u < n; u++) all[u].sizes = sizes[u];
    assert_ok(st);
    return t;
}

/* Exact: all times are small whole numbers. */
static void check_bubble(const zero_pipeline *p)
{
    double forward[LAYERS], all = p->plan.recompute ? 4.0 : 3.0;
    int P = p->n_stages, m = p->plan.accumulation;
    double formula = zero_pipeline_bubble_formula(P, m);
    assert_true(formula == (double)(P - 1) / (m + P - 1));
    for (int s = 0; s < P; s++) forward[s] = 1.0;
    zero_simulated simulated;
    const bool simulates = m <= 5;
    zero_pipeline_time t = walk(p, forward, &no_network, simulates ? &simulated : NULL);
    if (simulates && simulated.step != t.step)
        fail_msg("simulated %.17g s, planned %.17g s", simulated.step, t.step);
    assert_true(!simulates || fabs(simulated.idle - formula) < 1e-15);
    assert_true(t.passes == all * (m + P - 1));
    assert_true(t.compute == all * m);
    assert_true(t.step == t.passes);
    assert_true(fabs(t.idle - formula) < 1e-15);
}

TEST(the_bubble_is_that_of_the_formula)
{
    for_all(check_bubble);
}

/* One microbatch: two messages for each boundary, one after another, then that of the
 * embedding's gradient, and its parameters after the update. */
TEST(messages_take_their_time)
{
    const zero_plan_machine slow = {.latency = 0.5, .bandwidth = 1024.0, .flops = 1.0};
    zero_model model;
    zero_pipeline p;
    describe(&model);
    double message = 0.5 + 2 * 16 * 24 * 4 / 1024.0;
    for (int P = 1; P <= 4; P++) {
        const double forward[4] = {1, 3, 2, 4};
        double computed = 0.0;
        zero_plan_input in = input(&model, P, 1, 1);
        make(&p, ZERO_PIPELINE_1F1B, in);
        for (int s = 0; s < P; s++) computed += 3.0 * forward[s];
        zero_pipeline_time t = walk(&p, forward, &slow, NULL);
        assert_true(t.passes == computed + (P > 1) * (2 * P - 1) * message);
        const zero_pipe_stage *last = &p.stages[P - 1];
        const double update =
            0.5 + (last->ledger.send.formula - (P > 1) * 2 * 16 * 24 * 4) / 1024.0;
        assert_true(t.step == t.passes + (P > 1) * update);
        zero_pipeline_destroy(&p);
    }
    zero_model_destroy(&model);
}

/* A stage's seconds are those of its units, as the time of a plan counts them. */
TEST(costs_are_those_of_a_plan)
{
    zero_model model;
    describe(&model);
    for (int k = 0; k < 6; k++) {
        zero_plan_input in = input(&model, 1 + k / 2, 2, 1);
        zero_pipeline p;
        zero_plan_time t;
        in.recompute = k % 2;
        make(&p, ZERO_PIPELINE_1F1B, in);
        in.pp = 1;
        zero_schedule s = compiled(&in);
        zero_plan_machine machine = {.bandwidth = INFINITY, .flops = 1e6};
        assert_ok(zero_plan_time_step(&s, &machine, &t));
        zero_pipeline_time ours;
        assert_ok(zero_pipeline_walk(&p, &machine, &ours));
        double sum = (1.0 - ours.idle) * p.n_stages * ours.passes;
        assert_true(fabs(sum / t.compute - 1.0) < 1e-12);
        zero_schedule_destroy(&s);
        zero_pipeline_destroy(&p);
    }
    zero_model_destroy(&model);
}

/* ---- programs that cannot end ---- */

static void check_refused(zero_pipeline *p, const char *text)
{
    zero_pipeline_time t;
    assert_fails(zero_pipeline_walk(p, &no_network, &t), ZERO_ERR_INVALID, text);
    zero_pipeline_destroy(p);
}

TEST(a_walk_finds_what_waits_for_ever)
{
    zero_model model;
    describe(&model);
    const zero_plan_input in = input(&model, 3, 4, 1);
    for (int kind = 0; kind < ZERO_PIPELINE_KINDS; kind++) {
        zero_pipeline p;
        /* The last stage wants the second microbatch first. */
        make(&p, (zero_pipeline_kind)kind, in);
        zero_program *last = step_of(&p, 2);
        last->code[find(last, ZERO_OP_RECEIVE, 0)].microbatch = 1;
        check_refused(&p, "meets microbatch");
        /* The second stage ends before it has sent anything. */
        make(&p, (zero_pipeline_kind)kind, in);
        step_of(&p, 1)->length = find(step_of(&p, 1), ZERO_OP_SEND, 0);
        check_refused(&p, "waits for ever");
        /* No stage takes what the second one sends. */
        make(&p, (zero_pipeline_kind)kind, in);
        step_of(&p, 2)->length = 0;
        check_refused(&p, "waits for ever");
        /* The last stage never sends the parameters of the embedding. */
        make(&p, (zero_pipeline_kind)kind, in);
        last = step_of(&p, 2);
        last->length = find(last, ZERO_OP_UPDATE, 0);
        check_refused(&p, "stage 0 waits for ever");
    }
    zero_model_destroy(&model);
}

TEST(impossible_pipelines_are_refused)
{
    zero_model model;
    zero_pipeline p;
    describe(&model);
    const int stages[] = {-1, LAYERS + 1, LAYERS, 2, 2}, micro[] = {1, 1, 120000, 0, 1};
    const int replicas[] = {1, 1, 1, 1, 0};
    for (int k = 0; k < 5; k++) {
        const zero_plan_input in = input(&model, stages[k], micro[k], replicas[k]);
        assert_int_equal(zero_pipeline_make(&p, &in), ZERO_ERR_INVALID);
    }
    zero_model_destroy(&model);
}
