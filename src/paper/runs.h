/* runs.h - the runs of the ZeRO paper, from data/, and what follows from the formulas of
 * formulas/: bytes of a device, and seconds of a step.
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

#include "report/machine_file.h"

#define ZERO_PAPER_MACHINE "v100-dgx2"
#define ZERO_PAPER_NEAR    0.15 /* of the paper's number */
#define ZERO_PAPER_DEVICE  32e9 /* bytes of a V100, of which the paper had 400 */

/* The data of a table or figure, "fig2"; NULL: there is none. The caller releases it. */
json_t *zero_paper_data(const char *name);

/* A row of data is a run:
 *
 *     {model: "100B", as the paper calls it, system: "ZeRO", "Megatron", "DDP", or a
 *      configuration of table 3, layers, hidden, heads, model_parallel: N_m, ranks: N_d,
 *      batch: samples that a replica computes at a time, stage, keep: whole, piece or cpu,
 *      overlaps: data-parallel messages with the backward pass,
 *      paper: Tflop/s of a device, 0: out of memory, below: no number,
 *      note: why ours differs, if it does by more than 15 %}
 *
 * This is a new one that also has psi, devices and the numbers of formulas/, those of
 * time.txt with a machine alone. */
json_t *zero_paper_run(const json_t *row, const zero_machine_file *machine);
zero_shape zero_paper_shape(const json_t *row);

/* The row with another number, a new one. */
json_t *zero_paper_with(const json_t *row, const char *key, int64_t number);

/* The most samples ("batch") or layers with which the run takes no more than `bytes`; 0 if
 * not even one fits; at most 2^20. */
int64_t zero_paper_most(const json_t *row, const char *key, double bytes);

/* The tree of a figure of runs: its cells, and a counterfactual: what the same model of
 * time says if the cause that the paper names is taken away. NULL: no memory. */
json_t *zero_paper_speed(const json_t *data, const zero_machine_file *machine);
