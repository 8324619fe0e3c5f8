/* paper_speed.h - figures 2, 3, 4 and 8 of the ZeRO paper beside a model of time.
 *
 * Every run of a figure (paper_runs.h) on the machine v100-dgx2 by throughput.h, and for each figure
 * a counterfactual: what the same model of time says if the cause that the paper names is taken
 * away. Numbers come first, then what prints them. */
#pragma once

#include <stdbool.h>
#include <stdio.h>

#include "report/paper_runs.h"
#include "report/throughput.h"

#define ZERO_PAPER_MACHINE "v100-dgx2"

#define ZERO_PAPER_NEAR 0.15 /* of the paper's number */

typedef struct {
    int cells, near; /* that the paper has; within ZERO_PAPER_NEAR */
    double typical; /* how far ours are off: root of the mean square of log(ours / paper) */
} zero_paper_closeness;

zero_paper_closeness zero_paper_compare_runs(const zero_paper_figure *figure,
                                             const zero_machine_file *machine);

zero_throughput zero_paper_time(const zero_paper_run *run,
                                const zero_machine_file *machine);

/* Figure 2: the run if all its devices were on one node, so that no link is shared and model
 * parallelism never leaves it. */
zero_throughput zero_paper_time_inside(const zero_paper_run *run,
                                       const zero_machine_file *machine);

/* Figure 2: one replica of the run alone, without data parallelism; the paper's text has Megatron's 40B
 * on two nodes. */
zero_throughput zero_paper_time_alone(const zero_paper_run *run,
                                      const zero_machine_file *machine);
#define ZERO_PAPER_40B_ALONE 5.0 /* Tflop/s of a device, "about" */

/* Figure 3: the runs, of which the first is the base, with one of these batches. */
typedef enum {
    ZERO_PAPER_OWN_BATCH,  /* the paper's */
    ZERO_PAPER_LEFT_BATCH, /* the most samples that take what the base takes in the paper */
    ZERO_PAPER_FULL_BATCH, /* the most samples that fit a device: nothing else is in its memory */
    ZERO_PAPER_FIXED_BATCH, /* the base's for all: the counterfactual */
    ZERO_PAPER_BATCHES
} zero_paper_batch;

typedef struct {
    int devices;
    int64_t batch;       /* per replica */
    double rate, total;  /* flops per second: of a device, of all */
    double times_linear; /* total / (the base's * devices / the base's devices) */
} zero_paper_scaling;

/* Writes scaling[figure->n]. */
void zero_paper_scale(const zero_paper_figure *figure, zero_paper_batch kind,
                      const zero_machine_file *machine, zero_paper_scaling *scaling);

/* Figure 4: the run's setup with whole model states on every device. */
zero_paper_setup zero_paper_without_zero(const zero_paper_run *run);
/* The largest model of the run's width whose states and one sample fit a device that way. */
double zero_paper_largest_without_zero(const zero_paper_run *run,
                                       const zero_machine_file *machine);

/* Figure 8: the run with the batch of the figure's first run of the same size. */
zero_throughput zero_paper_time_first_batch(const zero_paper_figure *figure, int run,
                                            const zero_machine_file *machine);

/* Turing-NLG and a trillion: the run on the same devices with another degree of model parallelism
 * and another stage, and the most samples that fit then; batch 0: not even one does. Stage 0 is
 * Megatron's, without overlap. */
zero_paper_run zero_paper_cut_among(const zero_paper_run *run, int model_parallel,
                                    int stage, const zero_machine_file *machine);
/* The paper's estimates for a trillion parameters on the run's devices, in bytes and days. */
typedef struct {
    double states,
        paper_states; /* model states of a device, P_os+g+p without model parallelism */
    double days, paper_days; /* 3000 times the 67 minutes of BERT-Large */
    double
        days_for_tokens; /* of the run for 300 000 steps of 512 x 1024 tokens; ours alone */
} zero_paper_estimates;

zero_paper_estimates zero_paper_estimate(const zero_paper_run *run,
                                         const zero_machine_file *machine);

/* Prints one of zero_paper_figure_find()'s figures, at most 100 columns, or one JSON object. Fails as
 * zero_machine_file_find() does; then nothing is printed. */
ZERO_NODISCARD zero_status zero_paper_show_speed(const zero_paper_figure *figure, bool json,
                                                 FILE *out);
