/* bench_modes.h - what the modes of bench_collectives have in common. */
#pragma once

#include "bench_report.h"

typedef struct {
    const bench_options *options; /* borrowed, like the rest */
    bench_clock clock;
    bench_report *report;
    bool needs_window;
    int n_ways;
    bench_way ways[BENCH_MAX_WAYS];
} bench_run;

/* Each way beside a compute loop of about its own time, polled at several gaps. */
ZERO_NODISCARD zero_status bench_overlap_run(const bench_run *run);

/* A backward pass of 8 buckets, the reduce-scatter of each beside the next one's compute. */
ZERO_NODISCARD zero_status bench_backward_run(const bench_run *run);
