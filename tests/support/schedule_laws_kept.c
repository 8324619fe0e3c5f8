/* Outputs that wait for their backward pass: whole, or in pieces of the ranks of a TP group. */

#include "nn/share.h"
#include "support/schedule_laws.h"

static bool is_of(const zero_instruction *i, zero_op op, int unit, int microbatch)
{
    return i->op == op && i->unit == unit && i->microbatch == microbatch;
}

/* Finds the first such instruction at or after `from`. Returns -1 if the program has none. */
static int find(const zero_program *p, int from, zero_op op, int unit, int microbatch)
{
    for (int at = from; at < p->length; at++)
        if (is_of(&p->code[at], op, unit, microbatch)) return at;
    return -1;
}

static int find_last(const zero_program *p, zero_op op, int unit, int microbatch)
{
    int at = p->length - 1;
    while (at >= 0 && !is_of(&p->code[at], op, unit, microbatch)) at--;
    return at;
}

static int64_t floats_of(const zero_schedule *s, int u)
{
    const zero_unit *unit = &s->input.model->units[u];
    return unit->sizes(unit, s->input.micro_batch, s->input.seq).out;
}

/* True if the output of unit u waits for a unit that is computed again. */
static bool waits(const zero_schedule *s, int u)
{
    const zero_program *p = &s->programs[ZERO_PROGRAM_STEP];
    return floats_of(s, u) > 0 && find(p, 0, ZERO_OP_RECOMPUTE, u + 1, 0) >= 0;
}

static bool is_in_place(const zero_schedule *s)
{
    return zero_schedule_join_shares(s) && zero_schedule_tp_layout(s)->n_nodes == 1 &&
           !s->input.offload_activations;
}

/* ---- one output ---- */

static void check_place(const zero_schedule *s, const zero_instruction *i)
{
    const zero_buffer *kept = &s->buffers[i->buffer];
    bool shares = zero_schedule_join_shares(s);
    size_t bytes = (size_t)floats_of(s, i->unit) * sizeof(float);
    const zero_share *share = &s->input.model->share;
    size_t piece = bytes / (size_t)share->ranks;
    int64_t n = floats_of(s, i->unit) / share->ranks, begin = n * share->rank;
    assert_true(i->range.begin == begin && i->range.end == begin + n);
    assert_true(kept->begin == 0 || kept->begin == begin);
    assert_true((size_t)(i->range.end - kept->begin) * sizeof(float) <= kept->bytes);
    assert_int_equal(kept->class, ZERO_CLASS_KEPT);
    assert_int_equal(kept->space, is_in_place(s) ? ZERO_SPACE_TP_NODE
                                  : shares       ? ZERO_SPACE_TP_PART
                                                 : ZERO_SPACE_OWN);
    if (!s->input.offload_activations)
        assert_true(zero_schedule_cost(s, kept) == piece && i->buffer != i->in);
    assert_true(kept->bytes >= (is_in_place(s) ? bytes : piece));
}

/* In the node's memory KEEP writes without a collective. So its buffer lives from a part of the
 * FORWARD on, and after that part a JOIN begins and ends. */
static void check_birth(const zero_schedule *s, const zero_program *p, int keep)
{
    int unit = p->code[keep].unit + 1, at = s->buffers[p->code[keep].buffer].first;
    assert_true(is_of(&p->code[at], ZERO_OP_FORWARD, unit, p->code[keep].microbatch));
    at = find(p, at, ZERO_OP_JOIN, unit, p->code[keep].microbatch);
    assert_true(at >= 0 && at < keep);
    at = find(p, at, ZERO_OP_JOIN_WAIT, unit, p->code[keep].microbatch);
    assert_true(at >= 0 && at < keep);
}

/* No JOIN and no other COLLECT is in flight. */
static void check_quiet(const zero_program *p, int collect)
{
    int joins = 0, collects = 0;
    for (int at = 0; at < collect; at++) {
        joins += (p->code[at].op == ZERO_OP_JOIN) - (p->code[at].op == ZERO_OP_JOIN_WAIT);
        collects +=
            (p->code[at].op == ZERO_OP_COLLECT) - (p->code[at].op == ZERO_OP_COLLECT_WAIT);
    }
    assert_int_equal(joins, 0);
    assert_int_equal(collects, 0);
}

