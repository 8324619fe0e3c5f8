/* plan_columns.h - the memory ledger of a plan, beside it what lies in another place. */
#pragma once

#include <stdio.h>

#include "report/plan_report.h"

/* The memory ledger with a third column, beside the peaks. */
typedef struct {
    const char *own_peak, *at_peak, *third; /* the columns' heads */
    const size_t *bytes;                    /* [ZERO_CLASSES] of the third */
    size_t sum;                             /* of all classes there */
} zero_plan_columns;
void zero_plan_show_columns(const zero_schedule *s, const zero_plan_ledger *l,
                            const zero_plan_columns *columns, FILE *out);
