#include "engine/tell.h"

#include "nn/share.h"
#include "sharding/schedule_exchange.h"
#include "sharding/schedule_peers.h"
#include "sharding/work.h"

static const zero_partition *partition_of(const zero_walk *w, int group)
{
    return &w->r->schedule->groups[group].partition;
}

/* The element that stands for the piece of rank k; -1: the piece has no parameters. */
static int64_t element_of(const zero_partition *p, int k)
{
    zero_range piece = zero_partition_piece(p, k);
    int64_t end = zero_min(piece.end, p->n_params);
    if (piece.begin >= end) return -1;
    return piece.begin + ZERO_TOLD_AT < end ? piece.begin + ZERO_TOLD_AT : piece.begin;
}

static zero_told_number read_element(const zero_walk *w, int buffer, int64_t at)
{
    float value;
    if (buffer == ZERO_NO_BUFFER || at < 0) return (zero_told_number){.at = -1};
    zero_convert(w->r->schedule->buffers[buffer].type, ZERO_FP32, 1,
                 zero_runner_element(w->r, buffer, at), &value);
    return (zero_told_number){at, (double)value};
}

/* The element of an instruction's range that stands for it. */
static int64_t element_in(const zero_walk *w, const zero_instruction *i)
{
    const zero_partition *p = partition_of(w, i->group);
    int64_t end = zero_min(i->range.end, p->n_params);
    bool is_whole = i->range.begin == 0 && end == p->n_params;
    int64_t own = element_of(p, is_whole ? 0 : w->r->shard->rank);
    if (own >= i->range.begin && own < end) return own;
    return i->range.begin < end ? i->range.begin : -1;
}

static zero_told_number number(double value)
{
    return (zero_told_number){0, value};
}

/* ---- what is known before ---- */

zero_status zero_tell_open(const zero_schedule *s, zero_told **list)
{
    const zero_program *p = &s->programs[ZERO_PROGRAM_STEP];
    ZERO_FREED zero_told *made = NULL;
    ZERO_TRY(zero_new(&made, p->length + 1, "instructions to tell of"));
    for (int at = 0; at < p->length; at++) {
        zero_peer_bytes bytes = {0};
        ZERO_TRY(zero_instruction_peers(s, &p->code[at], &bytes));
        memcpy(made[at].sent_to, bytes.sent, sizeof made->sent_to);
        memcpy(made[at].read_from, bytes.read, sizeof made->read_from);
    }
    ZERO_GIVE(list, made);
    return ZERO_OK;
}

/* ---- what an instruction is ---- */

static void tell_range(const zero_walk *w, int group, zero_range range, zero_told *told)
{
    zero_range all = {0, partition_of(w, group)->n_params};
    told->begin = range.begin;
    told->end = range.end;
    range = zero_range_overlap(range, all);
    told->real = zero_range_is_empty(range) ? 0 : zero_range_len(range);
}

static bool is_gradient(const zero_walk *w, int buffer)
{
    zero_class class = w->r->schedule->buffers[buffer].class;
    return class == ZERO_CLASS_GRADIENTS || class == ZERO_CLASS_IN_FLIGHT ||
           class == ZERO_CLASS_ACCUMULATORS;
}

/* A group's exchange: this rank's piece, and the elements that stand for all ranks' pieces,
 * or for its own. */
static void tell_exchange(const zero_walk *w, const zero_instruction *i, int buffer,
                          bool all, zero_told *told)
{
    const zero_partition *p = partition_of(w, i->group);
    const int own = w->r->shard->rank;
    tell_range(w, i->group, zero_partition_piece(p, own), told);
    for (int k = 0; k < p->n_ranks && k < ZERO_TOLD_RANKS; k++)
        if (all || k == own) told->numbers[k] = read_element(w, buffer, element_of(p, k));
    if (zero_ops[i->op].begun_by == ZERO_OP_GATHER)
        told->is_gradient = is_gradient(w, i->buffer);
}

/* The master; in fp32 the parameter. */
static zero_told_number read_master(const zero_walk *w, const zero_instruction *i)
{
    int64_t at = element_in(w, i);
    if (at >= 0 && i->file != ZERO_NO_BUFFER) {
        /* The states of a block in its slot; parameters are there, too, if they are in
         * the file. */
        const zero_schedule *s = w->r->schedule;
        int k = i->file - s->groups[i->group].first_block;
        zero_slot_view view =
            zero_offload_view(s, i->group, k, zero_runner_buffer(w->r, i->buffer));
        const float *master = view.master ? view.master : (const float *)(void *)view.param;
        if (!master) return read_element(w, i->param[0], at);
        return (zero_told_number){at, (double)master[at - i->range.begin]};
    }
    return read_element(w, i->master != ZERO_NO_BUFFER ? i->master : i->param[0], at);
}

