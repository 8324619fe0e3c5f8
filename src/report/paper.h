/* paper.h - the paper's tables beside our own numbers. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "zero/status.h"

/* Prints every cell of "table1", "table2" or "figure1": our exact value, what the paper
 * prints, how far it is off and how the two agree; then what that means, and the counts. At
 * most 100 columns; with `json`, one JSON object. ZERO_ERR_INVALID, printing nothing, names
 * what there is. Whether `out` took it all is for its owner to check. */
ZERO_NODISCARD zero_status zero_paper_show(const char *name, bool json, FILE *out);
