/* metrics.h - the metrics file: one JSON object per line, one line per step.
 *
 *     {"step": 1, "loss": ..., "lr": ..., "grad_norm": ..., "loss_scale": ..., "tokens": ...,
 *      "step_seconds": ..., "tokens_per_second": ...}     (+ "val_loss", "skipped": true)
 *     {"final": true, "digest": "...", "ranks": ..., "memory": {...}, "communication": {...},
 *      "profile": {"LOAD": {...}, ..., "BACKWARD": {...}, ...}}
 *
 * The profile is of all steps: of each class of instructions that this rank has run, `count`,
 * `seconds`, `exchange_seconds` (of these, moving what was in flight), `least_seconds` and
 * `most_seconds` of all ranks; of REDUCE and GATHER the bytes that they move, and of FORWARD,
 * RECOMPUTE and BACKWARD the same numbers by kinds of units. `seconds` add up to the steps'.
 *
 * Numbers have 17 significant digits, so that bits can be compared; what is not finite is
 * null. Written by one rank. A write that fails is kept in `broken` and never stops the run. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "comm/comm.h"
#include "engine/engine.h"

typedef struct {
    FILE *file;       /* NULL: no metrics are wanted */
    const char *path; /* borrowed */
    bool append;      /* go on behind what is there */
    bool broken;      /* a write failed: the file is incomplete */
} zero_metrics;

typedef struct {
    int64_t step; /* from 1 */
    double loss, lr, grad_norm, loss_scale, seconds;
    bool skipped; /* a gradient overflowed: nothing was updated */
    int64_t tokens;
    bool has_val_loss;
    double val_loss;
} zero_metrics_step;

/* Creates the file, or opens it and leaves it as it is: this run may still be refused, and the
 * lines be another's. A NULL path gives metrics that write nothing. ZERO_ERR_INVALID if the path
 * cannot be opened for writing. */
ZERO_NODISCARD zero_status zero_metrics_open(zero_metrics *m, const char *path,
                                             bool append);
/* Before the first line: empties the file, unless the run is resumed. */
void zero_metrics_begin(zero_metrics *m);
void zero_metrics_step_line(zero_metrics *m, const zero_metrics_step *step);
/* The last line: this rank's ledgers, planned and measured, and the profile of the steps.
 * ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_metrics_final_line(zero_metrics *m, const zero_engine *e,
                                                   const zero_comm *comm,
                                                   const zero_profile_ranks *steps,
                                                   const char *digest);
/* Closes the file; `broken` then tells whether all of it was written. */
void zero_metrics_close(zero_metrics *m);

/* Peak resident memory of this process, bytes. */
size_t zero_metrics_resident_peak(void);
