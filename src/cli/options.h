/* options.h - from the command line and a configuration file to a zero_config.
 *
 *     defaults  <  --config FILE  <  flags, whatever their order
 *
 * --name value and --name=value mean the same; a flag stands alone or is --name=on,
 * --name=off. The file is one JSON object with the same words without dashes:
 *
 *     {"model": "tiny", "global-batch": 64, "bucket": "2M", "shuffle": true}
 *
 * What a flag overrides is not looked at in the file. Nothing here needs MPI. */
#pragma once

#include <jansson.h>

#include "train/config.h"

typedef struct {
    zero_config config; /* its strings are borrowed from argv and from `file` */
    bool help;          /* --help or -h was given; then nothing else was read */
    uint64_t set;       /* use zero_options_is_set() */
    json_t *file;       /* owned; NULL without --config */
} zero_options;

/* Reads what follows the subcommand: argv[0] is the first option. Returns ZERO_ERR_INVALID
 * or ZERO_ERR_UNSUPPORTED, with *options untouched, on the first mistake; the message names
 * the option, the value and what would be allowed. `argv` outlives *options. */
ZERO_NODISCARD zero_status zero_options_parse(zero_options *options, int argc, char **argv);

/* Whether the user chose a value, by flag or file. `name` is an option's, without dashes.
 */
bool zero_options_is_set(const zero_options *options, const char *name);

/* Accepts what zero_options_parse() filled, and all zeros. */
void zero_options_destroy(zero_options *options);
