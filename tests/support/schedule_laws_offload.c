/* Slower tiers: how transfers of the file begin and end, how far they may run ahead, and their bytes. */

#include "sharding/offload.h"
#include "support/schedule_laws.h"

#define PAGE 4096

/* ---- who touches a group ---- */

static bool is_of_stream(const zero_instruction *i)
{
    return i->op == ZERO_OP_FETCH || i->op == ZERO_OP_FETCH_WAIT ||
           i->op == ZERO_OP_STORE || i->op == ZERO_OP_STORE_WAIT ||
           i->op == ZERO_OP_STORE_PARAM ||
           (i->op == ZERO_OP_UPDATE && (i->file != ZERO_NO_BUFFER || i->on_host));
}

/* True if the instruction computes with the group's parameters or writes its gradient. */
static bool is_of_unit_with(const zero_schedule *s, const zero_instruction *i, int g)
{
    return i->unit >= 0 && i->op <= ZERO_OP_BACKWARD && laws_unit_has(s, i->unit, g);
}

/* True if the instruction reads or writes the group's parameters or its gradient. */
static bool touches(const zero_schedule *s, const zero_instruction *i, int g)
{
    if (is_of_unit_with(s, i, g)) return true;
    if (i->group != g) return false;
    switch (i->op) {
    case ZERO_OP_GATHER:
    case ZERO_OP_GATHER_WAIT:
    case ZERO_OP_ROUND:
    case ZERO_OP_ACCUMULATE:
    case ZERO_OP_REDUCE:
    case ZERO_OP_REDUCE_WAIT:
    case ZERO_OP_FETCH_PARAM:
    case ZERO_OP_FETCH_PARAM_WAIT: return true;
    default: return false;
    }
}

/* No instruction in (after, end) but those that read updated parameters disturbs an update of g. */
static void check_undisturbed(const zero_schedule *s, const zero_program *p, int after,
                              int end, int g)
{
    for (int at = after + 1; at < end; at++) assert_false(touches(s, &p->code[at], g));
}

/* ---- the place of an update ---- */

static int last_of_checks(const zero_program *p)
{
    int last = -1;
    for (int at = 0; at < p->length; at++)
        if (p->code[at].op == ZERO_OP_OVERFLOW || p->code[at].op == ZERO_OP_VERIFY ||
            p->code[at].op == ZERO_OP_COMPARE)
            last = at;
    return last;
}

/* `lazy`, `delayed`: the updates of a step are made by the next program that has any. */
static bool is_of_last_step(const zero_schedule *s)
{
    return s->input.offload == ZERO_OFFLOAD_LAZY ||
           s->input.offload == ZERO_OFFLOAD_DELAYED;
}

/* No other instruction writes or reads an update's gradient and parameters before it. */
static void check_apart(const zero_schedule *s, const zero_program *p, int at)
{
    const zero_group_state *group = &s->groups[p->code[at].group];
    bool is_exact = s->input.type == ZERO_FP32; /* masters are updated in place */
    int param = s->input.device && !is_exact ? group->host_param : group->late_param;
    assert_true(p->code[at].grad[0] == group->late_grad);
    assert_true(p->code[at].param[0] == param);
    for (int before = 0; before < at; before++) {
        const zero_instruction *i = &p->code[before];
        bool moves = i->op == ZERO_OP_PUBLISH || i->op == ZERO_OP_DELAY ||
                     i->op == ZERO_OP_STORE_PARAM;
        assert_false(moves && i->group == p->code[at].group);
    }
}

/* In fp32 FETCH reads blocks that FETCH_PARAM reads, too: never at the same time. */
static void check_one_reader(const zero_program *p, int at)
{
    for (int before = p->code[at].after + 1; before < at; before++) {
        zero_op op = p->code[before].op;
        bool reads = op == ZERO_OP_FETCH_PARAM || op == ZERO_OP_FETCH_PARAM_WAIT;
        assert_false(reads && p->code[before].group == p->code[at].group);
    }
}

static void check_place(const zero_schedule *s, const zero_program *p, int at)
{
    const zero_instruction *i = &p->code[at];
    bool updates = i->op == ZERO_OP_UPDATE, stores = i->op == ZERO_OP_STORE_PARAM;
    assert_true(i->after >= -1 && i->after < at);
    if (i->op == ZERO_OP_FETCH && s->input.type == ZERO_FP32) check_one_reader(p, at);
    switch (s->input.offload) {
    case ZERO_OFFLOAD_END: /* no state moves before all checks */
        assert_true(i->after >= last_of_checks(p));
        if (updates || stores) check_undisturbed(s, p, i->after, at, i->group);
        break;
    case ZERO_OFFLOAD_LAZY: /* whenever it runs, the gradient is that of the last step */
        if (updates || stores) check_undisturbed(s, p, -1, at, i->group);
        break;
    case ZERO_OFFLOAD_DELAYED: /* beside the step, with places of its own */
        if (updates) check_apart(s, p, at);
        if (stores) check_undisturbed(s, p, i->after, at, i->group);
        if (stores) assert_true(i->after >= last_of_checks(p));
        break;
    default:
        if (!updates && !stores) break;
        check_undisturbed(s, p, i->after, at, i->group);
        assert_true(last_of_checks(p) > at);
    }
    if (!updates || is_of_last_step(s)) return;
    for (int next = at + 1; next < p->length; next++) { /* the gradient was final */
        assert_false(is_of_unit_with(s, &p->code[next], i->group));
        assert_false(p->code[next].op == ZERO_OP_REDUCE_WAIT &&
                     p->code[next].group == i->group);
    }
}