void zero_tell_before(const zero_walk *w, const zero_instruction *i, zero_told *told)
{
    const zero_runner *r = w->r;
    zero_traffic traffic = zero_instruction_traffic(r->schedule, i);
    const zero_told known = *told;
    *told = (zero_told){.step = w->in->step + 1,
                        .at = r->at,
                        .rank = r->comm->rank,
                        .shard = r->shard->rank,
                        .tp = r->tp ? r->tp->rank : 0,
                        .op = i->op,
                        .unit = i->unit,
                        .part = i->part,
                        .group = i->group,
                        .microbatch = i->microbatch,
                        .live_bytes = (int64_t)i->live_bytes,
                        .sent = zero_traffic_sent(&traffic),
                        .received = zero_traffic_total(&traffic).bytes_received};
    if (i->group >= 0) tell_range(w, i->group, i->range, told);
    if (i->buffer != ZERO_NO_BUFFER)
        told->bytes = (int64_t)r->schedule->buffers[i->buffer].bytes;
    memcpy(told->sent_to, known.sent_to, sizeof told->sent_to);
    memcpy(told->read_from, known.read_from, sizeof told->read_from);
    for (int k = 0; k < ZERO_TOLD_TOKENS; k++) told->tokens[k] = -1;
    for (int k = 0; k < ZERO_TOLD_RANKS; k++) told->numbers[k].at = -1;
    switch (i->op) {
    case ZERO_OP_REDUCE: tell_exchange(w, i, i->in, true, told); break;
    case ZERO_OP_GATHER: tell_exchange(w, i, i->in, false, told); break;
    case ZERO_OP_UPDATE:
        told->numbers[0] = read_master(w, i);
        told->numbers[2] = read_element(w, i->grad[0], element_in(w, i));
        break;
    default: break;
    }
}

/* ---- what it has done ---- */

static bool tell_loss(const zero_walk *w, const zero_instruction *i, zero_told *told)
{
    if (i->row_loss == ZERO_NO_BUFFER) return false;
    told->is_loss = 1;
    told->numbers[0] =
        number(w->r->losses[i->microbatch] / (double)(w->batch.B * w->batch.T));
    return true;
}

/* Before the last part of a pass its results are not there. */
static bool is_last_part(const zero_walk *w, const zero_instruction *i)
{
    return i->part == ZERO_PART_ALL ||
           zero_work_part(w->r->schedule, ZERO_PROGRAM_STEP, i, i->part).is_last;
}

static void tell_forward(const zero_walk *w, const zero_instruction *i, zero_told *told)
{
    if (!is_last_part(w, i) || tell_loss(w, i, told) || i->out == ZERO_NO_BUFFER) return;
    float first;
    zero_convert(w->plan->activations, ZERO_FP32, 1, zero_runner_buffer(w->r, i->out),
                 &first);
    told->numbers[0] = number((double)first);
}

static void tell_backward(const zero_walk *w, const zero_instruction *i, zero_told *told)
{
    const zero_unit *unit = &w->plan->model->units[i->unit];
    told->group = unit->groups[0];
    if (!is_last_part(w, i)) return;
    (void)tell_loss(w, i, told);
    told->numbers[1] =
        read_element(w, i->grad[0], element_of(partition_of(w, unit->groups[0]), 0));
}

void zero_tell_after(const zero_walk *w, const zero_instruction *i, zero_told *told)
{
    const int32_t *tokens = w->batch.inputs;
    const zero_tree_span *span = i->group >= 0 ? &w->r->squares[i->group] : NULL;
    double sum = 0.0;
    switch (i->op) {
    case ZERO_OP_REDUCE_WAIT: tell_exchange(w, i, i->buffer, false, told); break;
    case ZERO_OP_GATHER_WAIT: tell_exchange(w, i, i->buffer, true, told); break;
    case ZERO_OP_ROUND:
    case ZERO_OP_ACCUMULATE:
        told->numbers[0] = read_element(w, i->buffer, element_in(w, i));
        break;
    case ZERO_OP_UPDATE:
        told->done = w->update.is_due;
        told->numbers[1] = read_master(w, i);
        break;
    case ZERO_OP_LOAD:
        told->sample = w->batch.first_sample;
        if (w->plan->model->input_bytes != sizeof *tokens) break;
        for (int k = 0; k < ZERO_TOLD_TOKENS && k < w->batch.T; k++)
            told->tokens[k] = tokens[k];
        break;
    case ZERO_OP_FORWARD:
    case ZERO_OP_RECOMPUTE: tell_forward(w, i, told); break;
    case ZERO_OP_BACKWARD: tell_backward(w, i, told); break;
    case ZERO_OP_LOSS: told->numbers[0] = number(w->out->loss); break;
    case ZERO_OP_NORM:
        if (zero_share_has_parts(&w->plan->model->share)) break; /* exact, of all groups */
        for (int k = 0; k < span->n; k++) sum += span->term[k];
        told->numbers[0] = number(sum);
        break;
    case ZERO_OP_OVERFLOW:
        told->numbers[0] = number(w->out->grad_norm);
        told->done = !w->out->overflow;
        break;
    default: break;
    }
}
