#include "cli/list.h"

#include <limits.h>
#include <string.h>

#include "base/fail.h"
#include "base/quantity.h"

bool zero_list_take(const char **list, char part[ZERO_LIST_PART])
{
    size_t length = strcspn(*list, ",");
    bool is_last = (*list)[length] == '\0';
    if (length >= ZERO_LIST_PART) return false;
    memcpy(part, *list, length);
    part[length] = '\0';
    *list = is_last ? NULL : *list + length + 1;
    return true;
}

char *zero_list_cut(char *text, char at)
{
    char *found = strchr(text, at);
    if (!found) return NULL;
    *found = '\0';
    return found + 1;
}

bool zero_list_rank(const char *text, int *rank)
{
    int64_t number;
    if (!zero_quantity_whole(text, &number) || number < 0 || number > INT_MAX) return false;
    *rank = (int)number;
    return true;
}

zero_status zero_list_check_rank(const char *option, int rank, const zero_list_job *job)
{
    if (rank < job->ranks) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID, "--%s: rank %d: %s %d has ranks 0 to %d", option,
                     rank, job->of, (int)job->ranks, (int)job->ranks - 1);
}

/* ---- --trace-ranks ---- */

zero_status zero_list_trace_ranks(const char *list, const zero_list_job *job,
                                  zero_trace_ranks *to)
{
    char part[ZERO_LIST_PART];
    zero_trace_ranks read = {.n = 0};
    for (const char *rest = list; rest;) {
        int first, last;
        const char *end = NULL;
        bool is_read = zero_list_take(&rest, part);
        if (is_read) end = zero_list_cut(part, '-');
        if (!is_read || !zero_list_rank(part, &first) ||
            !zero_list_rank(end ? end : part, &last) || first > last ||
            read.n == ZERO_TRACE_RANGES)
            return zero_fail(
                ZERO_ERR_INVALID,
                "--trace-ranks %.80s: expected ranks and ranges of ranks with commas "
                "between them, such as 0-7,64; at most %d of them",
                list, ZERO_TRACE_RANGES);
        ZERO_TRY(zero_list_check_rank("trace-ranks", last, job));
        read.range[read.n].first = first;
        read.range[read.n++].last = last;
    }
    *to = read;
    return ZERO_OK;
}