/* ---- blocks and slots ---- */

typedef enum { OUTSIDE, FETCHING, FETCHED, UPDATED, STORING, WRITTEN } block_state;

typedef struct {
    block_state *state; /* [n_buffers] of blocks */
    int *holder;        /* [n_slots] the block in a slot, or ZERO_NO_BUFFER */
} stream;

static bool updates_in(const zero_schedule *s, zero_program_kind kind)
{
    if (s->input.offload == ZERO_OFFLOAD_OFF) return false;
    return kind == ZERO_PROGRAM_STEP ||
           (is_of_last_step(s) && kind == ZERO_PROGRAM_EPILOGUE);
}

static void advance(const zero_schedule *s, stream *st, const zero_instruction *i)
{
    static const block_state before[ZERO_OP_KINDS] = {[ZERO_OP_FETCH] = OUTSIDE,
                                                      [ZERO_OP_FETCH_WAIT] = FETCHING,
                                                      [ZERO_OP_UPDATE] = FETCHED,
                                                      [ZERO_OP_STORE] = UPDATED,
                                                      [ZERO_OP_STORE_WAIT] = STORING};
    const zero_group_state *group = &s->groups[i->group];
    int slot = i->buffer - s->first_slot;
    assert_true(slot >= 0 && slot < s->n_slots);
    assert_true(i->file >= group->first_block &&
                i->file < group->first_block + group->n_blocks);
    assert_int_equal(st->state[i->file], before[i->op]);
    st->state[i->file]++;
    assert_int_equal(st->holder[slot], i->op == ZERO_OP_FETCH ? ZERO_NO_BUFFER : i->file);
    st->holder[slot] = i->op == ZERO_OP_STORE_WAIT ? ZERO_NO_BUFFER : i->file;
}

/* Every block of the group is fetched, updated and stored once, or none is. */
static void check_blocks(const zero_schedule *s, const stream *st, int g,
                         block_state expected)
{
    const zero_group_state *group = &s->groups[g];
    for (int k = 0; k < group->n_blocks; k++)
        assert_int_equal(st->state[group->first_block + k], expected);
}

static void check_stream(const zero_schedule *s, zero_program_kind kind)
{
    const zero_program *p = &s->programs[kind];
    bool is_lazy = s->input.offload == ZERO_OFFLOAD_LAZY;
    stream st = {.state = calloc((size_t)s->n_buffers + 1, sizeof *st.state),
                 .holder = calloc((size_t)s->n_slots + 1, sizeof *st.holder)};
    assert_true(st.state && st.holder);
    for (int k = 0; k < s->n_slots; k++) st.holder[k] = ZERO_NO_BUFFER;
    for (int at = 0; at < p->length; at++) {
        const zero_instruction *i = &p->code[at];
        if (i->op == ZERO_OP_FETCH_PARAM) /* it reads the latest parameters */
            check_blocks(s, &st, i->group,
                         is_lazy && updates_in(s, kind) ? WRITTEN : OUTSIDE);
        if (!is_of_stream(i)) continue;
        assert_true(updates_in(s, kind));
        if (i->file != ZERO_NO_BUFFER) advance(s, &st, i);
        check_place(s, p, at);
    }
    for (int g = 0; g < s->input.model->n_groups; g++)
        check_blocks(s, &st, g, updates_in(s, kind) ? WRITTEN : OUTSIDE);
    free(st.state);
    free(st.holder);
}

/* GATHER of a published group follows its UPDATEs. */
static void check_published(const zero_schedule *s, zero_program_kind kind)
{
    const zero_program *p = &s->programs[kind];
    for (int at = 0; at < p->length; at++) {
        const zero_instruction *i = &p->code[at];
        if (i->op != ZERO_OP_GATHER || i->in != s->groups[i->group].param ||
            i->in == ZERO_NO_BUFFER || !updates_in(s, kind))
            continue;
        bool is_published = s->groups[i->group].param_held == ZERO_HOLD_WHOLE;
        bool is_lazy = s->input.offload == ZERO_OFFLOAD_LAZY;
        for (int next = at + 1; (is_published || is_lazy) && next < p->length; next++)
            assert_false((p->code[next].op == ZERO_OP_UPDATE ||
                          p->code[next].op == ZERO_OP_STORE_PARAM ||
                          p->code[next].op == ZERO_OP_PUBLISH) &&
                         p->code[next].group == i->group);
    }
}

