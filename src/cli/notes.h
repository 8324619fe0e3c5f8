/* notes.h - options that do less than they seem to. */
#pragma once

#include "base/listener.h"
#include "cli/options.h"

/* Prints a line on stderr for each option of a table that was given a value other than its
 * default and has no effect in this run, or less than it seems to: the rows say where. Rows
 * without the bits `only` are left out. `run` is what conditions may ask besides the
 * options: ranks and the like; taken over. Local. */
void zero_notes_show(const zero_options *given, const zero_option *rows, const void *values,
                     unsigned only, json_t *run);

/* Prints what it is told as a warning on stderr. */
zero_listener zero_notes_listener(void);
