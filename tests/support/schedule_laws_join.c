/* Parts of passes, and the JOINs of a TP group between them. */
#include "lists/algorithm.h"
#include "nn/share.h"
#include "support/schedule_laws.h"

static bool is_join(zero_op op)
{
    return op == ZERO_OP_JOIN || op == ZERO_OP_JOIN_WAIT;
}

static int tp_ranks(const zero_schedule *s)
{
    return zero_share_has_parts(&s->input.model->share) ? s->input.model->share.ranks : 1;
}

static zero_unit_part part_of(const zero_schedule *s, zero_program_kind kind,
                              const zero_instruction *i)
{
    const zero_unit *unit = &s->input.model->units[i->unit];
    zero_pass pass = kind == ZERO_PROGRAM_EVALUATE  ? ZERO_PASS_EVALUATE
                     : zero_program_generates(kind) ? ZERO_PASS_GENERATE
                     : i->op == ZERO_OP_BACKWARD    ? ZERO_PASS_BACKWARD
                     : i->op == ZERO_OP_RECOMPUTE   ? ZERO_PASS_RECOMPUTE
                                                    : ZERO_PASS_FORWARD;
    return unit->part(unit, pass, zero_program_samples(s, kind),
                      zero_program_positions(s, kind), i->part);
}

/* ---- the parts of a pass ---- */

/* Parts of a pass differ in what they join and wait for, and in nothing else. */
static void check_same_pass(const zero_instruction *a, const zero_instruction *b)
{
    zero_instruction x = *a, y = *b;
    assert_int_equal(x.part + 1, y.part);
    x.part = y.part;
    x.joint = y.joint;
    x.joined = y.joined;
    x.live_bytes = y.live_bytes;
    assert_true(x.op == y.op && x.unit == y.unit && x.microbatch == y.microbatch);
    assert_memory_equal(x.operands, y.operands, sizeof x.operands);
    assert_memory_equal(x.accumulate, y.accumulate, sizeof x.accumulate);
}

/* Between two parts of a pass stand JOINs of its unit alone. */
static void check_next(const zero_schedule *s, const zero_program *p,
                       zero_program_kind kind, int at)
{
    const zero_instruction *i = &p->code[at];
    if (part_of(s, kind, i).is_last) return;
    for (at++; at < p->length && is_join(p->code[at].op); at++)
        assert_int_equal(p->code[at].unit, i->unit);
    assert_true(at < p->length);
    check_same_pass(i, &p->code[at]);
}

static void check_buffer(const zero_schedule *s, int id, bool shares, zero_space space,
                         int64_t floats)
{
    const zero_buffer *b = &s->buffers[id];
    assert_int_equal(b->class, ZERO_CLASS_WORKSPACE);
    assert_int_equal(b->space, shares ? space : ZERO_SPACE_OWN);
    assert_true(b->bytes == (size_t)floats * sizeof(float));
}

/* ---- JOINs ---- */

static void check_staging(const zero_schedule *s, const zero_instruction *i)
{
    const zero_layout *layout = zero_schedule_tp_layout(s);
    for (int k = 0; k < zero_exchange_collectives(s, i->op, i->join); k++) {
        zero_collective_spec spec = zero_exchange_collective(s, i->op, i->join, k);
        size_t bytes = zero_collective_staging(&spec, layout);
        assert_ok(zero_collective_check(&spec, layout));
        if (zero_algorithm_get(spec.algorithm)->bounds_staging)
            assert_true(bytes <= (size_t)s->input.bucket * sizeof(float));
        if (bytes > 0) assert_true(s->buffers[i->staging].bytes >= bytes);
    }
}

