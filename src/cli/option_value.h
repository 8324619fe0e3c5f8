/* option_value.h - one value on its way from text into the configuration. */
#pragma once

#include <jansson.h>

#include "cli/option_table.h"
#include "train/config.h"

/* The default: `standard`; without one NULL, false, or the number that config.h reads as
 * "the preset decides": 0, or -1 where the option may be 0. */
void zero_option_reset(const zero_option *option, zero_config *config);

/* Checks `text` and stores it; texts and choices are borrowed. `where` is what a message
 * calls the value: "--steps -1", or "\"steps\": -1 in run.json". ZERO_ERR_INVALID with the
 * allowed values; ZERO_ERR_UNSUPPORTED if the value is allowed, but beyond this version. */
ZERO_NODISCARD zero_status zero_option_store(const zero_option *option, const char *text,
                                             const char *where, zero_config *config);

/* "64", "2M", "16GiB": a whole number in a range, else ZERO_ERR_INVALID with that range. It may
 * end in K, M, G or T (powers of 1000), or in KiB, MiB, GiB or TiB (of 1024). */
ZERO_NODISCARD zero_status zero_option_read_whole(const char *text, const char *where,
                                                  int64_t least, int64_t most,
                                                  int64_t *number);
/* "1e-6", "12.5G": a finite decimal number that may end in K, M, G or T. */
bool zero_option_parse_rate(const char *text, double *number);

/* What a configuration says, by the options' names and as a user would write it. Left out is
 * what it leaves to the preset, and what concerns only how a run is shown, watched and saved.
 * The caller's (json_decref); NULL without memory. */
json_t *zero_option_values(const zero_config *config);
