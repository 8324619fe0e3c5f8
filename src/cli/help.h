/* help.h - what --help prints and man pages hold, from a command's tables. */
#pragma once

#include "cli/options.h"

/* The command's usage, options with their real defaults, an example and its exit codes,
 * within 80 columns. --model among the words decides which preset's defaults are shown.
 * ZERO_ERR_INVALID for a model that is not known. */
zero_status zero_help_show(const zero_command *command, int argc, char **argv, FILE *out);

/* The same as a page of the manual, in troff's man macros; with NULL the page of zero
 * itself. */
zero_status zero_help_write_man(const zero_command *command, FILE *out);

/* All subcommands, a line each, topics, and the exit codes. */
zero_status zero_help_show_all(FILE *out);

/* ZERO_ERR_INVALID: no command has this name; the message has the nearest. */
zero_status zero_help_unknown(const char *word);

/* Every option with its value for a preset: a line each, or one JSON object in which what
 * is left open is null. */
zero_status zero_help_show_defaults(const zero_command *command, const char *model,
                                    bool json, FILE *out);

/* True if --help lists row i; *group becomes its heading if it begins one. */
bool zero_help_shows(const zero_command *command, int i, const char **group);
