/* steps_run.h - what the steps of a collective wait for, and what they do: for flight.c. */
#pragma once

#include "comm/group.h"

/* After this much arithmetic, 0.1 ms or so, a poll returns to the caller. */
#define ZERO_STEPS_BYTES_PER_POLL ((size_t)1 << 20)

/* Takes note of the messages and copies that have ended. */
zero_status zero_steps_reap(zero_collective *op);

/* Runs the next steps as far as they are ready. *computed: bytes read by arithmetic in this
 * poll, which end it. */
zero_status zero_steps_run(zero_collective *op, size_t *computed);
