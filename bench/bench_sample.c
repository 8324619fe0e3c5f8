#include "bench_sample.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/fail.h"
#include "bench_median.h"

#define CPU_SHARE 0.95 /* below it another process had the core */
#define TRIES     3    /* rounds taken for each one to keep, at most */

zero_status bench_series_init(bench_series *series, const bench_clock *clock, int n_works)
{
    size_t n = (size_t)clock->rounds * (size_t)n_works, all = n + (size_t)clock->rounds;
    *series = (bench_series){.n_works = n_works, .rounds = clock->rounds};
    series->seconds = calloc(all, sizeof *series->seconds);
    if (!series->seconds) return zero_fail(ZERO_ERR_NOMEM, "no memory for %zu times", all);
    series->sorted = series->seconds + n;
    return ZERO_OK;
}

void bench_series_destroy(bench_series *series)
{
    free(series->seconds);
    *series = (bench_series){0};
}

bool bench_series_wants_more(const bench_series *series)
{
    return series->kept < series->rounds && series->taken < TRIES * series->rounds;
}

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Waiting for other ranks counts as having the core: a rank that waits spins. */
static zero_status time_work(zero_comm *comm, const bench_work *work, int repeats,
                             double *seconds, double *away)
{
    double cpu = 0.0, wall = 0.0;
    *seconds = 0.0;
    for (int i = 0; i < repeats; i++) {
        if (work->prepare) ZERO_TRY(work->prepare(work->arg));
        double cpu_before = cpu_seconds(), before = zero_clock_seconds();
        ZERO_TRY(zero_comm_barrier(comm));
        double start = zero_clock_seconds();
        ZERO_TRY(work->run(work->arg));
        double end = zero_clock_seconds();
        *seconds += (end - start) / repeats;
        wall += end - before;
        cpu += cpu_seconds() - cpu_before;
    }
    *away = fmax(*away, 1.0 - cpu / wall);
    return ZERO_OK;
}

/* Replaces each number by the largest of all ranks. */
static zero_status agree(zero_comm *comm, int n, double *x)
{
    int size = comm->size;
    double *all = malloc((size_t)(n * size) * sizeof *all);
    zero_status st = ZERO_OK;
    if (!all) st = zero_fail(ZERO_ERR_NOMEM, "no memory for times of %d ranks", size);
    st = zero_agree(comm, st);
    if (st == ZERO_OK) st = zero_comm_all_gather_doubles(comm, n, x, all);
    for (int i = 0; st == ZERO_OK && i < n * size; i++) x[i % n] = fmax(x[i % n], all[i]);
    free(all);
    return st;
}

zero_status bench_series_add(bench_series *series, const bench_clock *clock,
                             const bench_work works[], int repeats)
{
    double x[BENCH_WORKS + 1];
    int n = series->n_works;
    x[n] = 0.0; /* the largest part of a work's time without the core */
    for (int i = 0; i < n; i++) {
        int w = (i + series->taken) % n;
        ZERO_TRY(time_work(clock->comm, &works[w], repeats, &x[w], &x[n]));
    }
    ZERO_TRY(agree(clock->comm, n + 1, x));
    series->taken++;
    series->away += x[n];
    if (clock->drops && x[n] > 1.0 - CPU_SHARE) return ZERO_OK;
    for (int w = 0; w < n; w++) series->seconds[series->kept * n + w] = x[w];
    series->kept++;
    return ZERO_OK;
}

/* ---- statistics ---- */

double bench_core_share(const bench_series *series)
{
    return series->taken > 0 ? 1.0 - series->away / series->taken : NAN;
}

/* The median of (a + factor * b) / to over the rounds; to < 0 stands for 1 s. */
static double median(const bench_series *series, int a, int b, double factor, int to)
{
    double *x = series->sorted;
    for (int i = 0; i < series->kept; i++) {
        const double *s = series->seconds + i * series->n_works;
        x[i] = (s[a] + factor * s[b]) / (to < 0 ? 1.0 : s[to]);
    }
    return bench_median(x, series->kept);
}

double bench_seconds(const bench_series *series, int work)
{
    return median(series, work, 0, 0.0, -1);
}

double bench_ratio(const bench_series *series, int work, int to)
{
    return median(series, work, 0, 0.0, to);
}

bench_spread bench_ratio_between(const bench_series *series, int before, int after,
                                 int work)
{
    double *x = series->sorted;
    for (int i = 0; i < series->kept; i++) {
        const double *s = series->seconds + i * series->n_works;
        x[i] = 0.5 * (s[before] + s[after]) / s[work];
    }
    double median = bench_median(x, series->kept);
    if (series->kept == 0) return (bench_spread){NAN, NAN, NAN};
    return (bench_spread){median, x[0], x[series->kept - 1]};
}

double bench_overlap(const bench_series *series, int both, int compute, int alone)
{
    return 1.0 - median(series, both, compute, -1.0, alone);
}
