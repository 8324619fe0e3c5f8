/* A device: what lies there and beside it, and updates by the host's CPU. */
#include "sharding/schedule_device.h"
#include "support/schedule_laws.h"

/* True if the host's CPU updates beside a device. */
static bool is_beside(const zero_schedule *s)
{
    return s->input.device && s->input.offload != ZERO_OFFLOAD_OFF;
}

static void check_space(const zero_schedule *s, const zero_buffer *b)
{
    bool is_staging = b->class == ZERO_CLASS_BUCKETS;
    if (!s->input.device) {
        assert_true(b->space != ZERO_SPACE_HOST);
        return;
    }
    if (b->space == ZERO_SPACE_FILE) {
        assert_true(is_beside(s) && !s->input.offload_host);
        assert_int_equal(b->class, ZERO_CLASS_OPTIMIZER);
        return;
    }
    assert_true(b->space != ZERO_SPACE_NODE);
    if (b->space == ZERO_SPACE_PART) assert_true(is_staging);
    if (is_staging) assert_true(b->space != ZERO_SPACE_OWN);
    bool is_host = b->space == ZERO_SPACE_HOST && b->program == ZERO_PROGRAM_ALL;
    if (b->class == ZERO_CLASS_SLOTS) assert_true(is_host);
    if (is_beside(s) && b->class == ZERO_CLASS_OPTIMIZER) {
        assert_true(is_host && b->type == ZERO_FP32);
        return;
    }
    bool is_copy = b->class == ZERO_CLASS_IN_FLIGHT || b->class == ZERO_CLASS_GATHERED;
    if (is_beside(s) && is_copy && is_host) return; /* of states on their way */
    bool is_states = b->class == ZERO_CLASS_PARAMETERS || b->class == ZERO_CLASS_GATHERED ||
                     b->class == ZERO_CLASS_GRADIENTS || b->class == ZERO_CLASS_OPTIMIZER ||
                     b->class == ZERO_CLASS_IN_FLIGHT ||
                     b->class == ZERO_CLASS_ACTIVATIONS || b->class == ZERO_CLASS_KEPT ||
                     b->class == ZERO_CLASS_ACCUMULATORS;
    if (is_states) assert_true(b->space == ZERO_SPACE_OWN);
}

/* Arithmetic on states beside a device, and their transfers. */
static bool is_on_host(const zero_schedule *s, const zero_instruction *i)
{
    switch (i->op) {
    case ZERO_OP_NORM:
    case ZERO_OP_UPDATE:
    case ZERO_OP_RECORD:
    case ZERO_OP_DELAY:
    case ZERO_OP_FETCH:
    case ZERO_OP_FETCH_WAIT:
    case ZERO_OP_STORE:
    case ZERO_OP_STORE_WAIT: return is_beside(s);
    default: return false;
    }
}

/* True for instructions of which only the host uses the operands, in any plan with a device. */
static bool is_check(const zero_instruction *i)
{
    return i->op == ZERO_OP_VERIFY || i->op == ZERO_OP_COMPARE || i->op == ZERO_OP_RECORD;
}

/* The host's side of a copy is the host's, and an instruction has no other operand there but
 * staging, what checks need, and all operands of arithmetic on the host. */
static void check_host(const zero_schedule *s, const zero_instruction *i)
{
    int list[ZERO_OPERANDS], n = laws_named_buffers(i, list);
    for (int k = 0; k < n; k++) {
        bool is_host = s->buffers[list[k]].space == ZERO_SPACE_HOST;
        bool is_expected = list[k] == i->host || is_on_host(s, i) ||
                           (s->input.device && is_check(i) && list[k] == i->buffer) ||
                           (s->input.device && list[k] == i->hashes);
        if (list[k] == i->file) continue; /* a block, in the file */
        assert_true(is_host == is_expected || (list[k] == i->staging && s->input.device));
    }
    bool copies = i->op == ZERO_OP_LOAD || (i->op == ZERO_OP_OVERFLOW && !is_beside(s));
    if (copies) assert_true((i->host != ZERO_NO_BUFFER) == (s->input.device == 1));
    bool computes = i->op == ZERO_OP_NORM || i->op == ZERO_OP_UPDATE;
    assert_true(i->on_host == (is_on_host(s, i) && computes));
}

/* ---- optimizer states beside a device ---- */

/* True if the instruction writes the gradient of a group in its last place but one, or there. */
static bool makes_gradient(const zero_schedule *s, const zero_instruction *i, int g)
{
    const zero_group_state *state = &s->groups[g];
    if (i->op == ZERO_OP_BACKWARD && laws_unit_has(s, i->unit, g)) return true;
    return i->group == g && i->buffer == state->grad &&
           (i->op == ZERO_OP_ROUND || i->op == ZERO_OP_ACCUMULATE ||
            i->op == ZERO_OP_REDUCE_WAIT || i->op == ZERO_OP_GATHER_WAIT);
}

