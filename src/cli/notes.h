/* notes.h - options that do less than they seem to. */
#pragma once

#include "cli/run_options.h"

/* Prints a line on stderr for each option that does little at the configuration's stage, unless it
 * has its default value. Local. */
void zero_notes_show(const zero_config *config);
