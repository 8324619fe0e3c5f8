/* bench_modes.h - the modes of bench_collectives. */
#pragma once

#include "bench_report.h"

typedef struct {
    const bench_options *options; /* borrowed, like the rest */
    bench_clock clock;
    bench_report *report;
    bool needs_window;
    int n_variants;
    bench_variant variants[BENCH_MAX_VARIANTS];
} bench_run;

/* Runs a mode for each type and size, on a field of n_buckets. Collective. */
typedef zero_status bench_field_mode(bench_field *field, const bench_run *run);
zero_status bench_each_field(const bench_run *run, int n_buckets, bench_field_mode *mode);

/* Each variant with a compute loop of about the same length, polled at several gaps. */
zero_status bench_overlap_run(const bench_run *run);

/* A backward pass of 8 buckets: the reduce-scatter of each overlaps the next one's compute. */
zero_status bench_backward_run(const bench_run *run);
