/* The order in which a schedule communicates, and what it holds at each moment. */

#include "support/schedule_laws.h"

/* True if a use of parameters begins: FORWARD, or BACKWARD with its RECOMPUTE. All parts of
 * a pass are one use. */
static bool is_use(const zero_instruction *i)
{
    bool begins = i->part == ZERO_PART_ALL || i->part == 0;
    return (i->op == ZERO_OP_FORWARD || i->op == ZERO_OP_BACKWARD) && begins;
}

/* ---- begin and end ---- */

static void check_reduce(const zero_schedule *s, const zero_program *p, int at)
{
    int end = at + 1;
    for (; p->code[end].op != ZERO_OP_REDUCE_WAIT; end++) {
        assert_true(end + 1 < p->length);
        assert_true(p->code[end].op != ZERO_OP_REDUCE); /* one at a time */
    }
    assert_int_equal(p->code[end].group, p->code[at].group);
    if (s->input.serial) assert_int_equal(end, at + 1);
}

/* A computation hides a reduction, unless another group's is due or nothing is left to do. */
static void check_hidden_reduce(const zero_schedule *s, const zero_program *p, int at)
{
    if (s->input.serial) return;
    for (; p->code[at].op != ZERO_OP_REDUCE_WAIT; at++)
        if (laws_computes(p->code[at].op)) return;
    for (; at < p->length && p->code[at].op != ZERO_OP_REDUCE; at++)
        assert_false(laws_computes(p->code[at].op));
}

/* ---- among replicas ---- */

/* Replicas add up a shard group's sum as soon as it is there, and once. Their ALL_REDUCE ends
 * after the next REDUCE has begun, unless the plan is serial or it is the last one. */
static void check_all_reduce(const zero_schedule *s, const zero_program *p, int at)
{
    const zero_instruction *reduce = &p->code[at];
    int begin = laws_find(p, at, ZERO_OP_ALL_REDUCE, LAWS_ANY);
    int end = laws_find(p, begin, ZERO_OP_ALL_REDUCE_WAIT, reduce->group);
    while (end < p->length && p->code[end].microbatch != reduce->microbatch)
        end = laws_find(p, end + 1, ZERO_OP_ALL_REDUCE_WAIT, reduce->group);
    assert_true(begin < p->length && end < p->length);
    const zero_instruction *i = &p->code[begin];
    assert_true(i->group == reduce->group && i->microbatch == reduce->microbatch);
    assert_true(i->in == reduce->buffer && i->buffer == reduce->buffer);
    assert_true(i->staging == p->code[end].staging && i->buffer == p->code[end].buffer);
    int next = laws_find(p, begin, ZERO_OP_REDUCE, LAWS_ANY);
    if (s->input.serial)
        assert_int_equal(end, begin + 1);
    else if (next < p->length)
        assert_true(next < end && end < laws_find(p, next + 1, ZERO_OP_REDUCE, LAWS_ANY));
    for (int k = begin + 1; k < end; k++) /* one at a time */
        assert_true(p->code[k].op != ZERO_OP_ALL_REDUCE);
}

static void check_gather(const zero_schedule *s, const zero_program *p, int at)
{
    const zero_instruction *i = &p->code[at];
    if (!s->input.serial) return;
    assert_true(at + 1 < p->length && p->code[at + 1].op == ZERO_OP_GATHER_WAIT);
    assert_int_equal(p->code[at + 1].group, i->group);
}

/* ---- stage 3: what is held, and for what ---- */

/* A unit whose backward needs no parameters needs them to recompute. */
static bool reads(const zero_schedule *s, const zero_instruction *i, int g)
{
    const zero_unit *unit = &s->input.model->units[i->unit];
    bool recomputes = s->input.recompute && i->unit < s->input.model->n_units - 1 &&
                      unit->sizes(unit, 1, 1).saved > 0;
    if (i->op == ZERO_OP_BACKWARD && unit->backward_without_params && !recomputes)
        return false;
    return laws_unit_has(s, i->unit, g);
}

/* True if the use at `at`, or one of the `ahead` that follow, reads group g. */
static bool is_read_soon(const zero_schedule *s, const zero_program *p, int at,
                         int64_t ahead, int g)
{
    for (int64_t n = 0; at < p->length && n <= ahead; at++) {
        if (!is_use(&p->code[at])) continue;
        if (reads(s, &p->code[at], g)) return true;
        n++;
    }
    return false;
}

