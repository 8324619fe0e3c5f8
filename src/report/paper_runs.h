/* paper_runs.h - the runs whose throughput the ZeRO paper shows, as data.
 *
 * Figures 2, 3, 4 and 8 print no numbers: `paper` is read off their pixels, to about 0.3 Tflop/s.
 * Configurations are those of the appendix, tables 5, 6, 9 and 10. The paper gives neither sequence
 * length nor vocabulary nor how it counts flops: 1024 positions and GPT-2's 50257 words are
 * assumed, and recomputed products counted.
 * Turing-NLG's rate is in the text; of a trillion parameters the paper has estimates and no run.
 * Source: Rajbhandari et al., ZeRO, arXiv:1910.02054v3, section 10 and appendix. */
#pragma once

#include "report/paper_memory.h"

typedef struct {
    const char *size;   /* as the paper calls the model: "100B" */
    const char *system; /* "ZeRO", "Megatron", "DDP", or a configuration of table 3 */
    zero_paper_setup setup;
    bool overlaps;   /* data-parallel messages with the backward pass */
    double paper;    /* Tflop/s of a device; 0: out of memory; below: no number */
    double speed_up; /* figure 2: over the run that follows; 0: not shown */
    /* Figure 3, 0: not shown. Tflop/s of all devices, and that of the first run times devices. */
    double total, linear;
    const char *note; /* one line: why ours differs; NULL: it does not by more than 15 % */
} zero_paper_run;

typedef struct {
    const char *name; /* as in --paper NAME */
    const char *title;
    const char *numbers; /* where the paper's numbers are from */
    const zero_paper_run *runs;
    int n;
} zero_paper_figure;

/* Borrowed; NULL for another name. "fig2", "fig3", "fig4", "fig8", "turing-nlg", "trillion". */
const zero_paper_figure *zero_paper_figure_find(const char *name);

int zero_paper_devices(const zero_paper_setup *setup); /* N_m N_d */
