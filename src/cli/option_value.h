/* option_value.h - one value on its way from text into the configuration. */
#pragma once

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

/* "64", "2M": a whole number that may end in K, M or G; false if it is none. */
bool zero_option_parse_whole(const char *text, int64_t *number);
/* "1e-6", "12.5G": a finite decimal number that may end in K, M, G or T. */
bool zero_option_parse_rate(const char *text, double *number);
