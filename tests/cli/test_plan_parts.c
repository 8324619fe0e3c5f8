/* The plan of a shared GPT-2: its JOINs in the ledger, their time, and the deepest part
 * that fits. */

#include "support/planned.h"
#include "support/test.h"

#include "nn/share.h"
#include "plan/plan.h"
#include "plan/plan_fit.h"
#include "plan/plan_time.h"
#include "sharding/compile.h"
#include "sharding/schedule_exchange.h"

static const zero_shape shape = {
    .layers = 3, .hidden = 64, .heads = 4, .seq = 32, .vocab = 300};

/* The plan of part 1 of 2 or 4, for two ranks of the ZeRO group, on a node each. */
typedef struct {
    zero_model whole, part;
    zero_schedule s;
} plan;

static void open_plan_of(plan *p, int ranks, zero_algorithm collectives, bool recompute,
                         bool in_pieces)
{
    p->whole = built(&shape);
    assert_ok(zero_model_share(&p->whole, (zero_share){ranks, ranks - 1, 4}, &p->part));
    zero_plan_input in = zero_plan_input_standard(&p->part, 2, 0);
    in.stage = 2;
    in.micro_batch = 4;
    in.collectives = collectives;
    in.recompute = recompute;
    in.partition_activations = in_pieces;
    p->s = compiled(&in);
}

static void open_plan(plan *p, int ranks, zero_algorithm collectives, bool recompute)
{
    open_plan_of(p, ranks, collectives, recompute, false);
}

static void close_plan(plan *p)
{
    zero_schedule_destroy(&p->s);
    zero_model_destroy(&p->part);
    zero_model_destroy(&p->whole);
}

/* ---- the ledger ---- */

static int count(const zero_schedule *s, zero_op op)
{
    const zero_program *step = &s->programs[ZERO_PROGRAM_STEP];
    int n = 0;
    for (int at = 0; at < step->length; at++) n += step->code[at].op == op;
    return n;
}

/* A block has 4 sums, one more with --recompute; the embedding one, the head one and a
 * gather. */
TEST(the_ledger_has_joins_and_their_formula)
{
    for (int ranks = 1; ranks <= 4; ranks *= 2)
        for (int recompute = 0; recompute < 2; recompute++) {
            plan p;
            zero_plan_ledger l;
            open_plan(&p, ranks, ZERO_ALGORITHM_HIER, recompute);
            zero_plan_add_up(&p.s, &l);
            int sums = ranks > 1 ? 3 * (4 + recompute) + 2 : 0;
            assert_int_equal(count(&p.s, ZERO_OP_JOIN), sums + (ranks > 1));
            assert_int_equal(l.join.collectives, 2 * sums + (ranks > 1));
            zero_volume v = zero_traffic_total(&l.join.traffic);
            assert_true((double)v.bytes_sent == l.join.formula);
            assert_true((l.join.formula > 0.0) == (ranks > 1));
            assert_true(l.needed == p.s.own_bytes + p.s.window_bytes + p.s.tp_window_bytes +
                                        zero_plan_process(&p.s));
            assert_true((p.s.tp_window_bytes > 0) == (ranks > 1));
            size_t alive = 0;
            for (int c = 0; c < ZERO_CLASSES; c++) alive += l.at_peak[c];
            assert_true(alive == p.s.peak_bytes);
            close_plan(&p);
        }
}

/* ---- time ---- */

static zero_plan_time time_of(const zero_schedule *s, zero_plan_machine machine)
{
    zero_plan_time t;
    assert_ok(zero_plan_time_step(s, &machine, &t));
    return t;
}

static bool is_near(double x, double y)
{
    return fabs(x - y) <= 1e-9 * fabs(y);
}

/* Parts take the time of the whole pass: that of a rank without a TP group has none but
 * computing. */
TEST(parts_take_as_long_as_their_pass)
{
    plan p;
    open_plan(&p, 4, ZERO_ALGORITHM_P2P, true);
    double flops = 0.0;
    for (int u = 0; u < p.part.n_units; u++) {
        const zero_unit *unit = &p.part.units[u];
        zero_unit_sizes n = unit->sizes(unit, 4, shape.seq);
        bool recomputes = u < p.part.n_units - 1 && n.saved > 0;
        double again = n.recompute_flops > 0.0 ? n.recompute_flops : n.flops;
        flops += 3.0 * n.flops + (recomputes ? again : 0.0);
    }
    zero_plan_time t = time_of(&p.s, (zero_plan_machine){.bandwidth = 1e9, .flops = 1.0});
    assert_true(is_near(t.compute, flops));
    assert_true(is_near(t.step, t.compute + t.exposed));
    close_plan(&p);
}

/* With an endless network, and with an endless processor. In between, some of a JOIN is
 * hidden by the gradients of weights. */
TEST(joins_are_exposed_as_far_as_nothing_hides_them)
{
    plan p;
    open_plan(&p, 4, ZERO_ALGORITHM_P2P, true);
    zero_plan_ledger l;
    zero_plan_add_up(&p.s, &l);
    zero_plan_time idle =
        time_of(&p.s, (zero_plan_machine){.bandwidth = 1e9, .flops = 1e300});
    assert_true(is_near(idle.joins, l.join.formula / 1e9));
    assert_true(is_near(idle.join_exposed, idle.joins));
    zero_plan_time busy =
        time_of(&p.s, (zero_plan_machine){.bandwidth = 1e300, .flops = 1e9});
    assert_true(busy.join_exposed < 1e-12 * busy.step);
    zero_plan_time both =
        time_of(&p.s, (zero_plan_machine){.bandwidth = 1e9, .flops = 1e10});
    assert_true(both.join_exposed > 0.0 && both.join_exposed < both.joins);
    assert_true(both.exposed >= both.join_exposed);
    close_plan(&p);
}

