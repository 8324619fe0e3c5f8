/* notes.h - options that do less than they seem to. */
#pragma once

#include "base/listener.h"
#include "cli/run_options.h"

typedef struct {
    const zero_option *rows; /* of one table */
    const void *values;      /* the struct that has their fields */
    const void *run;         /* what their conditions are asked about */
    unsigned only;           /* rows that have these bits; 0: all */
} zero_notes;

/* Prints a line on stderr for each option that was given a value other than its default and
 * has no effect in this run, or less than it seems to: the rows say where. Local. */
void zero_notes_show_all(const zero_options *given, const zero_notes *of);
/* The same of zero_run_options. */
void zero_notes_show(const zero_options *given, const zero_run_facts *run);

/* Prints what it is told as a warning on stderr. */
zero_listener zero_notes_listener(void);
