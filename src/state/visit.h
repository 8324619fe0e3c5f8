/* visit.h - reading and writing this rank's masters, momentum and variance.
 *
 * Code that reads or writes states does so block by block, in a visitor: states need not lie in
 * this rank's memory, nor in one piece. Elements are those of the group's flat space. Nothing here
 * is collective. A visit can fail on one rank alone, so the ranks agree before their next
 * collective (zero_agree()). */
#pragma once

#include "state/runner.h"
#include "state/state_block.h"

/* Calls `visit` for consecutive blocks that tile `range`, which lies in what this rank holds;
 * not at all if the range is empty. States in memory come as one block. ZERO_ERR_ENV or
 * ZERO_ERR_FORMAT if they cannot be read or written, else the visitor's status. */
ZERO_NODISCARD zero_status zero_states_visit(zero_runner *r, int group, zero_range range,
                                             zero_visit_access access,
                                             zero_state_visitor *visit, void *arg);

/* *view = the states of at most ZERO_STATES_VIEW elements in one piece, to be read. States in
 * memory are not copied; others are copied to room[3 * length], which may be NULL for states in
 * memory. The status of zero_states_visit(). */
#define ZERO_STATES_VIEW ((int64_t)1 << 20)
ZERO_NODISCARD zero_status zero_states_view(zero_runner *r, int group, zero_range range,
                                            float *room, zero_state_block *view);
