/* sweep.h - a scaling study: one model on several numbers of ranks, in several stages.
 *
 *     weak      micro batch fixed:   efficiency = t1 / tN
 *     strong    global batch fixed:  efficiency = t1 n1 / (tN nN)
 *
 * t is the median of a point's steps without its first ones; t1 and n1 are those of the stage's
 * point with the fewest ranks among those that are measured. Source of a measurement is the
 * metrics of its run (train/metrics.h), and nothing else. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "train/metrics_read.h"
#include "train/step_times.h"

#define ZERO_SWEEP_NAME 40 /* bytes of a point's name */
#define ZERO_SWEEP_WHY  512

typedef enum {
    ZERO_SWEEP_MISSING,
    ZERO_SWEEP_FAILED,
    ZERO_SWEEP_MEASURED
} zero_sweep_state;

/* A model of time; NAN: none. */
typedef struct {
    double step;    /* seconds */
    double exposed; /* share of the step that waits for the network */
} zero_sweep_model;

typedef struct {
    int stage, ranks;
    char name[ZERO_SWEEP_NAME]; /* "stage3-ranks4" */

    /* when it was started last */
    char started[24];         /* UTC; empty: never */
    double load[3];           /* of this machine, over 1, 5 and 15 minutes; -1: unknown */
    char why[ZERO_SWEEP_WHY]; /* ZERO_SWEEP_FAILED: the reason */

    zero_sweep_state state;
    /* ZERO_SWEEP_MEASURED */
    zero_step_time time;
    int64_t tokens; /* of a step, over all ranks */
    /* Median share of a step in which rank 0 waits for collectives; NAN: unknown. */
    double exposed;
    int nodes;
    bool fake_nodes;
    double cores; /* of the machine, per rank: below 1 ranks share cores; 0: unknown */
    double efficiency;
    int base;    /* the number of ranks that it is relative to */
    json_t *run; /* what the run was: the first line of its metrics; owned */

    zero_sweep_model planned, simulated;
} zero_sweep_point;

typedef struct {
    bool is_strong;
    int64_t steps, warm_up;   /* of each point; of them left out */
    zero_sweep_point *points; /* [n], owned; by stage, then by ranks */
    int n;
    bool has_plan, has_simulation; /* these columns are asked for */

    /* Common to all points, for the files; borrowed. */
    const char *version, *commit; /* of the program that made the study */
    const char *launch;           /* NULL: none */
    const json_t *options;        /* of zero train, by name */
    const json_t *machine;        /* rates of the models of time; NULL: none */
} zero_sweep;

/* Points for all stages and ranks, both ascending, without measurements. ZERO_ERR_NOMEM; release
 * with _destroy. */
ZERO_NODISCARD zero_status zero_sweep_init(zero_sweep *sweep, const int *stages,
                                           int n_stages, const int *ranks, int n_ranks);
void zero_sweep_destroy(zero_sweep *sweep); /* accepts all zeros */

/* Takes the measurement from a finished run's metrics. ZERO_ERR_FORMAT, with the point as it was, if
 * something is missing: the run has not ended, or it had other ranks or steps. */
ZERO_NODISCARD zero_status zero_sweep_measure(zero_sweep_point *point,
                                              const zero_metrics_file *file, int64_t steps,
                                              int64_t warm_up);
/* Efficiencies of all measured points. */
void zero_sweep_compare(zero_sweep *sweep);
/* The efficiency of step time t on n ranks, relative to t1 on n1. */
double zero_sweep_efficiency(bool is_strong, double t1, int n1, double t, int n);

int zero_sweep_count(const zero_sweep *sweep, zero_sweep_state state);
double zero_sweep_tokens_per_second(const zero_sweep_point *point);
/* "measured", "missing", "failed" */
const char *zero_sweep_state_name(zero_sweep_state state);
