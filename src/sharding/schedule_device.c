#include "sharding/schedule_device.h"

#include "sharding/offload.h"
#include "sharding/update.h"

zero_space zero_schedule_space(const zero_schedule *s, zero_class cls)
{
    if (!s->input.device || cls != ZERO_CLASS_BUCKETS || s->input.device_messages)
        return ZERO_SPACE_OWN;
    return zero_algorithm_needs_window(s->input.collectives, zero_schedule_layout(s))
               ? ZERO_SPACE_PART
               : ZERO_SPACE_HOST;
}

void zero_device_hold(zero_schedule *s)
{
    if (s->status != ZERO_OK) return;
    const zero_plan_input *in = &s->input;
    int64_t positions = in->micro_batch * in->seq;
    if (zero_schedule_has_cache(s)) positions = zero_max(positions, in->texts);
    size_t bytes = zero_schedule_targets_at(in->model, positions) +
                   (size_t)positions * in->model->target_bytes;
    bool is_alone = in->forward_only || in->accumulation == 1;
    s->first_tokens = s->n_buffers;
    s->n_tokens = is_alone ? 1 : ZERO_HOST_TOKENS;
    for (int k = 0; k < s->n_tokens; k++)
        zero_schedule_hold(s, ZERO_CLASS_DATA, ZERO_SPACE_HOST, bytes);
    if (!s->input.forward_only) {
        /* The search for an origin (engine/origin.c) needs one double, also where the rank
         * owns nothing or NORM computes on the host. The last word is UPDATE's
         * (zero_schedule_changed_at()). */
        bool is_beside = zero_plan_updates_beside(&s->input);
        int64_t n = 0;
        for (int g = 0; g < s->model->n_groups && !is_beside; g++) {
            s->groups[g].first_square = n;
            n += zero_gradient_pieces(
                zero_partition_shard(&s->groups[g].partition, s->shard.rank));
        }
        size_t room = (size_t)zero_max(n, 1) * sizeof(double) + sizeof(uint64_t);
        s->squares = zero_schedule_hold(s, ZERO_CLASS_WORKSPACE, ZERO_SPACE_OWN, room);
        s->squares_host =
            zero_schedule_hold(s, ZERO_CLASS_WORKSPACE, ZERO_SPACE_HOST, room);
    }
    s->first_chunk = s->n_buffers;
    for (int k = 0; k < ZERO_HOST_CHUNKS; k++)
        zero_schedule_hold(s, ZERO_CLASS_WORKSPACE, ZERO_SPACE_HOST,
                           3 * ZERO_OFFLOAD_BLOCK * sizeof(float));
}

static size_t bytes_of(const zero_schedule *s, int buffer)
{
    return buffer == ZERO_NO_BUFFER ? 0 : s->buffers[buffer].bytes;
}

zero_copied_bytes zero_schedule_copies(const zero_schedule *s, zero_program_kind program)
{
    const zero_program *p = &s->programs[program];
    zero_copied_bytes sum = {0};
    for (int at = 0; at < p->length; at++) {
        const zero_instruction *i = &p->code[at];
        bool is_head = i->op == ZERO_OP_FORWARD || i->op == ZERO_OP_BACKWARD;
        if (i->host == ZERO_NO_BUFFER) continue;
        size_t copied = zero_range_bytes(i->range, s->buffers[i->host].type);
        if (i->op == ZERO_OP_LOAD) sum.tokens += bytes_of(s, i->tokens);
        if (i->op == ZERO_OP_FETCH_GRAD) sum.gradients += copied;
        if (i->op == ZERO_OP_STORE_PARAM) sum.parameters += copied;
        if (i->op == ZERO_OP_OVERFLOW) sum.squares += bytes_of(s, i->host);
        if (is_head && i->row_loss != ZERO_NO_BUFFER)
            sum.row_losses += bytes_of(s, i->row_loss);
        else if (is_head)
            sum.logits += bytes_of(s, i->host);
    }
    return sum;
}

size_t zero_schedule_changed_at(const zero_schedule *s)
{
    return s->buffers[s->squares].bytes - sizeof(uint64_t);
}
