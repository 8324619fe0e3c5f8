/* plan_join.h - what JOINs of the blocks move by formula, beside the paper's, and what P_a saves. */
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

/* P_a: bytes that wait for their backward pass, and bytes that a rank sends per step to make them
 * whole again, if that goes by messages. */
typedef struct {
    size_t pieces, wholes; /* of this rank; without P_a, a rank keeps `wholes` */
    double added;
} zero_plan_kept_parts;

zero_plan_kept_parts zero_plan_kept_parts_of(const zero_schedule *s);

/* Lines; nothing without partition_activations. */
void zero_plan_show_kept_parts(const zero_schedule *s, const zero_plan_ledger *l,
                               FILE *out);
