/* breakdown.h - a trace in numbers: where each rank's step went, and which rank was last at
 * each collective. One tree, of seconds:
 *
 *     steps         of each rank, by step, then by rank: from its first instruction to its
 *                   last; the kinds of instructions, and idle between them, add up to it
 *     sums          all steps of each rank
 *     collectives   of one group, by step, sequence and group: ranks that begin it early
 *                   wait for the last one. delay: from the last but one to the last;
 *                   spread: from the first to the last
 *     late          each rank's part in those that two ranks or more take part in
 *     latest        those with the longest delays, the longest first */
#pragma once

#include "trace/trace_read.h"

/* A new tree. ZERO_ERR_NOMEM. */
zero_status zero_breakdown_of(const zero_traced *trace, json_t **breakdown);

zero_status zero_breakdown_print(const json_t *breakdown, FILE *out);
/* A row per rank and step, the first of which names the columns. */
void zero_breakdown_print_csv(const json_t *breakdown, FILE *out);
/* What --json has of it: a new tree. NULL without memory. */
json_t *zero_breakdown_describe(const json_t *breakdown);
