/* saving.h - when a training run saves, and where it goes on from.
 *
 * With --checkpoint a run saves every --save-every steps, when it is asked to (requests.h),
 * and at its end. What cannot be saved is one warning and the run goes on, and a stop that was
 * asked for is tried again; but a run does not end well without its last checkpoint, and
 * --save-required ends it at once. All ranks save after the same step. */
#pragma once

#include "cli/session.h"

/* Opens the directory, clears away what dead runs have left there, and with --resume loads the
 * newest checkpoint into the engine and the loader. Collective, one verdict: ZERO_ERR_INVALID
 * if options do not fit what is there, ZERO_ERR_IO and ZERO_ERR_FORMAT if a checkpoint is
 * unreadable. Without --checkpoint nothing is done. */
ZERO_NODISCARD zero_status zero_saving_open(zero_session *s);

/* After each step: does what is due or requested. ZERO_STOPPED after a checkpoint that was
 * to be the last; ZERO_ERR_ENV if one that is required cannot be written. Collective. */
ZERO_NODISCARD zero_status zero_saving_step(zero_session *s, int64_t step);

void zero_saving_close(zero_session *s);
