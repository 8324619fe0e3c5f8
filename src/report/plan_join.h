/* plan_join.h - what JOINs of the blocks move by formula, beside the paper's. */
#pragma once

#include <stdio.h>

#include "report/plan_report.h"

/* Bytes that a rank sends for the blocks, per step, if JOINs go by messages. A sum counts twice: 10
 * elements are 5 sums. */
typedef struct {
    int elements, papers_elements; /* of b s h (T-1)/T, for each block and microbatch */
    double ours, papers;
} zero_plan_blocks;

zero_plan_blocks zero_plan_blocks_of(const zero_schedule *s);

/* One line; nothing without JOINs. */
void zero_plan_show_blocks(const zero_schedule *s, FILE *out);
