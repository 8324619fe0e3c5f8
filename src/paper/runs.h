/* runs.h - the runs whose throughput the ZeRO paper shows, from data/, in time by
 * throughput.h.
 *
 * Figures 2, 3, 4 and 8 print no numbers: `paper` is read off their pixels, to about 0.3
 * Tflop/s. Configurations are those of the appendix, tables 5, 6, 9 and 10. The paper gives
 * neither sequence length nor vocabulary nor how it counts flops: 1024 positions and
 * GPT-2's 50257 words are assumed, and recomputed products counted.
 * Turing-NLG's rate is in the text; of a trillion parameters the paper has estimates and no
 * run. ZeRO is ZeRO-100B (P_os+g and ZeRO-R); Megatron-LM of September 2019 sums gradients
 * after the backward pass; DDP is torch's DistributedDataParallel.
 * Source: Rajbhandari et al., ZeRO, arXiv:1910.02054v3, section 10 and appendix. */
#pragma once

#include <jansson.h>

#include "paper/throughput.h"

#define ZERO_PAPER_MACHINE "v100-dgx2"
#define ZERO_PAPER_RUNS    32   /* of a figure, at most */
#define ZERO_PAPER_NEAR    0.15 /* of the paper's number */

typedef struct {
    const char *size;   /* as the paper calls the model: "100B" */
    const char *system; /* "ZeRO", "Megatron", "DDP", or a configuration of table 3 */
    zero_paper_setup setup;
    bool overlaps;   /* data-parallel messages with the backward pass */
    double paper;    /* Tflop/s of a device; 0: out of memory; below: no number */
    double speed_up; /* figure 2: over the run that follows; 0: not shown */
    /* Figure 3, 0: not shown. Tflop/s of all devices, and that of the first run times
     * devices. */
    double total, linear;
    const char *note; /* one line: why ours differs; NULL: it does not by more than 15 % */
} zero_paper_run;

/* The data of a table or figure, "fig2"; NULL: there is none. The caller releases it. */
json_t *zero_paper_data(const char *name);

/* A row's shape, ranks and batch. */
zero_paper_setup zero_paper_setup_of(const json_t *row);
/* The runs of a figure's data, whose texts they borrow. Returns their number. */
int zero_paper_runs(const json_t *data, zero_paper_run runs[ZERO_PAPER_RUNS]);

int zero_paper_devices(const zero_paper_setup *setup); /* N_m N_d */

zero_throughput zero_paper_time(const zero_paper_run *run,
                                const zero_machine_file *machine);

/* Figure 2: the run if all its devices were on one node, so that no link is shared and
 * model parallelism never leaves it. */
zero_throughput zero_paper_time_inside(const zero_paper_run *run,
                                       const zero_machine_file *machine);

/* Figure 2: one replica of the run alone, without data parallelism; the paper's text has
 * Megatron's 40B on two nodes. */
zero_throughput zero_paper_time_alone(const zero_paper_run *run,
                                      const zero_machine_file *machine);

/* Turing-NLG and a trillion: the run on the same devices with another degree of model
 * parallelism and another stage, and the most samples that fit then; batch 0: not even one
 * does. Stage 0 is Megatron's, without overlap. */
zero_paper_run zero_paper_cut_among(const zero_paper_run *run, int model_parallel,
                                    int stage, const zero_machine_file *machine);

/* The tree of a figure of runs: its cells, and a counterfactual: what the same model of
 * time says if the cause that the paper names is taken away. NULL: no memory. */
json_t *zero_paper_speed(const json_t *data, const zero_machine_file *machine);
