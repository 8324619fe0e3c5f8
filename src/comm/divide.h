/* divide.h - a group divided into TP groups, pipeline groups, ZeRO groups, shard groups and
 * replica groups, which make progress together.
 *
 * The group that was divided, the whole, and this rank's group of each part are a family. T
 * is the size of a TP group, P the number of pipeline stages, N the number of TP groups of
 * a stage, R the size of a shard group, and K = N / R:
 *
 *     rank               TP group: T neighbours, which compute one replica together
 *     (s * N + d) * T    ZeRO group: the N ranks with the same part p of stage s, by d
 *     + p                pipeline group: the P ranks with the same d and p, by s
 *     d = k * R + j      shard group: R neighbours of a ZeRO group, over which states are
 *                        sharded replica group: the K ranks of a ZeRO group with the same
 *                        shard j, by k
 *
 * There are TP groups if T > 1, and pipeline groups if P > 1; without both the whole is the
 * ZeRO group. There are shard groups and replica groups with hybrid sharding, R < N; else
 * the ZeRO group is the shard group.
 *
 * Each group has windows, sequence numbers and traffic counters of its own. The family
 * shares one watchdog, check, progress thread, deadline and patience, all started on the
 * whole. Every wait and every poll on any of the groups moves the collectives of all of
 * them. If a wait moved only those of its own group, four ranks could wait in a circle: A
 * in its TP group for B, B in its ZeRO group for B', B' in its TP group for A', and A' in
 * its ZeRO group for A.
 *
 * Ranks may begin collectives of different groups in different orders, unless the check
 * runs (check.h). */
#pragma once

#include "comm/group.h"

/* Collective over `world`, and blocks; `tp`, `shard_ranks` and `pp` are the same on all
 * ranks. tp = 1 makes no TP groups, pp = 1 no pipeline groups, shard_ranks = 0 or N no
 * shard groups; with all three it does nothing. `world` owns the groups and ends them with
 * itself; it must not be moved in memory from now on. Nodes that it pretends are those of
 * its parts, so declare them before; start helpers afterwards. ZERO_ERR_INVALID, with the
 * numbers, unless tp * pp, both >= 1, divides the number of ranks, and shard_ranks is 0, N
 * or a power of two that divides N; and if the group was divided before, is a part itself,
 * or has a helper. ZERO_ERR_NOMEM. */
zero_status zero_comm_divide(zero_comm *world, int tp, int shard_ranks, int pp);

/* ---- this rank's groups; `comm` is the whole, or was never divided ---- */

/* The ZeRO group of N ranks; the group itself without TP groups. Local. */
zero_comm *zero_comm_data(zero_comm *comm);

/* The shard group of R ranks; the ZeRO group without hybrid sharding. Local. */
zero_comm *zero_comm_shard(zero_comm *comm);

/* The replica group of K ranks; NULL without hybrid sharding. Local. */
zero_comm *zero_comm_replicas(zero_comm *comm);

/* The pipeline group of P ranks; NULL without pipelines. Local. */
zero_comm *zero_comm_pipe(zero_comm *comm);

/* The TP group of T ranks; NULL without TP groups. Local. */
zero_comm *zero_comm_tp(zero_comm *comm);
