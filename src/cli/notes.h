/* notes.h - options that do less than they seem to. */
#pragma once

#include "base/listener.h"
#include "cli/run_options.h"

/* Prints a line on stderr for each option that was given a value other than its default and has no
 * effect in this run, or less than it seems to: the rows of zero_run_options say where. Local. */
void zero_notes_show(const zero_options *given, const zero_run_facts *run);

/* Prints what it is told as a warning on stderr. */
zero_listener zero_notes_listener(void);
