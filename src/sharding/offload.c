#include "sharding/offload.h"

size_t zero_offload_padded(size_t bytes)
{
    return zero_round_up_size(bytes, ZERO_SCRATCH_ALIGN);
}

int zero_offload_add_block(zero_schedule *s, zero_class cls, size_t bytes)
{
    return zero_schedule_hold(s, cls, ZERO_SPACE_FILE, zero_offload_padded(bytes));
}

/* ---- optimizer states ---- */

/* The elements of a group whose states this rank holds, padding included. */
static zero_range held(const zero_schedule *s, int g)
{
    const zero_group_state *state = &s->groups[g];
    if (state->optimizer_held == ZERO_HOLD_PIECE)
        return zero_partition_piece(&state->partition, s->shard.rank);
    return (zero_range){0, state->partition.padded};
}

zero_range zero_offload_range(const zero_schedule *s, int g, int k)
{
    zero_range all = held(s, g);
    int64_t begin = all.begin + k * ZERO_OFFLOAD_BLOCK;
    return (zero_range){begin, zero_min(begin + ZERO_OFFLOAD_BLOCK, all.end)};
}

static size_t state_bytes(const zero_schedule *s, zero_range range)
{
    int arrays = zero_rule_most_states(s->input.optimizer);
    if (s->input.type != ZERO_FP32) arrays++; /* in fp32 the masters are the parameters */
    return (size_t)(zero_range_len(range) * arrays) * sizeof(float);
}

static size_t param_bytes(const zero_schedule *s, zero_range range)
{
    return zero_range_bytes(range, s->input.type);
}

/* The first of the group's blocks, of its states or of its parameters. */
static int hold_blocks(zero_schedule *s, int g, zero_class cls)
{
    bool are_states = cls == ZERO_CLASS_OPTIMIZER;
    int first = s->n_buffers;
    for (int k = 0; k < s->groups[g].n_blocks && s->status == ZERO_OK; k++) {
        zero_range range = zero_offload_range(s, g, k);
        int block = zero_offload_add_block(
            s, cls, are_states ? state_bytes(s, range) : param_bytes(s, range));
        if (block == ZERO_NO_BUFFER) break;
        s->buffers[block].type = are_states ? ZERO_FP32 : s->input.type;
        s->buffers[block].begin = range.begin;
    }
    return first;
}

void zero_offload_hold(zero_schedule *s, int g)
{
    zero_group_state *state = &s->groups[g];
    int64_t n_blocks = zero_divide_up(zero_range_len(held(s, g)), ZERO_OFFLOAD_BLOCK);
    if (s->status == ZERO_OK && s->n_buffers + n_blocks > ZERO_OFFLOAD_MAX_BLOCKS)
        s->status =
            zero_fail(ZERO_ERR_INVALID,
                      "--offload: the scratch file of rank %d would have more than %d "
                      "blocks of %d parameters; use more ranks, or a --stage above 0",
                      s->input.rank, ZERO_OFFLOAD_MAX_BLOCKS, (int)ZERO_OFFLOAD_BLOCK);
    if (s->status != ZERO_OK) return;
    state->n_blocks = (int)n_blocks;
    state->first_block = hold_blocks(s, g, ZERO_CLASS_OPTIMIZER);
    if (zero_offload_has_parameters(s, g))
        state->first_param_block = hold_blocks(s, g, ZERO_CLASS_PARAMETERS);
}

bool zero_offload_has_parameters(const zero_schedule *s, int g)
{
    return s->input.offload_parameters && s->groups[g].param_held == ZERO_HOLD_PIECE;
}

/* ---- slots ---- */

static size_t params_at(const zero_schedule *s, int g, int k)
{
    return zero_offload_padded(state_bytes(s, zero_offload_range(s, g, k)));
}

void *zero_offload_params_in(const zero_schedule *s, int g, int k, void *slot)
{
    return (char *)slot + params_at(s, g, k);
}

zero_slot_view zero_offload_view(const zero_schedule *s, int g, int k, void *slot)
{
    int64_t n = zero_range_len(zero_offload_range(s, g, k));
    bool has_params = zero_offload_has_parameters(s, g);
    void *params = has_params ? zero_offload_params_in(s, g, k, slot) : NULL;
    bool is_exact = s->input.type == ZERO_FP32;
    float *next = slot;
    zero_slot_view view = {.master = is_exact ? params : next,
                           .param = is_exact ? NULL : params};
    if (!is_exact) next += n;
    for (int i = 0; i < zero_rule_most_states(s->input.optimizer); i++, next += n)
        view.state[i] = next;
    return view;
}

void zero_offload_hold_slots(zero_schedule *s)
{
    if (!zero_plan_uses_file(&s->input) || s->status != ZERO_OK) return;
    zero_space space = s->input.device ? ZERO_SPACE_HOST : ZERO_SPACE_OWN;
    /* The first block of a group is as long as any other. */
    size_t bytes = 0;
    for (int g = 0; g < s->model->n_groups; g++) {
        if (s->groups[g].n_blocks == 0) continue;
        bool has_params = zero_offload_has_parameters(s, g);
        size_t params = has_params ? s->buffers[s->groups[g].first_param_block].bytes : 0;
        bytes = zero_max_size(bytes, params_at(s, g, 0) + params);
    }
    s->first_slot = s->n_buffers;
    s->n_slots = s->input.offload_depth;
    for (int k = 0; k < s->n_slots; k++)
        zero_schedule_hold(s, ZERO_CLASS_SLOTS, space, bytes);
}