/* In a node's memory COLLECT moves nothing. By messages its time is that of the formula, and a slow
 * processor hides all of it behind one unit. */
TEST(collects_take_the_time_of_what_they_move)
{
    const zero_plan_machine idle = {.bandwidth = 1e9, .flops = 1e300},
                            busy = {.bandwidth = 1e9, .flops = 1e8};
    plan p, whole;
    zero_plan_ledger l, without;
    open_plan_of(&p, 4, ZERO_ALGORITHM_P2P, true, true);
    open_plan(&whole, 4, ZERO_ALGORITHM_P2P, true);
    zero_plan_add_up(&p.s, &l);
    zero_plan_add_up(&whole.s, &without);
    double floats = 4.0 * 32 * 64 * 3 / 4;
    assert_true(l.collect.formula == 3 * 4 * floats && l.collect.collectives == 3);
    assert_true((double)zero_traffic_total(&l.collect.traffic).bytes_sent ==
                l.collect.formula);
    assert_true(l.join.formula == without.join.formula && without.collect.formula == 0.0);
    assert_true(4 * p.s.class_peak[ZERO_CLASS_KEPT] == whole.s.class_peak[ZERO_CLASS_KEPT]);
    zero_plan_time t = time_of(&p.s, idle), w = time_of(&whole.s, idle);
    assert_true(is_near(t.collects, l.collect.formula / 1e9) && w.collects == 0.0);
    assert_true(is_near(t.communication - t.collects, w.communication));
    assert_true(t.collect_exposed > 0.0 && t.step > w.step);
    t = time_of(&p.s, busy);
    w = time_of(&whole.s, busy);
    assert_true(t.collects > 0.0 && t.collect_exposed == 0.0);
    assert_true(is_near(t.compute, w.compute));
    close_plan(&p);
    close_plan(&whole);
    open_plan_of(&p, 4, ZERO_ALGORITHM_HIER, true, true); /* the TP group is on one node */
    zero_plan_add_up(&p.s, &l);
    assert_int_equal(zero_traffic_total(&l.collect.traffic).bytes_sent, 0);
    assert_true(l.collect.formula == 3 * 4 * floats);
    assert_true(time_of(&p.s, idle).collects == 0.0);
    close_plan(&p);
}

/* The ZeRO group is on two nodes, the TP group on one: JOINs take the node's rate if it is
 * known, and do not delay what is under way between nodes. */
TEST(joins_within_a_node_have_the_node_s_rate)
{
    plan p;
    open_plan(&p, 2, ZERO_ALGORITHM_HIER, false);
    zero_plan_machine machine = {.latency = 1e-6, .bandwidth = 1e8, .flops = 1e9};
    zero_plan_time slow = time_of(&p.s, machine);
    machine.node_bandwidth = 1e10;
    zero_plan_time fast = time_of(&p.s, machine);
    assert_true(is_near(slow.joins, 100.0 * fast.joins)); /* read, without messages */
    assert_true(is_near(slow.communication - slow.joins, fast.communication - fast.joins));
    assert_true(fast.step < slow.step);
    close_plan(&p);
}

/* On one node all share a wire. A step waits for its collectives as long as they take if
 * nothing is computed, whatever the order: so what is in flight ends later by as much as a
 * JOIN takes. */
TEST(a_join_delays_what_is_in_flight_on_its_wire)
{
    plan p;
    zero_layout node;
    open_plan(&p, 2, ZERO_ALGORITHM_P2P, false);
    zero_plan_machine machine = {.bandwidth = 1e9, .flops = 1e300};
    zero_plan_input in = p.s.input;
    assert_ok(zero_layout_init_blocks(&node, 2, 1));
    in.layout = &node;
    zero_schedule s = compiled(&in);
    zero_plan_time together = time_of(&s, machine), apart = time_of(&p.s, machine);
    assert_true(is_near(together.joins, apart.joins));
    assert_true(is_near(together.step, together.communication));
    assert_true(apart.step < 0.99 * apart.communication);
    zero_schedule_destroy(&s);
    zero_layout_destroy(&node);
    close_plan(&p);
}

/* ---- the deepest ---- */

/* A rank of a TP group keeps a part of each layer, so more of them fit. */
TEST(more_layers_fit_a_rank_that_has_a_part)
{
    const zero_plan_room room = {.bytes = (size_t)60 << 20};
    int64_t layers[2];
    for (int k = 0; k < 2; k++) {
        plan p;
        zero_plan_fitted fitted;
        open_plan(&p, k == 0 ? 1 : 4, ZERO_ALGORITHM_P2P, true);
        assert_ok(zero_plan_fit(&shape, &p.s.input, &room, &fitted));
        layers[k] = fitted.layers;
        assert_true(fitted.needed <= room.bytes && fitted.n_params > p.whole.n_params);
        close_plan(&p);
    }
    assert_true(layers[1] > 2 * layers[0]);
}
