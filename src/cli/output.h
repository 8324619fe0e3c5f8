/* output.h - the standard descriptors, which a user may close or lead into a full disk. */
#pragma once

#include "base/fail.h"

/* Opens /dev/null for those of 0, 1 and 2 that are closed: the next file or pipe that a
 * library opens would get the number, and with it what is printed. Call it first; false if
 * that fails. */
bool zero_output_begin(void);

/* ZERO_ERR_ENV, with the reason, if the standard output could not be written completely.
 * Flushes it. Local. */
zero_status zero_output_check(void);
