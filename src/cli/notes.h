/* notes.h - options that do less than they seem to. */
#pragma once

#include "base/listener.h"
#include "cli/run_options.h"
#include "comm/algorithm.h"

/* Prints a line on stderr for each option that does little at the configuration's stage, or with the
 * collectives that were chosen, unless it has its default value. Local. */
void zero_notes_show(const zero_config *config, zero_algorithm collectives);

/* Prints what it is told as a warning on stderr. */
zero_listener zero_notes_listener(void);
