#include "sharding/schedule_peers.h"

#include "base/grow.h"
#include "sharding/schedule_exchange.h"

/* The shard group of a family without any is its ZeRO group, or else the whole. */
static zero_family_part group_for(zero_family_part part, const zero_division *d)
{
    if (zero_division_has(d, part)) return part;
    return zero_division_has(d, ZERO_DATA_GROUP) ? ZERO_DATA_GROUP : ZERO_WHOLE;
}

zero_member zero_exchange_member(const zero_schedule *s, zero_op op)
{
    const zero_layout *world = zero_schedule_world_layout(s);
    zero_division d = {.size = world->size,
                       .tp = s->model->share.ranks,
                       .shard = s->shard.size,
                       .pp = s->pipe.n_stages};
    return zero_member_of(group_for(zero_ops[op].among, &d), &d,
                          zero_schedule_world_rank(s));
}

static zero_status add_collectives(const zero_schedule *s, zero_op op, int number,
                                   int64_t times, zero_peer_bytes *bytes)
{
    const zero_layout *layout = zero_exchange_layout(s, op);
    zero_member member = zero_exchange_member(s, op);
    zero_peer_bytes of_group = {0};
    for (int k = 0; k < zero_exchange_collectives(s, op, number); k++) {
        zero_collective_spec spec = zero_exchange_collective(s, op, number, k);
        ZERO_TRY(zero_collective_peers(&spec, layout, zero_exchange_rank(s, op), times,
                                       &of_group));
    }
    for (int i = 0; i < layout->size; i++) {
        int peer = zero_member_rank(&member, i);
        bytes->sent[peer] += of_group.sent[i];
        bytes->read[peer] += of_group.read[i];
    }
    return ZERO_OK;
}

zero_status zero_instruction_peers(const zero_schedule *s, const zero_instruction *i,
                                   zero_peer_bytes *bytes)
{
    if (zero_ops[i->op].kind != ZERO_WORK_EXCHANGE ||
        zero_schedule_world_layout(s)->size > ZERO_MOST_PEERS)
        return ZERO_OK;
    return add_collectives(s, i->op, zero_exchange_number(i), 1, bytes);
}

zero_status zero_schedule_peers(const zero_schedule *s, const int64_t walks[ZERO_PROGRAMS],
                                zero_peer_bytes *bytes)
{
    size_t n = (size_t)zero_max(s->model->n_groups, zero_max(s->n_joins, s->n_messages));
    if (zero_schedule_world_layout(s)->size > ZERO_MOST_PEERS) return ZERO_OK;
    ZERO_FREED int64_t *times = NULL;
    ZERO_TRY(zero_new(&times, n * ZERO_OP_KINDS, "exchanges"));
    for (int p = 0; p < ZERO_PROGRAMS; p++)
        for (int at = 0; at < s->programs[p].length; at++) {
            const zero_instruction *i = &s->programs[p].code[at];
            if (zero_ops[i->op].kind == ZERO_WORK_EXCHANGE)
                times[(size_t)i->op * n + (size_t)zero_exchange_number(i)] += walks[p];
        }
    for (zero_op op = 0; op < ZERO_OP_KINDS; op++)
        for (size_t k = 0; k < n; k++)
            if (times[(size_t)op * n + k] > 0)
                ZERO_TRY(add_collectives(s, op, (int)k, times[(size_t)op * n + k], bytes));
    return ZERO_OK;
}
