/* paper_fig6.h - the ZeRO paper's figure 6: the largest model of C1 to C5.
 *
 * 400 devices of 32 GB, N_m = 16, N_d = 25, batch 16 per replica; sizes are those of the paper's
 * table 7. Ours is the deepest model of the same width that fits by paper_memory.h. */
#pragma once

#include <stdio.h>

#include "report/paper_plan.h"

typedef struct {
    const zero_paper_config *config;
    const char *printed;      /* the paper's size: "40B" */
    double paper;             /* in parameters */
    zero_paper_setup setup;   /* at the paper's size */
    zero_paper_memory memory; /* at the paper's size */
    double spare;             /* bytes of the device that it leaves */
    int64_t layers;           /* the most that fit; with them psi parameters */
    int64_t psi;
    int64_t
        fitted_psi; /* the same with C1's spare bytes kept back, which is a fit of ours */
    bool has_plan;
    zero_plan_fitted plan; /* the deepest model of zero's own plan; if has_plan */
    const char *why;       /* ours differs from the paper's; one line */
} zero_paper_largest;

/* The row of config i, from 0 for C1. Fails as zero_paper_plan_fit() does. */
ZERO_NODISCARD zero_status zero_paper_fig6_row(int i, zero_paper_largest *row);

/* Prints all rows, or one JSON object. Fails, with nothing printed, as zero_paper_fig6_row() does. */
ZERO_NODISCARD zero_status zero_paper_show_fig6(bool json, FILE *out);
