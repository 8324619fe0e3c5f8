/* progress.h - what rank 0 shows while a run trains: lines on stdout and, on a terminal,
 * one line on stderr that is drawn over and over (report/live.h).
 *
 *     stdout  step      1/4000 | loss  5.2138 | ...      every --log-every steps, here and
 *                                                        in files
 *     stderr  step 1240/4000  31%  loss 2.981  ...       redrawn when a step ends, and so
 *                                                        rarely that it can be read
 *
 * Whatever prints while the run trains erases the line first. The cursor waits at its
 * begin, so that what others print (the launcher, another rank, a crash) begins there, too.
 * Nothing is drawn during a step: no clock and no signal disturbs the arithmetic, and a
 * step of minutes is redrawn when it ends. */
#pragma once

#include "report/live.h"
#include "train/config.h"
#include "train/metrics.h"

typedef struct {
    bool may_be_live; /* as the options and the terminal say */
    bool is_live;
    const zero_config *config; /* borrowed */
    double drawn;              /* when the line was drawn last */
    double computed;           /* seconds of computing until the last step's end */
    zero_live line;
    zero_live_times times;
} zero_progress_view;

/* Decides whether there will be a line. Call it before MPI starts, which may set variables
 * that launchers set. */
void zero_progress_view_open(zero_progress_view *p, const zero_config *config);

/* On rank 0, before the first step; the other ranks show nothing. Draws the line if there
 * is one, and arranges that a signal that ends the process erases it. `start`: steps that
 * were done before; `saved`: the newest step that is safe, or -1. */
void zero_progress_view_begin(zero_progress_view *p, int64_t start, int64_t saved);

/* After a step and its evaluation: prints the lines that are due. `computed`: seconds that
 * steps have computed. Rank 0. */
void zero_progress_view_step(zero_progress_view *p, const zero_metrics_step *step,
                             double computed, double eval_seconds);

/* After the save that may follow a step: it took `save_seconds` if it made `saved` a newer
 * step. Draws the line if it was not drawn for a quarter of a second. */
void zero_progress_view_saved(zero_progress_view *p, int64_t saved, double save_seconds);

/* Before other output, and for good at the end of training, whatever its status. Accept a
 * zeroed one. */
void zero_progress_view_erase(const zero_progress_view *p);
void zero_progress_view_end(zero_progress_view *p);
