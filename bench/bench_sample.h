/* bench_sample.h - times of several works, measured alternately, and statistics of them.
 *
 * On a shared machine a single time means little. So works that are compared run one after
 * another in every round, each round beginning with the next one; reported are medians of the
 * ratios within rounds. A round in which a rank shared its core is dropped on all ranks. */
#pragma once

#include <stdbool.h>

#include "comm/comm.h"

#define BENCH_WORKS 32 /* compared in one series, at most */

typedef struct {
    zero_status (*prepare)(void *arg); /* before each run, not timed; may be NULL */
    zero_status (*run)(void *arg);     /* all ranks begin it together */
    void *arg;
} bench_work;

typedef struct {
    zero_comm *comm;
    /* Rounds in which a rank had its core for less than 95 % of a work's time are dropped. */
    bool drops;
    int rounds; /* to keep; up to three times as many are taken */
} bench_clock;

typedef struct {
    int n_works, rounds;
    int taken, kept;
    double away;     /* sum over the rounds taken: see bench_core_share() */
    double *seconds; /* [rounds][n_works], owned: per run, of the slowest rank */
    double *sorted;  /* [rounds], in the same array */
} bench_series;

zero_status bench_series_init(bench_series *series, const bench_clock *clock, int n_works);
void bench_series_destroy(bench_series *series); /* accepts a zeroed one */

/* True if another round is wanted; the same on all ranks. */
bool bench_series_wants_more(const bench_series *series);

/* Collective: one round, in which each work runs `repeats` times. */
zero_status bench_series_add(bench_series *series, const bench_clock *clock,
                             const bench_work works[], int repeats);

/* Medians over the rounds; NaN if none was kept. */
double bench_seconds(const bench_series *series, int work);
double bench_ratio(const bench_series *series, int work, int to);

/* Median of 1 - (both - compute) / alone: the part of `alone` that overlapped `compute`. */
double bench_overlap(const bench_series *series, int both, int compute, int alone);

typedef struct {
    double median, least, most;
} bench_spread;

/* mean(before, after) / work over the rounds: `before` and `after` ran around `work`. */
bench_spread bench_ratio_between(const bench_series *series, int before, int after,
                                 int work);

/* The part of its time for which a rank had its core, in the worst work of a round: the mean
 * over all rounds taken. Time that a hypervisor takes away does not show. */
double bench_core_share(const bench_series *series);