bool zero_offload_is_of_stream(const zero_instruction *i)
{
    return zero_ops[i->op].is_of_stream ||
           (i->op == ZERO_OP_UPDATE && (i->file != ZERO_NO_BUFFER || i->on_host));
}

/* ---- sums ---- */

size_t zero_offload_bytes(const zero_schedule *s, zero_class cls)
{
    size_t sum = 0;
    for (int i = 0; i < s->n_buffers; i++)
        if (s->buffers[i].space == ZERO_SPACE_FILE && s->buffers[i].class == cls)
            sum += s->buffers[i].bytes;
    return sum;
}

size_t zero_offload_padding(const zero_schedule *s)
{
    /* Activations lie in the file in the order of their first SAVEs. */
    const zero_program *p = &s->programs[ZERO_PROGRAM_STEP];
    size_t sum = 0;
    int last = ZERO_NO_BUFFER;
    for (int at = 0; at < p->length; at++) {
        const zero_instruction *i = &p->code[at];
        if (i->op != ZERO_OP_SAVE || i->file <= last) continue;
        last = i->file;
        sum += s->buffers[i->file].bytes - s->buffers[i->buffer].bytes;
    }
    for (int g = 0; g < s->model->n_groups; g++) {
        const zero_group_state *state = &s->groups[g];
        for (int k = 0; k < state->n_blocks; k++) {
            zero_range range = zero_offload_range(s, g, k);
            sum += s->buffers[state->first_block + k].bytes - state_bytes(s, range);
            if (zero_offload_has_parameters(s, g))
                sum +=
                    s->buffers[state->first_param_block + k].bytes - param_bytes(s, range);
        }
    }
    return sum;
}

bool zero_offload_part(const zero_schedule *s, const zero_instruction *i, int k,
                       zero_file_part *part)
{
    const zero_op_row *row = &zero_ops[zero_ops[i->op].begun_by];
    const zero_group_state *g = i->group >= 0 ? &s->groups[i->group] : NULL;
    *part = (zero_file_part){.file = i->file};
    if (row->moves == ZERO_MOVES_PARAMETERS) {
        if (k >= g->n_blocks) return false;
        part->file = g->first_param_block + k;
        part->at = (size_t)k * s->buffers[g->first_param_block].bytes;
        return true;
    }
    /* An update moves the parameters with the states; only in fp32 does it read them. */
    if (k == 0 || row->moves != ZERO_MOVES_STATES)
        return k == 0 && row->moves != ZERO_MOVES_NOTHING;
    if (!zero_offload_has_parameters(s, i->group)) return false;
    part->at = params_at(s, i->group, i->file - g->first_block);
    part->file = g->first_param_block + (i->file - g->first_block);
    return k == 1 && (row->writes || s->input.type == ZERO_FP32);
}

zero_file_traffic zero_offload_moved(const zero_schedule *s, const zero_instruction *i)
{
    const zero_op_row *row = &zero_ops[i->op];
    zero_file_traffic t = {0};
    zero_file_part part;
    for (int k = 0; row->kind == ZERO_WORK_TRANSFER && zero_offload_part(s, i, k, &part);
         k++) {
        *(row->writes ? &t.bytes_written : &t.bytes_read) += s->buffers[part.file].bytes;
        ++*(row->writes ? &t.writes : &t.reads);
    }
    return t;
}

void zero_file_traffic_add(zero_file_traffic *sum, uint64_t times,
                           const zero_file_traffic *t)
{
    sum->bytes_read += times * t->bytes_read;
    sum->bytes_written += times * t->bytes_written;
    sum->reads += times * t->reads;
    sum->writes += times * t->writes;
}

zero_file_traffic zero_offload_total(const zero_offload_traffic *t)
{
    zero_file_traffic sum = {0};
    for (int k = 0; k < ZERO_MOVES_KINDS; k++) zero_file_traffic_add(&sum, 1, &t->of[k]);
    return sum;
}

zero_offload_traffic zero_offload_count(const zero_schedule *s, zero_program_kind program)
{
    const zero_program *p = &s->programs[program];
    zero_offload_traffic t = {.states.reads = 0};
    for (int at = 0; at < p->length; at++) {
        zero_file_traffic one = zero_offload_moved(s, &p->code[at]);
        zero_file_traffic_add(&t.of[zero_ops[p->code[at].op].moves], 1, &one);
    }
    return t;
}

/* Transfers of slots may begin early (engine/run_offload.c): states and parameters of
 * each. */
int zero_offload_in_flight(const zero_schedule *s)
{
    int most = 0;
    for (int k = 0; k < ZERO_PROGRAMS; k++) {
        const zero_program *p = &s->programs[k];
        int now = 0;
        for (int at = 0; at < p->length; at++) {
            const zero_instruction *i = &p->code[at];
            const zero_op_row *row = &zero_ops[i->op];
            zero_file_part part;
            int n = 0;
            while (row->moves != ZERO_MOVES_STATES && zero_offload_part(s, i, n, &part))
                n++;
            now += row->kind == ZERO_WORK_TRANSFER ? n : -n;
            if (now > most) most = now;
        }
    }
    return most + s->n_slots * (s->input.offload_parameters ? 2 : 1);
}
