/* divide.h - a group divided into TP groups and ZeRO groups, which make progress together.
 *
 * The group that was divided, the whole, and this rank's TP group and ZeRO group are a family:
 *
 *     rank d * T + p    TP group d: T neighbours, which compute one replica together
 *                       ZeRO group p: the ranks with the same part p of the model, by d
 *
 * Each group has windows, sequence numbers and traffic counters of its own. The family shares
 * one watchdog, check, progress thread, deadline and patience, all started on the whole. Every
 * wait and every poll on any of the groups moves the collectives of all three. If a wait moved
 * only those of its own group, four ranks could wait in a circle: A in its TP group for B, B in
 * its ZeRO group for B', B' in its TP group for A', and A' in its ZeRO group for A.
 *
 * Ranks may begin collectives of different groups in different orders, unless the check runs
 * (check.h). */
#pragma once

#include "comm/group.h"
#include "zero/status.h"

/* Collective over `world`, and blocks; `tp` is the same on all ranks, and 1 does nothing. `world`
 * owns both groups and ends them with itself; it must not be moved in memory from now on. Nodes
 * that it pretends are those of its parts, so declare them before; start helpers afterwards.
 * ZERO_ERR_INVALID, with the numbers, unless tp >= 1 divides the number of ranks, and if the group
 * was divided before, is a part itself, or has a helper. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_comm_divide(zero_comm *world, int tp);

/* This rank's ZeRO group; the group itself if it was never divided. Local. */
zero_comm *zero_comm_data(zero_comm *comm);

/* This rank's TP group; NULL if the group was never divided. Local. */
zero_comm *zero_comm_tp(zero_comm *comm);

/* The first TP group d of `tp` ranks that lies on more than one node, or -1: the same on all
 * ranks. `comm` need not be divided. Local; tp >= 1. */
int zero_comm_find_spread(const zero_comm *comm, int tp);