/* ---- begin and end of the others ---- */

static const zero_op ends[ZERO_OP_KINDS] = {[ZERO_OP_FETCH_PARAM] =
                                                ZERO_OP_FETCH_PARAM_WAIT,
                                            [ZERO_OP_SAVE] = ZERO_OP_SAVE_WAIT,
                                            [ZERO_OP_RESTORE] = ZERO_OP_RESTORE_WAIT};

static bool is_about_same(const zero_instruction *a, const zero_instruction *b)
{
    return a->unit == b->unit && a->group == b->group && a->file == b->file &&
           a->buffer == b->buffer;
}

/* The instruction that ends the transfer that begins at `at`. */
static int find_end(const zero_program *p, int at)
{
    const zero_instruction *i = &p->code[at];
    for (int next = at + 1; next < p->length; next++) {
        const zero_instruction *later = &p->code[next];
        if (later->op == ends[i->op] && is_about_same(later, i)) return next;
        assert_false(later->op == i->op && is_about_same(later, i));
    }
    fail_msg("%s at %d has no end", zero_op_name(i->op), at);
    return -1;
}

/* A piece from the file is gathered next. */
static void check_gathered(const zero_program *p, int begin, int end)
{
    int at = laws_find(p, end + 1, ZERO_OP_GATHER, p->code[begin].group);
    assert_true(at < p->length);
    assert_int_equal(p->code[at].in, p->code[begin].buffer);
}

/* Saved activations come back before their place in the file is used again. */
static void check_restored(const zero_program *p, int begin, int end)
{
    int at = begin + 1;
    while (at < p->length && p->code[at].file != p->code[begin].file) at++;
    assert_int_equal(at, end);
    for (at = end + 1; at < p->length && p->code[at].file != p->code[begin].file;) at++;
    assert_true(at < p->length && p->code[at].op == ZERO_OP_RESTORE);
    assert_int_equal(p->code[at].unit, p->code[begin].unit);
    assert_int_equal(p->code[at].microbatch, p->code[begin].microbatch);
}

static void check_transfer(const zero_schedule *s, const zero_program *p, int at)
{
    const zero_instruction *i = &p->code[at];
    int end = find_end(p, at);
    if (s->input.serial) assert_int_equal(end, at + 1);
    assert_true(s->buffers[i->buffer].offset % PAGE == 0);
    assert_true(s->buffers[i->buffer].bytes % PAGE == 0);
    if (i->op == ZERO_OP_FETCH_PARAM) check_gathered(p, at, end);
    if (i->op == ZERO_OP_SAVE) check_restored(p, at, end);
}

static void check_transfers(const zero_schedule *s, zero_program_kind kind)
{
    const zero_program *p = &s->programs[kind];
    for (int at = 0; at < p->length; at++)
        if (ends[p->code[at].op] != 0) check_transfer(s, p, at);
    for (int op = 0; op < ZERO_OP_KINDS; op++)
        if (ends[op] != 0)
            assert_int_equal(laws_count(s, kind, (zero_op)op, LAWS_ANY),
                             laws_count(s, kind, ends[op], LAWS_ANY));
    const int saves = laws_count(s, kind, ZERO_OP_SAVE, LAWS_ANY);
    assert_int_equal(saves, laws_count(s, kind, ZERO_OP_RESTORE, LAWS_ANY));
    if (s->input.offload_activations && kind == ZERO_PROGRAM_STEP) return;
    assert_int_equal(saves, 0);
}

/* ---- bytes ---- */

/* Blocks of a group with this many bytes for each element, each padded to pages. */
static size_t in_blocks(const zero_schedule *s, int g, size_t size)
{
    const zero_group_state *group = &s->groups[g];
    bool is_all = zero_stage_at(s->input.stage)->optimizer == ZERO_HOLD_WHOLE;
    int64_t left =
        is_all ? group->partition.padded
               : zero_range_len(zero_partition_piece(&group->partition, s->input.rank));
    size_t sum = 0;
    for (; left > 0; left -= ZERO_OFFLOAD_BLOCK) {
        size_t n = (size_t)(left < ZERO_OFFLOAD_BLOCK ? left : ZERO_OFFLOAD_BLOCK);
        sum += (n * size + PAGE - 1) / PAGE * PAGE;
    }
    return sum;
}

