/* check.h - a debugging mode: ranks compare what they are about to do before they do it.
 *
 * Before anything else of a collective on data or of a small message (comm.h) is sent, the
 * group's ranks exchange a description of it. If one differs, all of them fail there with
 * ZERO_ERR_INVALID, in a text that names the ranks that differ from most, what they began and
 * what the others began. A rank that leaves out an operation is found at its next one; one
 * that has none is the watchdog's (watch.h).
 *
 * Each operation then blocks, and costs a small all-gather, which is not counted as traffic.
 * Making groups and windows is not compared. */
#pragma once

#include "comm/comm.h"
#include "comm/operation.h"
#include "zero/status.h"

/* Collective over comm. Does nothing on a group of one rank. ZERO_ERR_INVALID if comm checks
 * already. */
ZERO_NODISCARD zero_status zero_check_start(zero_comm *comm);

/* Collective over comm. Does nothing where none checks. */
ZERO_NODISCARD zero_status zero_check_stop(zero_comm *comm);

/* For the other files of comm/. Collective, blocks: ZERO_OK if all ranks begin `mine`. */
ZERO_NODISCARD zero_status zero_check_compare(zero_comm *comm, const zero_operation *mine);
