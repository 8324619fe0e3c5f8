#include "cli/tracing_options.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "base/fail.h"
#include "base/quantity.h"

/* "3-5", or "4". */
static bool read_steps(const char *text, int64_t *first, int64_t *last)
{
    char part[ZERO_LIST_PART];
    const char *list = text;
    if (!zero_list_take(&list, part) || list) return false;
    const char *end = zero_list_cut(part, '-');
    return zero_quantity_whole(part, first) &&
           zero_quantity_whole(end ? end : part, last) && *first >= 1 && *first <= *last;
}

static zero_status check_steps(const zero_config *c)
{
    int64_t first, last;
    if (!c->trace_steps) return ZERO_OK;
    if (!read_steps(c->trace_steps, &first, &last))
        return zero_fail(ZERO_ERR_INVALID,
                         "--trace-steps %.80s: expected a step or a range of steps from 1 "
                         "on, such as 3-5",
                         c->trace_steps);
    if (c->steps <= 0 || last <= c->steps) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "--trace-steps %.80s: the run has steps 1 to %" PRId64
                     " (--steps): give steps among these",
                     c->trace_steps, c->steps);
}

zero_status zero_tracing_check(const zero_config *c)
{
    zero_trace_ranks ranks;
    if (!c->trace && c->trace_ranks)
        return zero_fail(ZERO_ERR_INVALID, ZERO_TRACE_RANKS_ALONE);
    if (!c->trace && c->trace_steps)
        return zero_fail(ZERO_ERR_INVALID,
                         "--trace-steps without --trace: give --trace FILE as well");
    if (!c->trace) return ZERO_OK;
    ZERO_TRY(check_steps(c));
    return zero_tracing_ranks(c, INT_MAX, &ranks);
}

int64_t zero_tracing_window(const zero_config *c, zero_trace_window *window)
{
    int64_t first, last;
    *window = (zero_trace_window){.keeps = ZERO_TRACED_STEPS, .last = INT64_MAX};
    if (!c->trace_steps || !read_steps(c->trace_steps, &first, &last)) return 0;
    *window = (zero_trace_window){.keeps = last - first + 1, .last = last};
    return first;
}

zero_status zero_tracing_ranks(const zero_config *c, int ranks, zero_trace_ranks *to)
{
    zero_list_job job = {"a job of", ranks};
    *to = (zero_trace_ranks){.n = 1, .range = {{0, ranks - 1}}};
    return c->trace_ranks ? zero_list_trace_ranks(c->trace_ranks, &job, to) : ZERO_OK;
}
