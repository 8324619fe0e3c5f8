#include "sharding/schedule_peers.h"

#include <stdlib.h>

#include "base/fail.h"
#include "base/number.h"
#include "lists/member.h"
#include "sharding/schedule_exchange.h"

/* Instructions that exchange data, by kind. */
static const zero_op ops[] = {ZERO_OP_REDUCE, ZERO_OP_GATHER, ZERO_OP_ALL_REDUCE,
                              ZERO_OP_JOIN, ZERO_OP_COLLECT};
#define OPS ((int)(sizeof ops / sizeof *ops))

/* One group of ranks, and this rank's place in it. */
typedef struct {
    zero_member member;
    const zero_layout *layout;
    int rank;
} seat;

static bool is_join(zero_op op)
{
    return op == ZERO_OP_JOIN || op == ZERO_OP_COLLECT;
}

static zero_family_part part_of(zero_op op)
{
    if (is_join(op)) return ZERO_TP_GROUP;
    return op == ZERO_OP_ALL_REDUCE ? ZERO_REPLICA_GROUP : ZERO_SHARD_GROUP;
}

/* The shard group of a family without any is its ZeRO group, or else the whole. */
static zero_family_part group_for(zero_family_part part, const zero_division *d)
{
    if (zero_division_has(d, part)) return part;
    return zero_division_has(d, ZERO_DATA_GROUP) ? ZERO_DATA_GROUP : ZERO_WHOLE;
}

static seat seat_for(const zero_schedule *s, zero_op op)
{
    const zero_layout *world = zero_schedule_world_layout(s);
    zero_division d = {
        .size = world->size, .tp = world->size / s->input.n_ranks, .shard = s->shard.size};
    zero_family_part part = part_of(op);
    seat its = {.member =
                    zero_member_of(group_for(part, &d), &d, zero_schedule_world_rank(s))};
    its.layout = part == ZERO_TP_GROUP        ? zero_schedule_tp_layout(s)
                 : part == ZERO_REPLICA_GROUP ? &s->replica_layout
                                              : zero_schedule_layout(s);
    its.rank = part == ZERO_TP_GROUP        ? s->input.model->share.rank
               : part == ZERO_REPLICA_GROUP ? s->shard.replica
                                            : s->shard.rank;
    return its;
}

/* ---- the collectives of an instruction ---- */

static int collectives_of(const zero_schedule *s, zero_op op, int which)
{
    if (is_join(op)) return zero_schedule_join_collectives(&s->joins[which]);
    if (op == ZERO_OP_ALL_REDUCE) return ZERO_ALL_REDUCE_COLLECTIVES;
    return zero_schedule_collectives(s, which);
}

static zero_collective_spec collective_of(const zero_schedule *s, zero_op op, int which,
                                          int k)
{
    if (is_join(op)) return zero_schedule_join(s, which, k);
    if (op == ZERO_OP_ALL_REDUCE) return zero_schedule_all_reduce(s, which, k);
    return zero_schedule_collective(s, op, which, k);
}

static zero_status add_collectives(const zero_schedule *s, zero_op op, int which,
                                   int64_t times, zero_peer_bytes *bytes)
{
    seat its = seat_for(s, op);
    zero_peer_bytes of_group = {0};
    for (int k = 0; k < collectives_of(s, op, which); k++) {
        zero_collective_spec spec = collective_of(s, op, which, k);
        ZERO_TRY(zero_collective_peers(&spec, its.layout, its.rank, times, &of_group));
    }
    for (int i = 0; i < its.layout->size; i++) {
        int peer = zero_member_rank(&its.member, i);
        bytes->sent[peer] += of_group.sent[i];
        bytes->read[peer] += of_group.read[i];
    }
    return ZERO_OK;
}

zero_status zero_instruction_peers(const zero_schedule *s, const zero_instruction *i,
                                   zero_peer_bytes *bytes)
{
    bool is_exchange = false;
    for (int k = 0; k < OPS; k++) is_exchange = is_exchange || i->op == ops[k];
    if (!is_exchange || zero_schedule_world_layout(s)->size > ZERO_MOST_PEERS)
        return ZERO_OK;
    return add_collectives(s, i->op, is_join(i->op) ? i->join : i->group, 1, bytes);
}

/* ---- how often ---- */

/* times[OPS][n]: the runs of each instruction, by its group or join. */
static void count_runs(const zero_schedule *s, const int64_t walks[ZERO_PROGRAMS], int n,
                       int64_t *times)
{
    for (int p = 0; p < ZERO_PROGRAMS; p++)
        for (int at = 0; at < s->programs[p].length; at++) {
            const zero_instruction *i = &s->programs[p].code[at];
            for (int k = 0; k < OPS; k++)
                if (i->op == ops[k])
                    times[(int64_t)k * n + (is_join(i->op) ? i->join : i->group)] +=
                        walks[p];
        }
}

zero_status zero_schedule_peers(const zero_schedule *s, const int64_t walks[ZERO_PROGRAMS],
                                zero_peer_bytes *bytes)
{
    int n = (int)zero_max(s->input.model->n_groups, s->n_joins);
    if (zero_schedule_world_layout(s)->size > ZERO_MOST_PEERS) return ZERO_OK;
    int64_t *times = calloc((size_t)n * OPS, sizeof *times);
    if (!times) return zero_fail(ZERO_ERR_NOMEM, "no memory for %d exchanges", n * OPS);
    count_runs(s, walks, n, times);
    zero_status st = ZERO_OK;
    for (int k = 0; k < OPS; k++)
        for (int i = 0; st == ZERO_OK && i < n; i++)
            if (times[(int64_t)k * n + i] > 0)
                st = add_collectives(s, ops[k], i, times[(int64_t)k * n + i], bytes);
    free(times);
    return st;
}