/* The part joins: JOIN follows at once, with a table row of its kind and length. */
static void check_join(const zero_schedule *s, const zero_program *p, int at,
                       const zero_unit_part *part)
{
    const zero_instruction *i = &p->code[at + 1];
    int T = tp_ranks(s);
    bool gathers = part->join == ZERO_JOIN_GATHER, shares = zero_schedule_join_shares(s);
    assert_true(at + 1 < p->length && i->op == ZERO_OP_JOIN);
    assert_int_equal(i->in, p->code[at].joint);
    assert_int_equal(i->part, p->code[at].part);
    assert_int_equal(s->joins[i->join].kind, part->join);
    assert_true(s->joins[i->join].count == part->count);
    check_buffer(s, i->in, shares, ZERO_SPACE_TP_PART, part->count);
    check_buffer(s, i->buffer, shares, ZERO_SPACE_TP_NODE,
                 gathers ? part->count * T : part->count);
    assert_int_equal(i->in == i->buffer, !shares && !gathers);
    check_staging(s, i);
    if (s->input.serial) assert_int_equal(p->code[at + 2].op, ZERO_OP_JOIN_WAIT);
}

/* The part waits for the last JOIN before it. No other JOIN begins before the part has
 * ended, whose result neighbours would write to where this one's is read. */
static void check_wait(const zero_schedule *s, const zero_program *p, int at)
{
    int wait = at - 1, join;
    while (s->input.serial && p->code[wait].op != ZERO_OP_JOIN_WAIT) wait--;
    const zero_instruction *i = &p->code[wait];
    assert_int_equal(i->op, ZERO_OP_JOIN_WAIT);
    for (join = at - 1; p->code[join].op != ZERO_OP_JOIN; join--) assert_true(join > 0);
    assert_true(join < wait);
    assert_int_equal(i->join, p->code[join].join);
    assert_int_equal(i->in, p->code[join].in);
    assert_int_equal(i->buffer, p->code[join].buffer);
    assert_int_equal(p->code[at].joined, i->buffer);
}

static void check_part(const zero_schedule *s, zero_program_kind kind, int at)
{
    const zero_program *p = &s->programs[kind];
    const zero_instruction *i = &p->code[at];
    zero_unit_part part = part_of(s, kind, i);
    bool joins = part.join != ZERO_JOIN_NONE;
    if (i->part > 0)
        assert_true(laws_computes(p->code[at - 1].op) || is_join(p->code[at - 1].op));
    check_next(s, p, kind, at);
    assert_true(joins == (i->joint != ZERO_NO_BUFFER));
    assert_true(part.waits == (i->joined != ZERO_NO_BUFFER));
    if (tp_ranks(s) == 1) return;
    if (joins) check_join(s, p, at, &part);
    if (part.waits) check_wait(s, p, at);
}

static void check_program(const zero_schedule *s, zero_program_kind kind)
{
    const zero_program *p = &s->programs[kind];
    bool has_parts = zero_share_has_parts(&s->input.model->share);
    int joins = 0, waits = 0;
    for (int at = 0; at < p->length; at++) {
        joins += p->code[at].op == ZERO_OP_JOIN;
        waits += p->code[at].op == ZERO_OP_JOIN_WAIT;
        assert_true(joins - waits == 0 || joins - waits == 1); /* one in flight */
        if (!laws_computes(p->code[at].op)) continue;
        assert_true(has_parts == (p->code[at].part != ZERO_PART_ALL));
        if (has_parts) check_part(s, kind, at);
    }
    assert_int_equal(joins, waits);
    if (tp_ranks(s) == 1) assert_int_equal(joins, 0);
}

static void check_once(const zero_schedule *s)
{
    for (int a = 0; a < s->n_joins; a++)
        for (int b = 0; b < a; b++)
            assert_false(s->joins[a].kind == s->joins[b].kind &&
                         s->joins[a].count == s->joins[b].count &&
                         s->joins[a].collects == s->joins[b].collects);
}

void laws_check_joins(const zero_schedule *s)
{
    for (int kind = 0; kind < ZERO_PROGRAMS; kind++)
        check_program(s, (zero_program_kind)kind);
    check_once(s);
}

/* ---- between the ranks of a TP group ---- */

static int64_t address(const zero_schedule *s, int buffer, int64_t element)
{
    const zero_buffer *b = &s->buffers[buffer];
    int rank = s->input.model->share.rank;
    int64_t part = b->space == ZERO_SPACE_TP_PART ? (int64_t)s->extent[b->space] : 0;
    int local = zero_schedule_tp_layout(s)->local_of[rank];
    return part * local + (int64_t)b->offset + element * (int64_t)sizeof(float);
}

