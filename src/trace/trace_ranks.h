/* trace_ranks.h - the ranks that a trace has: the value of --trace-ranks. */
#pragma once

#include <stdbool.h>

#define ZERO_TRACE_RANGES 64

/* [n] ranges with both ends. */
typedef struct {
    int n;
    struct {
        int first, last;
    } range[ZERO_TRACE_RANGES];
} zero_trace_ranks;

static inline bool zero_trace_ranks_have(const zero_trace_ranks *list, int rank)
{
    for (int k = 0; k < list->n; k++)
        if (rank >= list->range[k].first && rank <= list->range[k].last) return true;
    return false;
}