/* Parameters lie in the file unless they are held whole. */
static size_t param_bytes(const zero_schedule *s, int g)
{
    bool is_moved =
        s->input.offload_parameters && s->groups[g].partition.n_params > s->input.persist;
    assert_int_equal(is_moved, s->groups[g].param == ZERO_NO_BUFFER);
    return is_moved ? in_blocks(s, g, zero_type_size(s->input.type)) : 0;
}

static void check_program_bytes(const zero_schedule *s, zero_program_kind kind,
                                size_t states, size_t params)
{
    bool is_exact = s->input.type == ZERO_FP32, updates = updates_in(s, kind);
    zero_offload_traffic t = zero_offload_count(s, kind);
    size_t gathered = 0;
    for (int g = 0; g < s->input.model->n_groups; g++)
        gathered += param_bytes(s, g) * (size_t)laws_count(s, kind, ZERO_OP_FETCH_PARAM, g);
    assert_true(t.states.bytes_read == (updates ? states + (is_exact ? params : 0) : 0));
    assert_true(t.states.bytes_written == (updates ? states + params : 0));
    assert_true(t.parameters.bytes_read == gathered && t.parameters.writes == 0);
    assert_true(t.activations.bytes_read == t.activations.bytes_written);
    assert_true(t.activations.reads == t.activations.writes);
}

static void check_bytes(const zero_schedule *s)
{
    size_t states = 0, params = 0, size = s->input.type == ZERO_FP32 ? 8 : 12;
    for (int g = 0; g < s->input.model->n_groups; g++) {
        states += in_blocks(s, g, size);
        params += param_bytes(s, g);
    }
    assert_true(zero_offload_bytes(s, ZERO_CLASS_OPTIMIZER) == states);
    assert_true(zero_offload_bytes(s, ZERO_CLASS_PARAMETERS) == params);
    assert_true(s->extent[ZERO_SPACE_FILE] ==
                states + params + zero_offload_bytes(s, ZERO_CLASS_KEPT));
    for (int kind = 0; kind < ZERO_PROGRAMS; kind++)
        check_program_bytes(s, (zero_program_kind)kind, states, params);
}

/* ---- places ---- */

static void check_alignment(const zero_schedule *s)
{
    size_t most = 0;
    for (int id = 0; id < s->n_buffers; id++) {
        const zero_buffer *b = &s->buffers[id];
        if (b->space != ZERO_SPACE_FILE && b->class != ZERO_CLASS_SLOTS) continue;
        assert_true(b->offset % PAGE == 0 && b->bytes % PAGE == 0);
        assert_int_equal(b->program, ZERO_PROGRAM_ALL);
    }
    for (int g = 0; g < s->input.model->n_groups; g++) {
        const zero_group_state *group = &s->groups[g];
        for (int k = 0; k < group->n_blocks; k++) {
            size_t bytes = s->buffers[group->first_block + k].bytes;
            if (group->param == ZERO_NO_BUFFER)
                bytes += s->buffers[group->first_param_block + k].bytes;
            if (bytes > most) most = bytes;
        }
    }
    for (int k = 0; k < s->n_slots; k++) { /* the largest block fits, and just so */
        assert_int_equal(s->buffers[s->first_slot + k].class, ZERO_CLASS_SLOTS);
        assert_true(s->buffers[s->first_slot + k].bytes == most);
    }
}

/* ---- all ---- */

/* Without a file nothing of all this is there. Beside a device a delayed update keeps the gradient; its
 * parameters need no PUBLISH. */
static void check_resident(const zero_schedule *s)
{
    bool is_delayed = s->input.offload == ZERO_OFFLOAD_DELAYED;
    assert_int_equal(s->n_slots, 0);
    assert_true(s->align == (s->input.device ? ZERO_MEMORY_ALIGN : ZERO_BUFFER_ALIGN));
    for (int id = 0; id < s->n_buffers; id++)
        assert_true(s->buffers[id].space != ZERO_SPACE_FILE);
    for (int kind = 0; kind < ZERO_PROGRAMS; kind++)
        for (int at = 0; at < s->programs[kind].length; at++) {
            zero_op op = s->programs[kind].code[at].op;
            assert_true(op < ZERO_OP_PUBLISH || (op == ZERO_OP_DELAY && is_delayed));
        }
}

void laws_check_offload(const zero_schedule *s)
{
    for (int kind = 0; kind < ZERO_PROGRAMS; kind++) {
        check_stream(s, (zero_program_kind)kind);
        check_published(s, (zero_program_kind)kind);
    }
    if (s->input.offload == ZERO_OFFLOAD_OFF || s->input.offload_host) {
        check_resident(s);
        return;
    }
    assert_int_equal(s->n_slots, s->input.offload_depth);
    for (int kind = 0; kind < ZERO_PROGRAMS; kind++)
        check_transfers(s, (zero_program_kind)kind);
    check_bytes(s);
    check_alignment(s);
}
