/* live.h - the line that a run draws over and over on a terminal, and how long the run
 * still takes:
 *
 *     step 1240/4000  31% [######              ]  loss 2.981 (val 3.02)  9.9k tok/s
 *     51 ms: 38 compute 11 exposed  left 2 min 21 s  saved 1200     (all on one line)
 *
 * Only numbers become text here; cli/progress.h draws. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ZERO_LIVE_TEXT  256 /* bytes that hold any line */
#define ZERO_LIVE_STEPS 50  /* the median of the last ones stands for the steps to come */

/* A moment of a run. */
typedef struct {
    int64_t step, steps; /* done, and of the whole run */
    bool has_step;       /* this run has done one: the next members are known */
    double loss, seconds, tokens_per_second; /* of the last step */
    /* of its seconds, computing and waiting for collectives; NAN: unknown */
    double compute, exposed;
    bool has_val_loss;
    double val_loss; /* of the last evaluation */
    double left;     /* seconds; NAN: unknown */
    int64_t saved;   /* the newest step that is safe; -1: none */
} zero_live;

/* Writes the line in ASCII, in less than `width` columns: a terminal whose last column is
 * written may wrap. Parts that do not fit are left out, the least important ones first;
 * returns the length. */
size_t zero_live_text(const zero_live *live, int width, char text[ZERO_LIVE_TEXT]);

/* ---- how long it still takes ---- */

/* Seconds that parts of this run took. */
typedef struct {
    double steps[ZERO_LIVE_STEPS]; /* step n is at n modulo their number */
    int64_t n_steps;
    double evaluations, saves; /* sums */
    int64_t n_evaluations, n_saves;
} zero_live_times;

/* The rest of a run. */
typedef struct {
    int64_t steps, evaluations, saves;
    double save_seconds; /* between saves by the clock; 0: none */
} zero_live_rest;

/* How many of the steps after `step` up to `last` end with something that is done every
 * `every` steps (0: never), and also after the last one if `at_end`. */
int64_t zero_live_due(int64_t step, int64_t last, int64_t every, bool at_end);

void zero_live_add_step(zero_live_times *t, double seconds);

/* Seconds, as the median of the last steps and the means of evaluations and saves tell. NAN
 * before the first step; evaluations and saves count once one of them was measured. */
double zero_live_left(const zero_live_times *t, const zero_live_rest *rest);
