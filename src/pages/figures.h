/* figures.h - the numbers that stand at the top of a report, computed once for all of its forms. */
#pragma once

#include "pages/record.h"
#include "train/step_times.h"

/* Shares are from 0 to 1 (imbalance from 0 on). NAN: unknown, as the metrics do not have it. */
typedef struct {
    double loss, val_loss;    /* of the last step; the last that was measured, NAN: none */
    int64_t step, val_step;   /* the steps of these; val_step 0: none */
    zero_step_time step_time; /* without the first steps, as the run's own summary */
    double tokens_per_second; /* median of the same steps */
    int64_t planned_peak, measured_peak; /* bytes of rank 0; 0: unknown */
    double waited;                       /* = exposed: the sixth figure */

    /* All ranks' means; rank 0's alone where the file has no seconds by rank (an older version's, or
     * of a run that has not ended). */
    bool of_all_ranks;
    double compute;   /* share of the step's time in arithmetic */
    double exposed;   /* share of it that is spent waiting for others' data */
    double imbalance; /* most / mean - 1 of the ranks' seconds of arithmetic */
    double overlap;   /* share of collectives' time in flight that computing hid */
} zero_figures;

/* One row per figure, in the order in which they are shown. */
typedef struct {
    const char *key;        /* "tokens_per_second": in CSV and JSON */
    const char *name;       /* "tokens per second" */
    const char *definition; /* in words */
} zero_figure_words;

enum { ZERO_SIX_FIGURES = 6, ZERO_FOUR_NUMBERS = 4 };
extern const zero_figure_words zero_six_figures[ZERO_SIX_FIGURES]; /* loss, validation loss,
                      tokens/s, step, memory, waited */
extern const zero_figure_words zero_four_numbers[ZERO_FOUR_NUMBERS]; /* compute, exposed,
                      imbalance, overlap */

ZERO_NODISCARD zero_status zero_figures_of(const zero_record *record,
                                           zero_figures *figures);
/* The value of figure i of either list: seconds, bytes, a share or a plain number. */
double zero_six_figures_value(const zero_figures *figures, int i);
double zero_four_numbers_value(const zero_figures *figures, int i);
/* The share of a collective's time in flight that computing hid; NAN: unknown. */
double zero_traffic_hidden(const zero_record_traffic *traffic);
