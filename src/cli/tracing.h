/* tracing.h - --trace: a run's rings, and the file that rank 0 writes of them.
 *
 * The file is written when the run ends: by itself, after a requested stop, and after a
 * failure that all ranks have. After a failure that one rank has alone, such as the
 * watchdog's, the others cannot be asked: rank 0, or the rank that the watchdog lets speak,
 * writes its own part. */
#pragma once

#include "cli/session.h"

/* Takes the rings and reads the clocks of all nodes. Does nothing without --trace.
 * Collective, with one verdict: ZERO_ERR_INVALID if the options fit neither ranks nor
 * steps, if the file would be too large, or cannot be written. */
zero_status zero_tracing_open(zero_session *s);
/* Prints on rank 0 what is recorded. Local. */
void zero_tracing_tell(const zero_session *s);

/* Step number `step`, from 1, begins, and has ended, at this time of the clock: if it is
 * told, rank 0 prints it then. The end is collective if the step is told. */
void zero_tracing_begin(zero_session *s, int64_t step, double now);
zero_status zero_tracing_end(zero_session *s, double now);

/* Writes the file and gives the rings back. Returns `st`; if that is ZERO_OK, the status of
 * writing. Collective after ZERO_OK and where all ranks have the failure. */
zero_status zero_tracing_close(zero_session *s, zero_status st);

/* ---- --narrate: the first steps, told in words ---- */

/* Takes the room for events. Does nothing without --narrate. Collective, with one verdict:
 * ZERO_ERR_UNSUPPORTED, with the remedy, for what cannot be told: large models, many ranks,
 * devices and replicas; ZERO_ERR_NOMEM. */
zero_status zero_telling_open(zero_session *s);
void zero_telling_close(zero_session *s); /* local */

/* ---- both ---- */

#define ZERO_TRACED_STEPS 3 /* the last ones, unless --trace-steps is given */

/* Everything that can be found wrong with their options without ranks. ZERO_ERR_INVALID. */
zero_status zero_tracing_check(const zero_config *config);