/* The next rank's `in` is where the collectives look for it. */
static void check_neighbour(const zero_schedule *a, const zero_schedule *b, int join)
{
    int p = a->input.model->share.rank;
    const zero_join_exchange *x = &a->joins[join], *y = &b->joins[join];
    assert_true(x->kind == y->kind && x->count == y->count && x->collects == y->collects);
    for (int k = 0; k < zero_exchange_collectives(a, ZERO_OP_JOIN, join); k++) {
        zero_collective_spec spec = zero_exchange_collective(a, ZERO_OP_JOIN, join, k);
        bool of_sum = x->kind == ZERO_JOIN_SUM && k == 1;
        bool is_in_whole = of_sum || (x->collects && x->in == x->out);
        int64_t piece = of_sum ? spec.count : x->count;
        int64_t here = is_in_whole ? p * piece : 0;
        int64_t there = is_in_whole ? (p + 1) * piece : 0;
        assert_true((int64_t)spec.in_apart ==
                    address(b, of_sum ? y->out : y->in, there) -
                        address(a, of_sum ? x->out : x->in, here));
        assert_true(spec.one_out == (spec.kind == ZERO_ALL_GATHER));
    }
}

static void check_same_window(const zero_schedule *a, const zero_schedule *b)
{
    assert_int_equal(a->n_buffers, b->n_buffers);
    for (int id = 0; id < a->n_buffers; id++) {
        const zero_buffer *x = &a->buffers[id], *y = &b->buffers[id];
        assert_int_equal(x->space, y->space);
        if (x->space != ZERO_SPACE_TP_PART && x->space != ZERO_SPACE_TP_NODE) continue;
        assert_true(x->offset == y->offset && x->bytes == y->bytes);
        assert_true(x->first == y->first && x->last == y->last);
    }
    assert_true(a->extent[ZERO_SPACE_TP_PART] == b->extent[ZERO_SPACE_TP_PART]);
    assert_true(a->extent[ZERO_SPACE_TP_NODE] == b->extent[ZERO_SPACE_TP_NODE]);
}

/* The ranks of a node together bring what lies there once. */
static void check_brought(int n, const zero_schedule *s)
{
    const zero_layout *layout = zero_schedule_tp_layout(s);
    for (int node = 0; node < layout->n_nodes; node++) {
        size_t brought = 0;
        for (int p = 0; p < n; p++)
            if (layout->node_of[p] == node)
                brought += s[p].tp_window_bytes - s[p].extent[ZERO_SPACE_TP_PART];
        assert_true(brought >= s->extent[ZERO_SPACE_TP_NODE]);
    }
}

void laws_check_tp_group(int n, const zero_schedule *s)
{
    const zero_layout *layout = zero_schedule_tp_layout(s);
    bool shares = n > 1 && zero_schedule_join_shares(s);
    int64_t sent = 0, received = 0;
    for (int p = 0; p < n; p++) {
        zero_traffic t = zero_schedule_traffic(&s[p], ZERO_PROGRAM_STEP, ZERO_OP_JOIN);
        zero_traffic c = zero_schedule_traffic(&s[p], ZERO_PROGRAM_STEP, ZERO_OP_COLLECT);
        zero_traffic_add(&t, 1, &c);
        zero_volume v = zero_traffic_total(&t);
        sent += v.bytes_sent;
        received += v.bytes_received;
        assert_true(shares || s[p].tp_window_bytes == 0);
        assert_int_equal(s[p].n_joins, s->n_joins);
        if (p + 1 == n) continue;
        check_same_window(&s[p], &s[p + 1]);
        bool are_near = layout->node_of[p] == layout->node_of[p + 1];
        for (int join = 0; join < s->n_joins && shares && are_near; join++)
            check_neighbour(&s[p], &s[p + 1], join);
    }
    assert_true(sent == received);
    check_brought(n, s);
}
