/* options.h - from a command line and a --config file to the struct of a command.
 *
 *     defaults  <  --config FILE  <  flags, whatever their order
 *
 * --name value and --name=value mean the same; a flag stands alone or is --name=on,
 * --name=off. The file is one JSON object with the same words without dashes:
 *
 *     {"model": "tiny", "global-batch": 64, "bucket": "2M", "shuffle": true}
 *
 * The file's value for an option that a flag overrides is ignored. Of an option that is
 * given more than once the last one counts, and rank 0 prints a note on stderr. Nothing
 * here needs MPI. */
#pragma once

#include "cli/command.h"

#define ZERO_OPERANDS_MOST 64

struct zero_options {
    const zero_command *command;
    int argc; /* what follows the command's name; borrowed */
    char **argv;
    bool set[ZERO_OPTIONS_MOST];              /* by row; use zero_options_is_set() */
    const char *operands[ZERO_OPERANDS_MOST]; /* [n_operands], borrowed from argv */
    int n_operands;
    json_t *file; /* owned; NULL without --config */
};

/* Sets every option to its default, and the rest to zero. */
void zero_options_reset(const zero_command *command, void *into);

/* Reads what follows the command's name into the struct: argv[0] is the first option; then
 * the command checks it. Texts there are borrowed from `argv` and from `given`, which is
 * the caller's to destroy. ZERO_ERR_INVALID on the first mistake, in a message that names
 * the option, the value and what is allowed; *given is untouched then, and the struct
 * undefined. */
zero_status zero_options_read(const zero_command *command, int argc, char **argv,
                              void *into, zero_options *given);
void zero_options_destroy(zero_options *given); /* accepts all zeros */

/* Refuses options that contradict each other: by a section of forms/checks.txt, a command's
 * or "places", over a tree of options, which is taken over. ZERO_ERR_INVALID. */
zero_status zero_options_check(const char *section, json_t *tree);

/* The same, and runs the command; or prints its help, if the words ask for it. */
zero_status zero_options_run(const zero_command *command, int argc, char **argv);

/* True if the user chose a value, by flag or file. `name` is an option's, without
 * dashes. */
bool zero_options_is_set(const zero_options *given, const char *name);
