/* paper_fig7.h - the ZeRO paper's figure 7: the most memory that PyTorch's allocator held.
 *
 * 400 devices of 32 GB, N_m = 16, N_d = 25; 40 billions with batch 16, 100 with 32 (table 8). The
 * paper prints no numbers: its values are read off the bars, to about 0.3 GB. Ours is what is alive by
 * paper_memory.h; the rest of the paper's is what the allocator keeps. */
#pragma once

#include <stdio.h>

#include "report/paper_plan.h"

#define ZERO_PAPER_CACHED \
    (2 * ZERO_PAPER_CONFIGS) /* cells: C1 to C5 of 40B, then of 100B */

typedef struct {
    const zero_paper_config *config;
    const char *model; /* "40B" */
    double paper;      /* bytes; 0: the paper has no bar */
    zero_paper_setup setup;
    zero_paper_memory memory; /* what is alive */
    bool has_plan;
    size_t plan;     /* bytes of zero's own plan; if has_plan */
    const char *why; /* ours differs from the paper's; one line */
} zero_paper_held;

/* Fails as zero_paper_plan_needed() does. */
ZERO_NODISCARD zero_status zero_paper_fig7_cell(int i, zero_paper_held *cell);

/* Prints all cells, or one JSON object. Fails, with nothing printed, as zero_paper_fig7_cell(). */
ZERO_NODISCARD zero_status zero_paper_show_fig7(bool json, FILE *out);
