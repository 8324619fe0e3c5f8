/* run_options.h - the options of a training run: rows that fill a zero_config. */
#pragma once

#include "base/listener.h"
#include "cli/options.h"
#include "lists/algorithm.h"
#include "train/config.h"

extern const zero_option zero_run_options[];

/* The options that are part of a run's identity, by name and as a user would write them;
 * what is left to the preset is left out. The caller's (json_decref); NULL without
 * memory. */
json_t *zero_run_options_identity(const zero_config *config);

/* Older runs do not name options of their identity that came later. True if `name` is such
 * an option and `value` is what those runs did without it. */
bool zero_run_options_is_as_ever(const char *name, const char *value);

/* The options that differ from their defaults, of those that `given` has, by name and with
 * their types, as a --config file takes them. The caller's (json_decref); NULL without
 * memory. */
json_t *zero_run_options_chosen(const zero_options *given, const zero_config *config);

/* Notes of what has no effect (below) in a run, or a plan, whose configuration is
 * completed and which uses these collectives. n_hosts: machines of the run; 0: it is a
 * plan. */
void zero_run_options_note(const zero_options *given, const zero_config *config,
                           zero_algorithm collectives, int n_hosts);

/* A hash of the options that all ranks must have been given alike. */
uint64_t zero_run_options_fingerprint(const zero_config *config);

/* ---- options that do less than they seem to ---- */

/* Prints a line on stderr for each option of a table that was given a value other than its
 * default and has no effect in this run, or less than it seems to: the rows say where. Rows
 * without the bits `only` are left out. `run` is what conditions may ask besides the
 * options: ranks and the like; taken over. Local. */
void zero_notes_show(const zero_options *given, const zero_option *rows, const void *values,
                     unsigned only, json_t *run);

/* Prints what it is told as a warning on stderr. */
zero_listener zero_notes_listener(void);