/* COLLECT is in flight while the unit after the one that needs it goes backward. */
static void check_collect(const zero_schedule *s, const zero_program *p, int keep, int m)
{
    int u = p->code[keep].unit;
    int begin = find(p, keep, ZERO_OP_COLLECT, u, m);
    int end = find(p, keep, ZERO_OP_COLLECT_WAIT, u, m);
    int again = find(p, keep, ZERO_OP_RECOMPUTE, u + 1, m);
    int before = find(p, keep, ZERO_OP_BACKWARD, u + 2, m);
    int first = find(p, keep, ZERO_OP_RECOMPUTE, u + 2, m);
    int use = find_last(p, ZERO_OP_BACKWARD, u + 1, m);
    assert_true(begin > keep && end > begin && again > end);
    assert_true(begin < before && (first < 0 || begin < first));
    if (s->input.serial)
        assert_int_equal(end, begin + 1);
    else
        assert_true(end > before);
    check_quiet(p, begin);
    assert_int_equal(p->code[again].in, p->code[begin].buffer);
    assert_int_equal(p->code[use].in, p->code[begin].buffer);
    assert_int_equal(s->buffers[p->code[begin].buffer].last, use);
    assert_int_equal(p->code[begin].in == p->code[begin].buffer, is_in_place(s));
    if (!s->input.offload_activations)
        assert_int_equal(p->code[begin].in, p->code[keep].buffer);
}

static void check_piece(const zero_schedule *s, int u, int m)
{
    const zero_program *p = &s->programs[ZERO_PROGRAM_STEP];
    int keep = find(p, 0, ZERO_OP_KEEP, u, m);
    int forward = find_last(p, ZERO_OP_FORWARD, u + 1, m);
    assert_true(keep > forward && forward >= 0);
    assert_int_equal(p->code[keep].in, p->code[forward].in);
    /* The whole output dies there. */
    assert_int_equal(s->buffers[p->code[keep].in].last, keep);
    assert_int_equal(s->buffers[p->code[keep].in].class, ZERO_CLASS_ACTIVATIONS);
    assert_int_equal(find(p, keep + 1, ZERO_OP_KEEP, u, m), -1);
    check_place(s, &p->code[keep]);
    if (is_in_place(s)) check_birth(s, p, keep);
    check_collect(s, p, keep, m);
}

static void check_whole(const zero_schedule *s, int u, int m)
{
    const zero_program *p = &s->programs[ZERO_PROGRAM_STEP];
    const zero_instruction *made = &p->code[find(p, 0, ZERO_OP_FORWARD, u, m)];
    assert_int_equal(s->buffers[made->out].class, ZERO_CLASS_KEPT);
    assert_int_equal(find(p, 0, ZERO_OP_KEEP, u, m), -1);
}

/* ---- all ---- */

/* When backward begins, all outputs that wait are alive, and never more; with pieces exactly 1/T
 * of them. */
static void check_sums(const zero_schedule *s)
{
    const zero_plan_input *in = &s->input;
    int64_t floats = 0, ranks = in->partition_activations ? in->model->share.ranks : 1;
    int n = 0;
    for (int u = 0; u < in->model->n_units; u++) {
        floats += waits(s, u) ? floats_of(s, u) : 0;
        n += waits(s, u);
    }
    if (!in->offload_activations)
        assert_true(s->class_peak[ZERO_CLASS_KEPT] ==
                    (size_t)(floats / ranks) * sizeof(float));
    int pieces = in->partition_activations ? n * in->accumulation : 0;
    zero_traffic t = zero_schedule_traffic(s, ZERO_PROGRAM_STEP, ZERO_OP_COLLECT);
    zero_volume v = zero_traffic_total(&t);
    int64_t sent = (ranks - 1) * (floats / ranks) * 4 * in->accumulation;
    for (int kind = 0; kind < ZERO_PROGRAMS; kind++)
        for (int op = ZERO_OP_KEEP; op <= ZERO_OP_COLLECT_WAIT; op++)
            assert_int_equal(laws_count(s, (zero_program_kind)kind, (zero_op)op, LAWS_ANY),
                             kind == ZERO_PROGRAM_STEP ? pieces : 0);
    bool moves = in->partition_activations && !is_in_place(s);
    bool is_spread = zero_schedule_tp_layout(s)->n_nodes > 1;
    if (!is_spread || !zero_schedule_join_shares(s))
        assert_true(v.bytes_sent == (moves ? sent : 0));
}

void laws_check_kept(const zero_schedule *s)
{
    if (s->programs[ZERO_PROGRAM_STEP].length == 0) return;
    for (int m = 0; m < s->input.accumulation; m++)
        for (int u = 0; u < s->input.model->n_units; u++) {
            if (!waits(s, u)) continue;
            if (s->input.partition_activations)
                check_piece(s, u, m);
            else
                check_whole(s, u, m);
        }
    check_sums(s);
}
