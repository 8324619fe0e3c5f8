/* metrics.h - the metrics file: one JSON object per line. The first says what the run is;
 * then there is one per step, and a last one.
 *
 *     {"run": {"version": "...", "commit": "...", "command": "...", "options": {...}, ...,
 *              "schedule": {...}}}
 *     {"step": 1, "loss": ..., "lr": ..., "grad_norm": ..., "loss_scale": ..., "tokens":
 *       ...,
 *      "step_seconds": ..., "exposed_seconds": ..., "tokens_per_second": ..., "elapsed":
 *        ...}
 *                                                         (+ "val_loss", "skipped": true)
 *     {"final": true, "digest": "...", "ranks": ..., "nodes": {"count": ..., "fake": ...},
 *      "step_time": {"median": ..., "lower_quartile": ..., ...}, "memory": {...},
 *      "communication": {...}, "profile": {"LOAD": {...}, ..., "BACKWARD": {...}, ...},
 *      "peers": {...}, "rank_seconds": {...}}
 *
 * The first line also has the training step's program, rank 0's, as zero plan
 * --show-schedule prints it:
 *
 *     "schedule": {"classes": ["parameters", ...],       those that have bytes somewhere in
 *                                                        it
 *                  "length": 36, "peak": 21,             instructions, and the number of
 *                                                        the highest
 *                  "instructions": [{"op": "GATHER", "name": "GATHER embedding", "bytes":
 *                    512,
 *                                    "live": [1024, ...]}, ...]}    by class, while it runs
 *
 * `microbatch` and `bytes` are absent where the program prints none. With a device `live`
 * is the device's. A program of more than ZERO_METRICS_INSTRUCTIONS is shortened to its
 * first and its last half of as many; then "left_out": {"after": 2048, "count": ...} says
 * how many instructions follow number 2048 and are left out, and "peak_instruction" is the
 * highest, if it is one of them.
 *
 * The profile covers all steps. Each class of instructions has `count`; this rank's
 * `seconds`, which add up to the steps', with `exchange_seconds` of them spent on
 * collectives in flight; and `least_seconds` and `most_seconds` of all ranks. REDUCE,
 * GATHER and JOIN also have the bytes that they move; FORWARD, RECOMPUTE and BACKWARD have
 * the same numbers by kinds of units.
 *
 * All ranks beside each other, in the last line:
 *
 *     "peers": {"node_of": [0, 0, 1], "planned": [[0, 8, 8], ...], "sent": [[0, 8, 8],
 *       ...]}
 *     "rank_seconds": {"step": {"least": ..., "mean": ..., "most": ..., "ranks": [...]},
 *                      "compute": {...}, "exchange": {...}, "exposed": {...}, "waited":
 *                        {...},
 *                      "transfers": {...}, "in_flight": {...}, "awaited": {...}}
 *
 * Peers are bytes of data by sender (row) and receiver, of all programs walked; small
 * messages are left out, since MPI chooses their routes (lists/peers.h). They are absent
 * beyond ZERO_MOST_PEERS ranks, and `ranks` beyond ZERO_METRICS_RANKS. engine/ranks.h says
 * what the seconds are. Hence mean compute / mean step is the share of arithmetic, most /
 * mean - 1 of compute the imbalance, and 1 - mean awaited / mean in_flight the overlap.
 *
 * Numbers have 17 significant digits, so that bits can be compared; numbers that are not
 * finite are null. One rank writes. Lines are there completely or not at all
 * (io/line_file.h). Losing some never stops the run: the next line that gets through has
 * "lost_lines", their number. */
#pragma once

#include "engine/ranks.h"
#include "io/json_tree.h"
#include "io/line_file.h"
#include "train/step_times.h"

typedef struct {
    zero_line_file
        file;         /* not open without --metrics; its `error` says why lines were lost */
    const char *path; /* borrowed */
    bool append;      /* to the existing lines */
} zero_metrics;

typedef struct {
    int64_t step; /* from 1 */
    double loss, lr, grad_norm, loss_scale, seconds;
    double exposed; /* of these seconds, waiting for collectives; NAN: unknown */
    double elapsed; /* seconds from the start of the run to the end of the step */
    bool skipped;   /* a gradient overflowed: nothing was updated */
    int64_t tokens;
    bool has_val_loss;
    double val_loss;
} zero_metrics_step;

/* The longest program that the first line has in full, and the most ranks whose seconds the
 * last line lists one by one. */
#define ZERO_METRICS_INSTRUCTIONS 4096
#define ZERO_METRICS_RANKS        1024

/* Creates the file, or opens it without changing it: this run may still be refused, and the
 * file may hold another run's lines. With a NULL path nothing is written. ZERO_ERR_INVALID
 * if the path cannot be opened for writing, or is a pipe that nobody reads. */
zero_status zero_metrics_open(zero_metrics *m, const char *path, bool append);
/* Before the first line: empties the file, unless the run is resumed. */
void zero_metrics_begin(zero_metrics *m);
/* The first line: what the run is, and its schedule. */
void zero_metrics_run_line(zero_metrics *m, json_t *run, const zero_schedule *schedule);
void zero_metrics_step_line(zero_metrics *m, const zero_metrics_step *step);
/* The last line: this rank's ledgers, planned and measured, and what all ranks did in the
 * steps. Collective: a new object on rank 0, NULL on the others. `fake_nodes`: there are
 * more nodes than machines. ZERO_ERR_NOMEM. */
zero_status zero_metrics_final_facts(zero_engine *e, zero_comm *comm, bool fake_nodes,
                                     const zero_step_time *step_time, const char *digest,
                                     json_t **facts);
/* It waits up to 2 s for the reader of a pipe. */
void zero_metrics_final_line(zero_metrics *m, json_t *facts);
/* Parts of the lines, NULL without memory: a number, null if it is not finite; "schedule"
 * of the first line; "rank_seconds" of the last. */
json_t *zero_metrics_real(double x);
json_t *zero_metrics_schedule(const zero_schedule *schedule);
json_t *zero_metrics_rank_seconds(const zero_rank_seconds *seconds);
/* Transfers of a scratch file, and of what each class of it moves. */
json_t *zero_metrics_moved(const zero_file_traffic *t);
json_t *zero_metrics_offload(const zero_offload_traffic *t);
/* Any text; bytes that are not UTF-8 become '?'. NULL without memory. */
json_t *zero_metrics_text(const char *text);
/* The nodes of a run, for its first line and its last. */
json_t *zero_metrics_nodes(const zero_layout *layout, bool fake);

void zero_metrics_close(zero_metrics *m);

/* Peak resident memory of this process, bytes. */
size_t zero_metrics_resident_peak(void);
