/* check.h - a debugging mode: ranks compare what they are about to do before they do it.
 *
 * Before a collective on data or a small message (control.h) sends anything else, the
 * group's ranks exchange a description of it. If one differs, all ranks fail there with
 * ZERO_ERR_INVALID; the text names the ranks in the minority, what they began and what the
 * others began. A rank that leaves out an operation is found at its next one; a rank that
 * begins no other is left to the watchdog (watch.h).
 *
 * In a family (divide.h) the ranks of the operation's group compare, and fail; the
 * program's abort ends the others. What all ranks begin is compared within each TP group,
 * then within each ZeRO group; and with hybrid sharding what a ZeRO group begins within
 * each shard group, then within each replica group. So a rank that left out an operation of
 * one of them meets the ranks that wait there. While the check runs, ranks must begin the
 * operations of all the family's groups in one order.
 *
 * Each operation then blocks, and costs a small all-gather, which does not count as
 * traffic. The making of groups and windows is not compared. */
#pragma once

#include "comm/operation.h"

/* Collective over comm. Does nothing on a group of one rank. ZERO_ERR_INVALID if comm
 * checks already, or is a part (divide.h), whose whole checks. */
zero_status zero_check_start(zero_comm *comm);

/* Collective over comm. Does nothing where no check runs. */
zero_status zero_check_stop(zero_comm *comm);

/* For the other files of comm/. Collective, blocks: ZERO_OK if all ranks begin `mine`. Does
 * nothing where no check runs. */
zero_status zero_compare(zero_comm *comm, const zero_operation *mine);
