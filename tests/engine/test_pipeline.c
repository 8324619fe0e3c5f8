/* Pipelines as programs: their order, messages and time, against closed forms. */

#include "sharding/compile.h"
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

/* The microbatches of all instructions of one kind, in order. */
static int list(const zero_pipeline *p, int s, zero_op op, int *microbatches)
{
    int n = 0;
    for (int at = 0; at < step_of(p, s)->length; at++)
        if (step_of(p, s)->code[at].op == op)
            microbatches[n++] = step_of(p, s)->code[at].microbatch;
    return n;
}

static void check_same(const zero_pipeline *p, int from, zero_op sends, int to,
                       zero_op receives)
{
    int sent[64], received[64];
    int n = list(p, from, sends, sent);
    assert_int_equal(n, p->plan.accumulation);
    assert_int_equal(list(p, to, receives, received), n);
    assert_memory_equal(sent, received, (size_t)n * sizeof *sent);
}

static void check_messages(const zero_pipeline *p)
{
    int list_of[64], P = p->n_stages;
    for (int s = 0; s + 1 < P; s++) {
        check_same(p, s, ZERO_OP_SEND, s + 1, ZERO_OP_RECEIVE);
        check_same(p, s + 1, ZERO_OP_SEND_GRAD, s, ZERO_OP_RECEIVE_GRAD);
    }
    assert_int_equal(list(p, 0, ZERO_OP_RECEIVE, list_of), 0);
    assert_int_equal(list(p, 0, ZERO_OP_SEND_GRAD, list_of), 0);
    assert_int_equal(list(p, P - 1, ZERO_OP_RECEIVE_GRAD, list_of), 0);
    assert_int_equal(list(p, P - 1, ZERO_OP_SEND, list_of), 0);
}

TEST(every_receive_has_its_send)
{
    for_all(check_messages);
}

/* The state of a microbatch on a stage. */
enum { NOTHING, LOADED, RECEIVED, COMPUTED, SENT, RETURNED, DERIVED, ENDED };

static void step_on(int *state, int from, int to)
{
    assert_int_equal(*state, from);
    *state = to;
}

static void check_instruction(const zero_pipeline *p, int s, const zero_instruction *i,
                              int *states)
{
    bool first = s == 0, last = s == p->n_stages - 1;
    const zero_pipeline_place *at = &p->stages[s].schedule.pipe;
    int *m = &states[i->microbatch];
    switch (i->op) {
    case ZERO_OP_LOAD: step_on(m, NOTHING, LOADED); break;
    case ZERO_OP_RECEIVE: step_on(m, last ? LOADED : NOTHING, RECEIVED); break;
    case ZERO_OP_FORWARD:
        if (i->unit == at->first_unit) step_on(m, first ? LOADED : RECEIVED, COMPUTED);
        assert_int_equal(*m, COMPUTED);
        break;
    case ZERO_OP_SEND: step_on(m, COMPUTED, SENT); break;
    case ZERO_OP_RECEIVE_GRAD: step_on(m, SENT, RETURNED); break;
    case ZERO_OP_BACKWARD:
        if (i->unit == at->end_unit - 1) step_on(m, last ? COMPUTED : RETURNED, DERIVED);
        assert_int_equal(*m, DERIVED);
        break;
    case ZERO_OP_SEND_GRAD: step_on(m, DERIVED, ENDED); break;
    case ZERO_OP_REDUCE:
    case ZERO_OP_TIE:
    case ZERO_OP_UPDATE:
        for (int k = 0; k < p->plan.accumulation; k++)
            assert_int_equal(states[k], first ? DERIVED : ENDED);
        break;
    default: break;
    }
}

/* Each microbatch takes the same way through a stage, and gradients are final before
 * they are reduced. */
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

