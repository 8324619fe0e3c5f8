/* peers_test.h - bytes from rank to rank in a run: as planned, and as the ledgers have them. */
#pragma once

#include "comm/divide.h"
#include "engine/ranks.h"
#include "sharding/schedule_peers.h"
#include "support/mpi_cmocka.h"

/* Adds what this rank has moved in the group, by rank of the world. */
static inline void add_peers(const zero_comm *group, zero_peer_bytes *sum)
{
    for (int i = 0; group && i < group->size; i++) {
        int peer = zero_member_rank(&group->member, i);
        sum->sent[peer] += group->peers.sent[i];
        sum->read[peer] += group->peers.read[i];
    }
}

static inline zero_peer_bytes peers_of(zero_comm *comm)
{
    zero_peer_bytes sum = {0};
    add_peers(zero_comm_shard(comm), &sum);
    add_peers(zero_comm_replicas(comm), &sum);
    add_peers(zero_comm_tp(comm), &sum);
    add_peers(zero_comm_pipe(comm), &sum);
    return sum;
}

/* Each rank sends to each other what was planned, and reads from it what was planned. */
static inline bool check_peers(const zero_engine *e, const zero_peer_bytes *before)
{
    zero_comm *comm = e->runner.comm;
    zero_peer_bytes planned = *before, moved = peers_of(comm);
    assert_ok(zero_schedule_peers(&e->schedule, e->runner.walks, &planned));
    return memcmp(&planned, &moved, sizeof planned) == 0;
}

/* The rows and columns of the planned matrix add up to what the ledger says. */
static inline bool check_rows(const zero_engine *e)
{
    zero_rank_bytes bytes;
    zero_comm *comm = e->runner.comm;
    int64_t row = 0, column = 0;
    zero_traffic sum = {0};
    const zero_op ops[] = {ZERO_OP_REDUCE, ZERO_OP_ALL_REDUCE, ZERO_OP_GATHER,
                           ZERO_OP_JOIN,   ZERO_OP_COLLECT,    ZERO_OP_SEND,
                           ZERO_OP_RECEIVE};
    for (size_t k = 0; k < COUNT(ops); k++) {
        zero_traffic one = zero_engine_planned_traffic(e, ops[k]);
        zero_traffic_add(&sum, 1, &one);
    }
    zero_volume ledger_sum = zero_traffic_total(&sum);
    assert_ok(zero_rank_bytes_gather(e, &bytes));
    for (int i = 0; i < bytes.n; i++) {
        row += bytes.planned[comm->rank * bytes.n + i];
        column += bytes.planned[i * bytes.n + comm->rank];
    }
    zero_rank_bytes_destroy(&bytes);
    return row == ledger_sum.bytes_sent && column == ledger_sum.bytes_received;
}