static int last_update(const zero_program *p, int g)
{
    int at = p->length - 1;
    while (at >= 0 && (p->code[at].op != ZERO_OP_UPDATE || p->code[at].group != g)) at--;
    return at;
}

/* Only the stream, and the wait for the last GATHER, stand between an update and its STORE_PARAM; a
 * delayed one waits for the step's end. */
static void check_stored(const zero_schedule *s, const zero_program *p, int g)
{
    int store = laws_find(p, 0, ZERO_OP_STORE_PARAM, g), last = last_update(p, g);
    assert_true(last < store && store < p->length);
    assert_int_equal(laws_find(p, store + 1, ZERO_OP_STORE_PARAM, g), p->length);
    if (s->input.offload == ZERO_OFFLOAD_DELAYED || last < 0) return;
    for (int at = last + 1; at < store; at++)
        assert_int_equal(p->code[at].op, ZERO_OP_STORE);
}

/* A gradient is fetched as soon as it is final: right after what makes it so, but where stage 0 ends
 * its gathers. NORM waits for it, and an UPDATE of the same step stands after it. */
static void check_copies_of(const zero_schedule *s, const zero_program *p, int g)
{
    int fetch = laws_find(p, 0, ZERO_OP_FETCH_GRAD, g),
        norm = laws_find(p, 0, ZERO_OP_NORM, g);
    int update = laws_find(p, 0, ZERO_OP_UPDATE, g);
    assert_true(fetch < norm && norm < p->length);
    if (s->input.offload == ZERO_OFFLOAD_END) assert_true(norm < update);
    if (s->input.offload == ZERO_OFFLOAD_BACKWARD) assert_true(fetch < update);
    assert_true(makes_gradient(s, &p->code[fetch - 1], g) || s->input.serial);
    for (int at = fetch + 1; at < p->length; at++)
        assert_false(makes_gradient(s, &p->code[at], g));
    assert_int_equal(laws_find(p, fetch + 1, ZERO_OP_FETCH_GRAD, g), p->length);
}

/* `lazy`: parameters of a unit are on their way before the forward pass of the unit before it begins. */
static void check_hidden(const zero_schedule *s, const zero_program *p)
{
    const zero_model *model = s->input.model;
    if (s->input.offload != ZERO_OFFLOAD_LAZY || s->input.serial) return;
    for (int u = 1; u < model->n_units; u++) {
        int forward = 0;
        while (p->code[forward].op != ZERO_OP_FORWARD || p->code[forward].unit != u - 1)
            forward++;
        for (int k = 0; k < model->units[u].n_groups; k++)
            assert_true(laws_find(p, 0, ZERO_OP_STORE_PARAM, model->units[u].groups[k]) <
                        forward);
    }
}

static size_t held_bytes(const zero_schedule *s)
{
    bool is_all = zero_stage_at(s->input.stage)->optimizer == ZERO_HOLD_WHOLE;
    int64_t sum = 0;
    for (int g = 0; g < s->input.model->n_groups; g++) {
        const zero_partition *part = &s->groups[g].partition;
        sum += is_all ? part->n_params
                      : zero_range_len(zero_partition_shard(part, s->input.rank));
    }
    return (size_t)sum * zero_type_size(s->input.type);
}

/* Each step moves what this rank updates once in each direction; but for the last step's update, which
 * the epilogue may make, nothing else moves it. */
static void check_beside(const zero_schedule *s)
{
    bool is_late =
        s->input.offload == ZERO_OFFLOAD_LAZY || s->input.offload == ZERO_OFFLOAD_DELAYED;
    for (int kind = 0; kind < ZERO_PROGRAMS; kind++) {
        bool is_step = kind == ZERO_PROGRAM_STEP;
        bool moves = is_beside(s) && is_step;
        bool stores = moves || (is_beside(s) && is_late && kind == ZERO_PROGRAM_EPILOGUE);
        zero_copied_bytes sum = zero_schedule_copies(s, (zero_program_kind)kind);
        assert_true(sum.gradients == (moves ? held_bytes(s) : 0));
        assert_true(sum.parameters == (stores ? held_bytes(s) : 0));
        assert_true(!moves || sum.squares == 0);
        if (moves) check_hidden(s, &s->programs[kind]);
        for (int g = 0; g < s->input.model->n_groups; g++) {
            if (moves) check_copies_of(s, &s->programs[kind], g);
            if (stores) check_stored(s, &s->programs[kind], g);
        }
    }
}

void laws_check_device(const zero_schedule *s)
{
    check_beside(s);
    for (int id = 0; id < s->n_buffers; id++) check_space(s, &s->buffers[id]);
    for (int kind = 0; kind < ZERO_PROGRAMS; kind++)
        for (int at = 0; at < s->programs[kind].length; at++)
            check_host(s, &s->programs[kind].code[at]);
    assert_true(s->align % (s->input.device ? ZERO_MEMORY_ALIGN : ZERO_BUFFER_ALIGN) == 0);
}
