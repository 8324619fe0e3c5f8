/* saving.h - when a training run saves, and what it resumes from.
 *
 * With --checkpoint a run saves every --save-every steps or --save-minutes, on request
 * (requests.h) and at its end. A failed save is one warning and the run continues; a
 * requested stop is tried again. A run whose last checkpoint fails ends with an error, and
 * with --save-required any failed save ends it. All ranks save after the same step. */
#pragma once

#include "cli/session.h"

/* With --resume opens the directory, removes leftovers of crashed runs, and takes from the
 * newest checkpoint what the run is not told: options, shape, tokenizer
 * (resumed_options.h). Collective, one verdict: ZERO_ERR_INVALID if the options do not fit
 * the directory, ZERO_ERR_IO and ZERO_ERR_FORMAT if a checkpoint is unreadable. */
ZERO_NODISCARD zero_status zero_saving_find(zero_session *s);

/* Once the run is built, loads that checkpoint into the engine and the loader; without
 * --resume opens the directory. The same verdicts. Does nothing without --checkpoint. */
ZERO_NODISCARD zero_status zero_saving_open(zero_session *s);

/* Call after each step, or once if there is none to do: saves if that is due or requested.
 * ZERO_STOPPED after the checkpoint of a requested stop; ZERO_ERR_ENV if a required one, or
 * the standard output, cannot be written. Collective. */
ZERO_NODISCARD zero_status zero_saving_step(zero_session *s, int64_t step);

/* Call before zero_saving_step(), on rank 0: ZERO_ERR_ENV if the standard output cannot be
 * written. With --checkpoint the run saves first, and zero_saving_step() stops it with that
 * error. Local. */
ZERO_NODISCARD zero_status zero_saving_check_output(zero_session *s);

/* Adds the newest checkpoint to the message of a flipped bit. Returns st. Local. */
zero_status zero_saving_name_newest(const zero_session *s, zero_status st);

/* Closes the directory, also after a failure, whose status is passed through. After ZERO_OK
 * it is collective: rank 0 removes a file, which may take long. */
ZERO_NODISCARD zero_status zero_saving_close(zero_session *s, zero_status st);
