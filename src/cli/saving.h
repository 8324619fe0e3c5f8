/* saving.h - when a training run saves, and what it resumes from.
 *
 * With --checkpoint a run saves every --save-every steps or --save-minutes, on request
 * (requests.h) and at its end. A save is written beside the next steps and published after
 * the step in which all ranks have written it, at the latest before the next save; the last
 * one, and with --save sync each, before the run goes on. A failed save is one warning and the run continues; a
 * requested stop is tried again. A run whose last checkpoint fails ends with an error, and
 * with --save-required any failed save ends it. All ranks save after the same step. */
#pragma once

#include "cli/session.h"

/* With --resume opens the directory, removes leftovers of crashed runs, and takes from the
 * newest checkpoint what the run is not told: options, shape, tokenizer
 * (below). Collective, one verdict: ZERO_ERR_INVALID if the options do not fit
 * the directory, ZERO_ERR_IO and ZERO_ERR_FORMAT if a checkpoint is unreadable. */
zero_status zero_saving_find(zero_session *s);

/* Once the run is built, loads that checkpoint into the engine and the loader; without
 * --resume opens the directory. The same verdicts. Does nothing without --checkpoint. */
zero_status zero_saving_open(zero_session *s);

/* Call after each step, or once if there is none to do: saves if that is due or requested.
 * ZERO_STOPPED after the checkpoint of a requested stop; ZERO_ERR_ENV if a required one, or
 * the standard output, cannot be written. Collective. */
zero_status zero_saving_step(zero_session *s, int64_t step);

/* Where a step has failed on all ranks: publishes the save in flight. Returns st with its
 * message, whatever becomes of the save. Collective. */
zero_status zero_saving_rescue(zero_session *s, zero_status st);

/* Call before zero_saving_step(), on rank 0: ZERO_ERR_ENV if the standard output cannot be
 * written. With --checkpoint the run saves first, and zero_saving_step() stops it with that
 * error. Local. */
zero_status zero_saving_check_output(zero_session *s);

/* "saves" of a run's last line of metrics: how many, and the seconds in which this rank
 * waited for them; NULL without --checkpoint. Local. */
json_t *zero_saving_facts(const zero_session *s);

/* Adds the newest checkpoint to the message of a flipped bit. Returns st. Local. */
zero_status zero_saving_name_newest(const zero_session *s, zero_status st);

/* Closes the directory, also after a failure, whose status is passed through; a save in
 * flight is lost then. After ZERO_OK
 * it is collective: rank 0 removes a file, which may take long. */
zero_status zero_saving_close(zero_session *s, zero_status st);

/* ---- resumed_options.c ----
 *
 * The options of a resumed run, beside those of the run that saved its
 * checkpoint.
 *
 *     was not given, and decides numbers      taken from the checkpoint, and shown
 *     was given, and makes another model      refused, with both values
 *     any other difference                    shown
 *
 * Options that decide numbers are the rows with ZERO_OPTION_RESUMED. Nothing here is
 * collective; all ranks do the same with equal manifests. */

/* Takes options, shape and tokenizer into the session, before its configuration is
 * completed. ZERO_ERR_INVALID if the options are of another model or seed, or end before
 * the checkpoint's step; ZERO_ERR_FORMAT if the manifest has a value that no option takes.
 * Changes nothing then. */
zero_status zero_resumed_options_take(zero_session *s, const zero_manifest *m);

/* ZERO_ERR_INVALID if the run has other data without --new-data, or is reproducible and
 * adds in another order. */
zero_status zero_resumed_options_check(const zero_session *s, const zero_manifest *m);

/* True if the run continues on other data. */
bool zero_resumed_options_has_new_data(const zero_session *s, const zero_manifest *m);

/* Lists the options that differ, and lets rank 0 print what else does: arithmetic, the
 * order of sums, the learning rate. */
void zero_resumed_options_tell(zero_session *s, const zero_manifest *m);