static void check_groups(const zero_pipeline *p)
{
    const zero_model *model = p->plan.model;
    for (int s = 0; s < p->n_stages; s++) {
        int n[ZERO_OP_KINDS][LAYERS + 2] = {{0}};
        const zero_pipeline_place *place = &p->stages[s].schedule.pipe;
        for (int at = 0; at < step_of(p, s)->length; at++) {
            const zero_instruction *i = &step_of(p, s)->code[at];
            if (i->group >= 0) n[i->op][i->group]++;
        }
        for (int g = 0; g < model->n_groups; g++) {
            bool holds = false;
            for (int u = place->first_unit; u < place->end_unit; u++)
                for (int k = 0; k < model->units[u].n_groups; k++)
                    holds = holds || model->units[u].groups[k] == g;
            assert_int_equal(n[ZERO_OP_UPDATE][g], holds);
            assert_int_equal(n[ZERO_OP_REDUCE][g], holds);
            assert_int_equal(n[ZERO_OP_TIE][g], holds && p->holders[g] > 1);
        }
    }
}

/* The embedding, which the first and the last unit read, is held by both stages. */
TEST(tied_groups_meet)
{
    zero_model model;
    zero_pipeline p;
    for_all(check_groups);
    describe(&model);
    for (int P = 1; P <= 3; P++) {
        pipeline_input in = input(&model, P, 2, 1);
        make(&p, ZERO_PIPELINE_1F1B, &in);
        int shared = 0;
        for (int g = 0; g < model.n_groups; g++) {
            bool is_tied = p.holders[g] == 2;
            shared += is_tied;
            assert_true(is_tied ? strcmp(model.groups[g].name, "embedding") == 0
                                : p.holders[g] == 1);
        }
        assert_int_equal(shared, P > 1);
        zero_pipeline_destroy(&p);
    }
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
 * in its first block. Its backward pass takes twice that, and a recomputation as long. */
static zero_pipeline_time walk(const zero_pipeline *p, const double *forward,
                               const zero_plan_machine *machine)
{
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
    zero_status st = zero_pipeline_walk(p, machine, &t);
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
    zero_pipeline_time t = walk(p, forward, &no_network);
    assert_true(t.passes == all * (m + P - 1));
    assert_true(t.compute == all * m);
    assert_true(t.step == t.passes);
    assert_true(fabs(t.idle - formula) < 1e-15);
}

TEST(the_bubble_is_that_of_the_formula)
{
    for_all(check_bubble);
}

/* One microbatch: two messages for each boundary, one after another. */
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
        pipeline_input in = input(&model, P, 1, 1);
        make(&p, ZERO_PIPELINE_1F1B, &in);
        for (int s = 0; s < P; s++) computed += 3.0 * forward[s];
        zero_pipeline_time t = walk(&p, forward, &slow);
        assert_true(t.passes == computed + 2 * (P - 1) * message);
        double tie = P > 1 ? 1.0 + (double)p.stages[0].ledger.tied_sent / 1024.0 : 0.0;
        assert_true(t.step == t.passes + tie);
        zero_pipeline_destroy(&p);
    }
    zero_model_destroy(&model);
}

/* The reductions of a stage begin when its last pass has ended. */
TEST(reductions_come_last)
{
    const zero_plan_machine slow = {.latency = 0.25, .bandwidth = 4096.0, .flops = 1.0};
    zero_model model;
    zero_pipeline p;
    describe(&model);
    pipeline_input in = input(&model, 1, 3, 4);
    make(&p, ZERO_PIPELINE_GPIPE, &in);
    zero_pipeline_time t = walk(&p, (double[]){1.0}, &slow);
    double reduced =
        model.n_groups * 6 * 0.25 + (double)p.stages[0].ledger.reduced_sent / 4096;
    assert_true(t.passes == 9.0 && fabs(t.step - 9.0 - reduced) < 1e-9 && t.idle == 0.0);
    zero_pipeline_destroy(&p);
    zero_model_destroy(&model);
}

