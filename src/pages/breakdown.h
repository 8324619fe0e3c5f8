/* breakdown.h - a trace in numbers: where each rank's step went, and which rank was last at
 * each collective. Times are nanoseconds. */
#pragma once

#include <stdio.h>

#include <jansson.h>

#include "trace/trace_read.h"

/* A step of a rank, from its first instruction to its last. */
typedef struct {
    int rank;
    int64_t step, total;
    int64_t of_kind[ZERO_TRACED_KINDS];
    int64_t idle; /* between instructions; the kinds and this add up to the total */
} zero_breakdown_step;

/* A collective of one group: ranks that begin it early wait for the last one. */
typedef struct {
    const char *name; /* borrowed from the trace */
    int64_t step, sequence;
    int first;        /* the lowest rank of its group: groups count for themselves */
    int n_ranks;      /* that take part in it and are in the trace */
    int last;         /* the rank that began last */
    int64_t delay;    /* from the last but one to the last */
    int64_t spread;   /* from the first to the last */
    int64_t duration; /* from the first begin to the last end */
} zero_breakdown_collective;

/* A rank's part in the collectives that two ranks or more take part in. */
typedef struct {
    int rank;
    int64_t joined, last; /* collectives that it took part in, and in which it began last */
    int64_t delay;        /* of these, added up; at most INT64_MAX */
} zero_breakdown_late;

typedef struct {
    const zero_traced *trace;   /* borrowed, and has to stay */
    zero_breakdown_step *steps; /* [n_steps] by step, then by rank; owned, as all arrays */
    int64_t n_steps;
    zero_breakdown_step *sums; /* [trace->n_ranks] all steps of each */
    /* [n_collectives] by step, sequence and group */
    zero_breakdown_collective *collectives;
    int64_t n_collectives;
    zero_breakdown_late *late; /* [trace->n_ranks] */
} zero_breakdown;

/* ZERO_ERR_NOMEM; release it with _destroy. */
ZERO_NODISCARD zero_status zero_breakdown_of(const zero_traced *trace,
                                             zero_breakdown *breakdown);
void zero_breakdown_destroy(zero_breakdown *breakdown); /* accepts all zeros */

/* ---- forms ---- */

ZERO_NODISCARD zero_status zero_breakdown_print(const zero_breakdown *breakdown, FILE *out);
/* A row per rank and step, the first of which names the columns. */
void zero_breakdown_print_csv(const zero_breakdown *breakdown, FILE *out);
/* What texts and pages show, and all of it: both NULL without memory. */
json_t *zero_breakdown_facts(const zero_breakdown *breakdown);
json_t *zero_breakdown_describe(const zero_breakdown *breakdown);
