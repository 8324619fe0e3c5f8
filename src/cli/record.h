/* record.h - what a run is, for those who read its results. */
#pragma once

#include "cli/session.h"

/* Shows the head of the run and, if it has steps to do, begins its metrics with the same.
 * After saving.h has loaded what the run resumes from. Collective; ZERO_ERR_NOMEM,
 * ZERO_ERR_ENV if the standard output cannot be written. */
ZERO_NODISCARD zero_status zero_record_begin(zero_session *s);