/* Both stages meet when the first one has reduced the groups that it alone has. */
TEST(a_tied_gradient_waits_for_the_first_stage)
{
    const zero_plan_machine slow = {.latency = 0.0, .bandwidth = 4096.0, .flops = 1.0};
    zero_model model;
    zero_pipeline p;
    describe(&model);
    pipeline_input in = input(&model, 2, 4, 2);
    make(&p, ZERO_PIPELINE_1F1B, &in);
    zero_pipeline_time t = walk(&p, (double[]){1e6, 1e6}, &slow);
    const zero_pipe_ledger *l = &p.stages[0].ledger;
    double sent = (double)(l->reduced_sent + l->tied_sent);
    assert_true(fabs(t.step - t.passes - sent / 4096.0) < 1e-6);
    for (int s = 0; s < 2; s++) {
        const zero_program *step = step_of(&p, s);
        int at = find(step, ZERO_OP_TIE, 0);
        assert_int_equal(step->code[at + 1].op, ZERO_OP_REDUCE);
        assert_int_equal(step->code[at + 1].group, step->code[at].group);
        assert_true(find(step, ZERO_OP_UPDATE, 0) > at);
    }
    zero_pipeline_destroy(&p);
    zero_model_destroy(&model);
}

/* A stage's seconds are those of its units, as the time of a plan counts them. */
TEST(costs_are_those_of_a_plan)
{
    zero_model model;
    describe(&model);
    for (int k = 0; k < 6; k++) {
        pipeline_input in = input(&model, 1 + k / 2, 2, 1);
        zero_pipeline p;
        zero_plan_time t;
        in.plan.recompute = k % 2;
        make(&p, ZERO_PIPELINE_1F1B, &in);
        zero_schedule s = compiled(&in.plan);
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

static void swap(zero_program *p, int a, int b)
{
    zero_instruction kept = p->code[a];
    p->code[a] = p->code[b];
    p->code[b] = kept;
}

static void check_refused(zero_pipeline *p, const char *text)
{
    zero_pipeline_time t;
    assert_fails(zero_pipeline_walk(p, &no_network, &t), ZERO_ERR_INVALID, text);
}

TEST(a_walk_finds_what_waits_for_ever)
{
    zero_model model;
    describe(&model);
    const pipeline_input in = input(&model, 3, 4, 1);
    for (int kind = 0; kind < ZERO_PIPELINE_KINDS; kind++) {
        zero_pipeline p;
        /* The last stage wants the second microbatch first. */
        make(&p, (zero_pipeline_kind)kind, &in);
        zero_program *last = step_of(&p, 2);
        swap(last, find(last, ZERO_OP_RECEIVE, 0), find(last, ZERO_OP_RECEIVE, 1));
        check_refused(&p, "stage 2: RECEIVE expects microbatch 1, but 0 arrives");
        zero_pipeline_destroy(&p);
        /* The second stage wants a gradient before it has sent anything. */
        make(&p, (zero_pipeline_kind)kind, &in);
        zero_program *middle = step_of(&p, 1);
        swap(middle, find(middle, ZERO_OP_SEND, 0), find(middle, ZERO_OP_RECEIVE_GRAD, 0));
        check_refused(&p, "waits for ever");
        zero_pipeline_destroy(&p);
        /* A message that nobody receives fills the only place. */
        make(&p, (zero_pipeline_kind)kind, &in);
        step_of(&p, 2)->length = 0;
        check_refused(&p, kind == ZERO_PIPELINE_GPIPE ? "SEND_WAIT of microbatch 2"
                                                      : "RECEIVE_GRAD of microbatch 0");
        zero_pipeline_destroy(&p);
        /* The last stage never adds up the tied gradient. */
        make(&p, (zero_pipeline_kind)kind, &in);
        step_of(&p, 2)->length = find(step_of(&p, 2), ZERO_OP_TIE, 0);
        check_refused(&p, "TIE");
        zero_pipeline_destroy(&p);
    }
    zero_model_destroy(&model);
}

TEST(impossible_pipelines_are_refused)
{
    zero_model model;
    zero_pipeline p;
    describe(&model);
    const int stages[] = {0, LAYERS + 1, LAYERS, 2, 2}, micro[] = {1, 1, 200000, 0, 1};
    const int replicas[] = {1, 1, 1, 1, 0};
    for (int k = 0; k < 5; k++) {
        pipeline_input in = input(&model, stages[k], micro[k], replicas[k]);
        assert_int_equal(zero_pipeline_make(&p, ZERO_PIPELINE_GPIPE, &in.plan, in.n_stages),
                         ZERO_ERR_INVALID);
    }
    assert_int_equal(zero_pipeline_most_stages(&model), LAYERS);
    zero_model_destroy(&model);
}
