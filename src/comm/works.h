/* works.h - what zero/collective.h begins: collectives whose step lists are kept for the next
 * of the same shape, and messages. For the other files of comm/. */
#pragma once

#include <stdbool.h>

#include "comm/group.h"
#include "zero/status.h"

/* Makes the group one that works can use: starts the family's thread (thread.h), and names
 * the group, if need be. Local. */
ZERO_NODISCARD zero_status zero_works_start(zero_comm *comm);

/* Begins the collectives of which all ranks have said by now where their data lie. The
 * caller holds the lock. */
ZERO_NODISCARD zero_status zero_works_decide(zero_comm *comm);

/* Waits until nothing is in flight on the groups of its family. The caller holds the
 * lock. */
ZERO_NODISCARD zero_status zero_works_drain(zero_comm *comm);

/* Waits for all that is in flight on the family, and frees what the group's works kept.
 * Frees nothing after a failure: then an abort follows. Accepts a group without works. */
ZERO_NODISCARD zero_status zero_works_end(zero_comm *comm);
