/* help.h - what --help prints and man pages hold, from a command's tables. */
#pragma once

#include <stdio.h>

#include "cli/options.h"

/* The command's usage, options with their real defaults, an example and its exit codes,
 * within 80 columns. --model among the words decides which preset's defaults are shown.
 * ZERO_ERR_INVALID for a model that is not known. */
ZERO_NODISCARD zero_status zero_help_show(const zero_command *command, int argc,
                                          char **argv, FILE *out);

/* The same as a page of the manual, in troff's man macros; with NULL the page of zero
 * itself. */
ZERO_NODISCARD zero_status zero_help_write_man(const zero_command *command, FILE *out);

/* All subcommands, a line each, and the exit codes. */
void zero_help_show_all(FILE *out);

/* ZERO_ERR_INVALID: no command has this name; the message has the nearest. */
zero_status zero_help_unknown(const char *word);

/* Every option with its value for a preset: a line each, or one JSON object in which what
 * is left open is null. */
ZERO_NODISCARD zero_status zero_help_show_defaults(const zero_command *command,
                                                   const char *model, bool json, FILE *out);

/* ---- for the files that write help ---- */

#define ZERO_HELP_NUMBERS \
    "Options are --name value or --name=value; defaults are in brackets. Numbers N and " \
    "BYTES may end in K, M, G or T (KB, ...), powers of 1000, or in KiB, MiB, GiB or " \
    "TiB, " \
    "powers of 1024, for elements and bytes alike. Options without a value may be given " \
    "as " \
    "--name=on or --name=off."

/* True if --help lists row i; *group becomes its heading if it begins one. */
bool zero_help_shows(const zero_command *command, int i, const char **group);

/* A command's defaults; with a model those of its preset. *defaults is the caller's
 * (free). */
ZERO_NODISCARD zero_status zero_help_defaults(const zero_command *command,
                                              const char *model, void **defaults);

/* The default of a row in brackets' place: its value, or in words what happens without
 * it. */
const char *zero_help_default(const zero_option *option, const void *defaults,
                              char text[ZERO_OPTION_TEXT_BYTES]);

/* Exit code i and what it means for the command (NULL: any): the code; -1 past the last
 * one. */
int zero_help_exit(const zero_command *command, int i, const char **meaning);
