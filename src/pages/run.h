/* run.h - a run, read from its metrics: one tree of facts, which all forms of `zero
 * report` show, and the numbers of its steps.
 *
 * The tree is what --json prints (README.md) but for "more", facts that only texts and
 * pages show. Reading is strict: a line that is not what train/metrics.h describes is an
 * error with the path, the line, what was expected and what was found. Keys that are not
 * known here are ignored, because newer versions add keys. What a run has not written is
 * absent or null. */
#pragma once

#include "facts/facts.h"
#include "sharding/schedule.h"
#include "train/metrics_read.h"

#define ZERO_RUN_PEERS 64        /* ranks of a matrix, at most */
#define ZERO_RUN_RANKS (1 << 20) /* of a run that is read */

/* Columns of steps. The keys of their lines, but for `skipped` all may be null, which is
 * NAN. */
typedef enum {
    ZERO_STEP,
    ZERO_STEP_LOSS,
    ZERO_STEP_VAL_LOSS,
    ZERO_STEP_LR,
    ZERO_STEP_GRAD_NORM,
    ZERO_STEP_LOSS_SCALE,
    ZERO_STEP_TOKENS,
    ZERO_STEP_SECONDS,
    ZERO_STEP_EXPOSED,
    ZERO_STEP_RATE, /* tokens per second */
    ZERO_STEP_ELAPSED,
    ZERO_STEP_SKIPPED, /* 0 or 1 */
    ZERO_STEP_COLUMNS
} zero_step_column;

typedef struct {
    json_t *tree;                     /* owned */
    int64_t n;                        /* steps, at least one */
    double *steps[ZERO_STEP_COLUMNS]; /* [n], owned */
} zero_run;

/* Reads the metrics at `path`; "-" is no special name. ZERO_ERR_IO, ZERO_ERR_FORMAT,
 * ZERO_ERR_NOMEM. Release it with _destroy. */
zero_status zero_run_read(zero_run *run, const char *path);
/* The same from bytes in memory, which are copied. */
zero_status zero_run_parse(zero_run *run, const char *path, const void *text, size_t len);
void zero_run_destroy(zero_run *run); /* accepts all zeros */

/* A whole number of the tree; 0 if it is missing. */
int64_t zero_run_whole(const zero_run *run, const char *path);
/* Where it was read, legible. */
const char *zero_run_path(const zero_run *run);

/* ---- several runs; the first is the baseline of comparisons ---- */

/* For a terminal of 80 columns: one run in full; several side by side. */
zero_status zero_runs_print(const zero_run *runs, int n, FILE *out);
/* Rows of steps, the first of which names the columns: one per run and step. */
void zero_runs_print_csv(const zero_run *runs, int n, FILE *out);
/* {"runs": [...], "settings": [...]}: takes "more" out of their trees. NULL without
 * memory. */
json_t *zero_runs_describe(const zero_run *runs, int n);
/* The settings in which runs differ: [{"name", "values": [texts]}]. NULL without memory. */
json_t *zero_runs_settings(const zero_run *runs, int n);

/* The options and facts in which first lines differ: [{"name", "values"}]; null is left
 * open. `files`, ended by NULL, are options that only name files of a run. NULL without
 * memory. */
json_t *zero_settings_compare(const json_t *const *runs, int n, const char *const *files);
