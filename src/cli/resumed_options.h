/* resumed_options.h - the options of a resumed run, beside those of the run that saved its
 * checkpoint.
 *
 *     was not given, and decides numbers      taken from the checkpoint, and shown
 *     was given, and makes another model      refused, with both values
 *     any other difference                    shown
 *
 * Options that decide numbers are the rows with ZERO_OPTION_RESUMED. Nothing here is
 * collective; all ranks do the same with equal manifests. */
#pragma once

#include "cli/session.h"

/* Takes options, shape and tokenizer into the session, before its configuration is
 * completed. ZERO_ERR_INVALID if the options are of another model or seed, or end before
 * the checkpoint's step; ZERO_ERR_FORMAT if the manifest has a value that no option takes.
 * Changes nothing then. */
ZERO_NODISCARD zero_status zero_resumed_options_take(zero_session *s,
                                                     const zero_manifest *m);

/* ZERO_ERR_INVALID if the run has other data without --new-data, or is reproducible and
 * adds in another order. */
ZERO_NODISCARD zero_status zero_resumed_options_check(const zero_session *s,
                                                      const zero_manifest *m);

/* True if the run continues on other data. */
bool zero_resumed_options_has_new_data(const zero_session *s, const zero_manifest *m);

/* Lists the options that differ, and lets rank 0 print what else does: arithmetic, the
 * order of sums, the learning rate. */
void zero_resumed_options_tell(zero_session *s, const zero_manifest *m);
