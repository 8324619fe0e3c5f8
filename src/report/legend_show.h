/* legend_show.h - the words that a picture used, each with its line (ops.def). */
#pragma once

#include <stdio.h>

#include "report/plan_entries.h"

/* The words so far; begins zeroed. */
typedef struct {
    bool ops[ZERO_OP_KINDS], classes[ZERO_CLASSES];
    bool has_freed;
} zero_legend;

/* The instructions of these entries; the classes of memory that they name. */
void zero_legend_add(zero_legend *legend, const zero_plan_entries *entries);

/* A line for each, in up to 80 columns, after an empty one. */
void zero_legend_show(const zero_legend *legend, FILE *out);
