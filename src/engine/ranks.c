#include "engine/ranks.h"

#include "sharding/schedule_peers.h"

/* The groups in which ranks exchange data, each once. */
static const zero_family_part exchanging[] = {ZERO_SHARD_GROUP, ZERO_REPLICA_GROUP,
                                              ZERO_TP_GROUP, ZERO_PIPE_GROUP};

/* ---- bytes ---- */

static zero_status count(const zero_engine *e, zero_rank_bytes *b)
{
    size_t cells = (size_t)b->n * (size_t)b->n;
    ZERO_TRY(zero_new(&b->planned, cells, "pairs of ranks"));
    ZERO_TRY(zero_new(&b->sent, cells, "pairs of ranks"));
    zero_peer_bytes mine = {0};
    for (int k = 0; k < ZERO_COUNT(exchanging); k++) {
        const zero_comm *group = e->runner.groups[exchanging[k]];
        for (int i = 0; group && i < group->size; i++) {
            int peer = zero_member_rank(&group->member, i);
            mine.sent[peer] += group->peers.sent[i];
            mine.read[peer] += group->peers.read[i];
        }
    }
    zero_peers_add(b->n, b->sent, e->runner.comm->rank, &mine);
    zero_peer_bytes planned = {0};
    ZERO_TRY(zero_schedule_peers(&e->schedule, e->runner.walks, &planned));
    zero_peers_add(b->n, b->planned, e->runner.comm->rank, &planned);
    return ZERO_OK;
}

zero_status zero_rank_bytes_gather(const zero_engine *e, zero_rank_bytes *bytes)
{
    zero_comm *comm = e->runner.comm;
    ZERO_AT_END(zero_rank_bytes_destroy) zero_rank_bytes made = {.n = comm->size};
    *bytes = (zero_rank_bytes){0};
    if (comm->size > ZERO_MOST_PEERS) return ZERO_OK;
    int64_t cells = (int64_t)made.n * made.n;
    ZERO_TRY(zero_agree(comm, count(e, &made)));
    ZERO_TRY(zero_comm_sum(comm, cells, made.planned));
    ZERO_TRY(zero_comm_sum(comm, cells, made.sent));
    ZERO_GIVE(bytes, made);
    return ZERO_OK;
}

void zero_rank_bytes_destroy(zero_rank_bytes *bytes)
{
    free(bytes->planned);
    free(bytes->sent);
    *bytes = (zero_rank_bytes){0};
}

/* ---- seconds ---- */

const char *zero_rank_time_name(zero_rank_time time)
{
    static const char *const names[ZERO_RANK_TIMES] = {
        [ZERO_RANK_STEP] = "step",           [ZERO_RANK_COMPUTE] = "compute",
        [ZERO_RANK_EXCHANGE] = "exchange",   [ZERO_RANK_EXPOSED] = "exposed",
        [ZERO_RANK_WAITED] = "waited",       [ZERO_RANK_TRANSFERS] = "transfers",
        [ZERO_RANK_IN_FLIGHT] = "in_flight", [ZERO_RANK_AWAITED] = "awaited",
    };
    return names[time];
}

/* The seconds of an instruction that is not arithmetic are all of one part. */
static zero_rank_time part_of(const zero_profile *p, zero_op op)
{
    if (zero_profile_is_exposed(p, op)) return ZERO_RANK_EXPOSED;
    switch (zero_ops[op].kind) {
    case ZERO_WORK_EXCHANGE: return ZERO_RANK_EXCHANGE;
    case ZERO_WORK_AGREE: return ZERO_RANK_WAITED;
    case ZERO_WORK_TRANSFER:
    case ZERO_WORK_TRANSFER_WAIT: return ZERO_RANK_TRANSFERS;
    case ZERO_WORK_EXCHANGE_WAIT:
    case ZERO_WORK_COPY:
    case ZERO_WORK_FREE:
    case ZERO_WORK_COMPUTE: break;
    }
    return ZERO_RANK_COMPUTE;
}

zero_status zero_rank_seconds_gather(const zero_engine *e, zero_rank_seconds *seconds)
{
    zero_comm *comm = e->runner.comm;
    double mine[ZERO_RANK_TIMES] = {0.0};
    ZERO_AT_END(zero_rank_seconds_destroy) zero_rank_seconds made = {.n = comm->size};
    for (zero_op i = 0; i < ZERO_OP_KINDS; i++) {
        const zero_profile_entry *entry =
            zero_profile_at(&e->runner.profile, ZERO_PROGRAM_STEP, i, ZERO_ALL_UNITS);
        zero_rank_time part = part_of(&e->runner.profile, i);
        double polls = part == ZERO_RANK_COMPUTE ? entry->exchange : 0.0;
        mine[ZERO_RANK_STEP] += entry->seconds;
        mine[part] += entry->seconds - polls;
        mine[ZERO_RANK_EXCHANGE] += polls;
    }
    for (int k = 0; k < ZERO_COUNT(exchanging); k++) {
        const zero_comm *group = e->runner.groups[exchanging[k]];
        for (int kind = 0; group && kind < ZERO_COLLECTIVE_KINDS; kind++) {
            mine[ZERO_RANK_IN_FLIGHT] += group->duration[kind].total;
            mine[ZERO_RANK_AWAITED] += group->duration[kind].exposed;
        }
    }
    ZERO_TRY(zero_agree(
        comm, zero_new(&made.of_rank, made.n * ZERO_RANK_TIMES, "seconds of all ranks")));
    ZERO_TRY(zero_comm_all_gather_doubles(comm, ZERO_RANK_TIMES, mine, made.of_rank));
    for (int t = 0; t < ZERO_RANK_TIMES; t++) {
        double sum = 0.0;
        made.least[t] = made.most[t] = made.of_rank[t];
        for (int r = 0; r < made.n; r++) {
            double x = made.of_rank[(int64_t)r * ZERO_RANK_TIMES + t];
            made.least[t] = fmin(made.least[t], x);
            made.most[t] = fmax(made.most[t], x);
            sum += x;
        }
        made.mean[t] = sum / made.n;
    }
    ZERO_GIVE(seconds, made);
    return ZERO_OK;
}

void zero_rank_seconds_destroy(zero_rank_seconds *seconds)
{
    free(seconds->of_rank);
    *seconds = (zero_rank_seconds){0};
}
