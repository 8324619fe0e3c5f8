#include "train/step_times.h"

#include "base/number.h"

#define LEAST \
    6 /* steps: between the fastest and the slowest of 5 the median lies with 94 % */

zero_status zero_step_times_init(zero_step_times *t, int64_t steps)
{
    int64_t room = zero_min(steps, ZERO_STEP_TIMES_MOST);
    *t = (zero_step_times){.room = room};
    ZERO_TRY(zero_new(&t->later, room, "times of steps"));
    for (int64_t i = 0; i < room; i++) t->later[i] = NAN; /* no page is new in a step */
    return ZERO_OK;
}

void zero_step_times_destroy(zero_step_times *t)
{
    free(t->later);
    *t = (zero_step_times){0};
}

void zero_step_times_add(zero_step_times *t, double seconds)
{
    int64_t later = t->n++ - ZERO_STEP_TIMES_FIRST;
    if (later < 0)
        t->first[later + ZERO_STEP_TIMES_FIRST] = seconds;
    else
        t->later[later % t->room] = seconds;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return zero_order(x, y);
}

/* Between the neighbours of rank `share` x (n - 1) in sorted numbers. */
static double quantile(const double *sorted, int64_t n, double share)
{
    double at = share * (double)(n - 1);
    int64_t below = (int64_t)at, above = zero_min(below + 1, n - 1);
    return sorted[below] + (at - (double)below) * (sorted[above] - sorted[below]);
}

static void set_quartiles(zero_step_time *time, double *seconds)
{
    zero_sort(seconds, time->n, compare);
    time->lower = quantile(seconds, time->n, 0.25);
    time->median = quantile(seconds, time->n, 0.5);
    time->upper = quantile(seconds, time->n, 0.75);
}

/* By ranks: seconds[n] are sorted. */
static void set_interval(zero_step_time *time, const double *seconds)
{
    const double n = (double)time->n, width = 1.96 * sqrt(n);
    const int64_t from = (int64_t)floor((n - width) / 2.0) - 1,
                  to = (int64_t)ceil((n + width) / 2.0);
    const bool is_known = n >= LEAST;
    time->low = is_known ? seconds[zero_max(from, 0)] : NAN;
    time->high = is_known ? seconds[zero_min(to, time->n - 1)] : NAN;
}

zero_step_time zero_step_times_of(double *seconds, int64_t n, int64_t first)
{
    zero_step_time time = {.n = n - first, .first = first};
    set_quartiles(&time, seconds + first);
    set_interval(&time, seconds + first);
    return time;
}

zero_step_time zero_step_times_end(zero_step_times *t)
{
    bool is_short = t->n <= ZERO_STEP_TIMES_FIRST;
    double *seconds = is_short ? t->first : t->later;
    int64_t later = t->n - ZERO_STEP_TIMES_FIRST;
    zero_step_time time = {.n = is_short ? t->n : zero_min(later, t->room)};
    if (!is_short) time.first = ZERO_STEP_TIMES_FIRST;
    time.before = t->n - time.first - time.n;
    set_quartiles(&time, seconds);
    set_interval(&time, seconds);
    return time;
}
