/* sweep_file.h - a study as files: study.csv, a row per point, and study.json, with everything that
 * the points were. Their fields: src/cli/README.md, "Scaling studies". */
#pragma once

#include "io/bytes.h"
#include "report/sweep.h"

#define ZERO_SWEEP_FORMAT 1 /* "study" in study.json */

/* Appends the rows, the first of which has the names of the columns, as RFC 4180 has them but for
 * the line's end, which is a new line alone. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_sweep_write_csv(const zero_sweep *sweep, zero_bytes *out);
/* A field, in quotes if it needs them. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_sweep_write_field(const char *text, zero_bytes *out);

/* The study as an object, the caller's (json_decref); NULL without memory. */
json_t *zero_sweep_describe(const zero_sweep *sweep);
/* Takes from a described point when it was started, and under what load. Leaves out what is not as
 * it should be. */
void zero_sweep_recall(zero_sweep_point *point, const json_t *described);
