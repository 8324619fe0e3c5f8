/* step_times.h - how long steps take: the median and the quartiles, without the first
 * steps, in which memory is touched for the first time. */
#pragma once

#include "base/fail.h"

#define ZERO_STEP_TIMES_FIRST 3     /* steps that are left out, if there are more */
#define ZERO_STEP_TIMES_MOST  65536 /* of a longer run only the last ones count */

typedef struct {
    double first[ZERO_STEP_TIMES_FIRST];
    double *later;   /* [room] the newest ones; owned */
    int64_t room, n; /* n: all that were added */
} zero_step_times;

typedef struct {
    double median, lower, upper; /* seconds; the quartiles */
    /* The true median lies between these two with 95 %, whatever the distribution (Le Boudec
     * 2010, theorem 2.1). NAN for fewer than 6 steps. */
    double low, high;
    int64_t n;             /* steps that count */
    int64_t first, before; /* steps left out at the beginning, and after those */
    double flops;          /* of the model in a rank's part of a step; 0: unknown */
} zero_step_time;

/* For a run of that many steps. ZERO_ERR_NOMEM; release with _destroy. */
zero_status zero_step_times_init(zero_step_times *t, int64_t steps);
void zero_step_times_destroy(zero_step_times *t); /* accepts all zeros */

void zero_step_times_add(zero_step_times *t, double seconds);
/* Of the steps so far, at least one. Sorts them: call it once, at the end. */
zero_step_time zero_step_times_end(zero_step_times *t);

/* The median and quartiles of n > first steps without the first ones. Sorts those that
 * count. */
zero_step_time zero_step_times_of(double *seconds, int64_t n, int64_t first);