/* The group whose parameters a buffer holds. */
static int gathered_group(const zero_program *p, int buffer)
{
    int at = 0;
    while (p->code[at].op != ZERO_OP_GATHER || p->code[at].buffer != buffer) at++;
    return p->code[at].group;
}

/* The only parameters alive at a use are those that it or the next `prefetch` uses read;
 * with node_parameters any later use. */
static void check_depth(const zero_schedule *s, const zero_program *p,
                        zero_program_kind kind)
{
    for (int id = 0; id < s->n_buffers; id++) {
        const zero_buffer *b = &s->buffers[id];
        if (b->class != ZERO_CLASS_GATHERED || b->program != kind) continue;
        int g = gathered_group(p, id);
        int64_t ahead = s->input.node_parameters ? p->length : s->input.prefetch;
        for (int at = b->first; at <= b->last; at++)
            if (is_use(&p->code[at])) assert_true(is_read_soon(s, p, at, ahead, g));
    }
}

/* A gathered buffer is read before its release, and released before it is gathered again. */
static void check_release(const zero_schedule *s, const zero_program *p, int at)
{
    const zero_instruction *i = &p->code[at];
    int uses = 0;
    for (int next = at + 1; next < p->length; next++) {
        const zero_instruction *later = &p->code[next];
        uses += laws_computes(later->op) && reads(s, later, i->group);
        if (later->op == ZERO_OP_RELEASE && later->group == i->group) {
            assert_int_equal(later->buffer, i->buffer);
            assert_true(uses > 0);
            return;
        }
        assert_false(later->op == ZERO_OP_GATHER && later->group == i->group);
    }
    fail_msg("group %d is gathered at %d and never released", i->group, at);
}

static void check_gathers(const zero_schedule *s, const zero_program *p, int at)
{
    bool is_piece = s->groups[p->code[at].group].param_held == ZERO_HOLD_PIECE;
    check_gather(s, p, at);
    if (is_piece) check_release(s, p, at);
}

/* node_parameters: a program gathers a group once, and no earlier than `prefetch` uses
 * before the first one that reads it. */
static void check_once(const zero_schedule *s, const zero_program *p, int at)
{
    int g = p->code[at].group;
    if (s->groups[g].param_held != ZERO_HOLD_PIECE) return;
    assert_true(is_read_soon(s, p, at, s->input.prefetch, g));
    assert_int_equal(laws_find(p, at + 1, ZERO_OP_GATHER, g), p->length);
}

/* With prefetch the first use after GATHER is not the one that reads it, unless the program
 * has just begun. */
static void check_hidden_gather(const zero_schedule *s, const zero_program *p, int at)
{
    bool is_piece = s->groups[p->code[at].group].param_held == ZERO_HOLD_PIECE;
    bool has_begun = false;
    for (int k = 0; k < at; k++) has_begun = has_begun || is_use(&p->code[k]);
    if (!is_piece || !has_begun || s->input.serial || s->input.prefetch == 0) return;
    int next = at + 1;
    while (!is_use(&p->code[next])) next++;
    assert_false(reads(s, &p->code[next], p->code[at].group));
}

void laws_check_order(const zero_schedule *s)
{
    for (int kind = 0; kind < ZERO_PROGRAMS; kind++) {
        const zero_program *p = &s->programs[kind];
        for (int at = 0; at < p->length; at++) {
            if (p->code[at].op == ZERO_OP_REDUCE) check_reduce(s, p, at);
            if (p->code[at].op == ZERO_OP_REDUCE) check_hidden_reduce(s, p, at);
            bool has_replicas =
                s->input.shard_ranks > 0 && s->input.shard_ranks < s->input.n_ranks;
            if (p->code[at].op == ZERO_OP_REDUCE && has_replicas)
                check_all_reduce(s, p, at);
            assert_true(has_replicas || p->code[at].op != ZERO_OP_ALL_REDUCE);
            if (p->code[at].op != ZERO_OP_GATHER) continue;
            if (kind != ZERO_PROGRAM_PROLOGUE) check_gathers(s, p, at);
            if (kind != ZERO_PROGRAM_PROLOGUE) check_hidden_gather(s, p, at);
            if (s->input.node_parameters) check_once(s, p, at);
        }
        check_depth(s, p, (zero_program_kind)kind);
    }
}
