/* list.h - options whose values are lists with commas: "0-7,64", "5:0.8,7:0.5". */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "trace/trace_ranks.h"
#include "zero/status.h"

#define ZERO_LIST_PART 64 /* bytes of a part; longer ones are wrong */

/* Takes the part of *list before the next comma; *list becomes NULL after the last part.
 * False if it is longer than any that is right. */
bool zero_list_take(const char **list, char part[ZERO_LIST_PART]);
/* Cuts "a:b" in two: the part after the character, or NULL without it. */
char *zero_list_cut(char *text, char at);

bool zero_list_rank(const char *text, int *rank);
/* The ranks that a list may name: "--ranks" 8. */
typedef struct {
    const char *of;
    int64_t ranks;
} zero_list_job;

/* ZERO_ERR_INVALID in the name of --`option` unless the job has the rank. */
ZERO_NODISCARD zero_status zero_list_check_rank(const char *option, int rank,
                                                const zero_list_job *job);

/* The value of --trace-ranks. ZERO_ERR_INVALID. */
ZERO_NODISCARD zero_status zero_list_trace_ranks(const char *list, const zero_list_job *job,
                                                 zero_trace_ranks *to);
