/* A device: what lies there and beside it, and optimizer states in the host's memory. */
#include "sharding/schedule_device.h"
#include "support/schedule_laws.h"

static void check_space(const zero_schedule *s, const zero_buffer *b)
{
    bool is_staging = b->class == ZERO_CLASS_BUCKETS;
    if (!s->input.device) {
        assert_true(b->space != ZERO_SPACE_HOST);
        return;
    }
    assert_true(b->space != ZERO_SPACE_NODE && b->space != ZERO_SPACE_FILE);
    if (b->space == ZERO_SPACE_PART) assert_true(is_staging);
    if (is_staging) assert_true(b->space != ZERO_SPACE_OWN);
    bool is_host = b->space == ZERO_SPACE_HOST && b->program == ZERO_PROGRAM_ALL;
    if (s->input.offload_host && b->class == ZERO_CLASS_OPTIMIZER) {
        assert_true(is_host && b->type == ZERO_FP32);
        return;
    }
    bool is_copy = b->class == ZERO_CLASS_IN_FLIGHT || b->class == ZERO_CLASS_GATHERED;
    if (s->input.offload_host && is_copy && is_host) return; /* of states on their way */
    bool is_states = b->class == ZERO_CLASS_PARAMETERS || b->class == ZERO_CLASS_GATHERED ||
                     b->class == ZERO_CLASS_GRADIENTS || b->class == ZERO_CLASS_OPTIMIZER ||
                     b->class == ZERO_CLASS_IN_FLIGHT ||
                     b->class == ZERO_CLASS_ACTIVATIONS || b->class == ZERO_CLASS_KEPT ||
                     b->class == ZERO_CLASS_ACCUMULATORS;
    if (is_states) assert_true(b->space == ZERO_SPACE_OWN);
}

/* NORM, UPDATE and RECORD of states beside a device. */
static bool is_on_host(const zero_schedule *s, const zero_instruction *i)
{
    return s->input.offload_host &&
           (i->op == ZERO_OP_NORM || i->op == ZERO_OP_UPDATE || i->op == ZERO_OP_RECORD);
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
    int list[ZERO_MAX_OPERANDS], n = laws_named_buffers(i, list);
    for (int k = 0; k < n; k++) {
        bool is_host = s->buffers[list[k]].space == ZERO_SPACE_HOST;
        bool is_expected = list[k] == i->host || is_on_host(s, i) ||
                           (s->input.device && is_check(i) && list[k] == i->buffer);
        assert_true(is_host == is_expected || (list[k] == i->staging && s->input.device));
    }
    bool copies =
        i->op == ZERO_OP_LOAD || (i->op == ZERO_OP_OVERFLOW && !s->input.offload_host);
    if (copies) assert_true((i->host != ZERO_NO_BUFFER) == (s->input.device == 1));
    assert_true(i->on_host == (is_on_host(s, i) && i->op != ZERO_OP_RECORD));
}

/* ---- optimizer states beside a device ---- */

static int find(const zero_program *p, int from, zero_op op, int g)
{
    int at = from;
    while (at < p->length && (p->code[at].op != op || p->code[at].group != g)) at++;
    return at;
}

/* True if the instruction writes the gradient of a group in its last place but one, or there. */
static bool makes_gradient(const zero_schedule *s, const zero_instruction *i, int g)
{
    const zero_group_state *state = &s->groups[g];
    if (i->op == ZERO_OP_BACKWARD) {
        const zero_unit *unit = &s->input.model->units[i->unit];
        for (int k = 0; k < unit->n_groups; k++)
            if (unit->groups[k] == g) return true;
    }
    return i->group == g && i->buffer == state->grad &&
           (i->op == ZERO_OP_ROUND || i->op == ZERO_OP_ACCUMULATE ||
            i->op == ZERO_OP_REDUCE_WAIT || i->op == ZERO_OP_GATHER_WAIT);
}

/* A gradient is fetched as soon as it is final: right after what makes it so, but where stage 0 ends
 * its gathers. Parameters are stored right after their update, before they are gathered. */
static void check_copies_of(const zero_schedule *s, const zero_program *p, int g)
{
    int fetch = find(p, 0, ZERO_OP_FETCH_GRAD, g), norm = find(p, 0, ZERO_OP_NORM, g);
    int update = find(p, 0, ZERO_OP_UPDATE, g);
    assert_true(fetch < norm && norm < update && update + 1 < p->length);
    assert_true(makes_gradient(s, &p->code[fetch - 1], g) || s->input.serial);
    for (int at = fetch + 1; at < p->length; at++)
        assert_false(makes_gradient(s, &p->code[at], g));
    assert_int_equal(find(p, 0, ZERO_OP_STORE_PARAM, g), update + 1);
    assert_int_equal(find(p, fetch + 1, ZERO_OP_FETCH_GRAD, g), p->length);
    assert_int_equal(find(p, update + 2, ZERO_OP_STORE_PARAM, g), p->length);
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

/* Each step moves what this rank updates once in each direction; nothing else moves it. */
static void check_offload_host(const zero_schedule *s)
{
    bool is_on = s->input.offload_host;
    for (int kind = 0; kind < ZERO_PROGRAMS; kind++) {
        bool moves = is_on && kind == ZERO_PROGRAM_STEP;
        zero_copied_bytes sum = zero_schedule_copies(s, (zero_program_kind)kind);
        assert_true(sum.gradients == (moves ? held_bytes(s) : 0));
        assert_true(sum.parameters == sum.gradients);
        assert_true(!moves || sum.squares == 0);
        for (int g = 0; g < s->input.model->n_groups && moves; g++)
            check_copies_of(s, &s->programs[kind], g);
    }
}

void laws_check_device(const zero_schedule *s)
{
    check_offload_host(s);
    for (int id = 0; id < s->n_buffers; id++) check_space(s, &s->buffers[id]);
    for (int kind = 0; kind < ZERO_PROGRAMS; kind++)
        for (int at = 0; at < s->programs[kind].length; at++)
            check_host(s, &s->programs[kind].code[at]);
    assert_true(s->align % (s->input.device ? ZERO_MEMORY_ALIGN : ZERO_BUFFER_ALIGN) == 0);
}
