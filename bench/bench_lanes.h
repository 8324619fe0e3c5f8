/* bench_lanes.h - memory in which kernels are timed: more than caches hold.
 *
 * In a step a kernel reads data that another one wrote some time ago, so here it never works on
 * the same part of a lane twice in a row. There are lanes of floats and two of the step's type, in
 * memory like a run's; with a device they are its own. */
#pragma once

#include "bench_block.h"

enum { BENCH_X, BENCH_Y, BENCH_Z, BENCH_M, BENCH_V, BENCH_STREAM, BENCH_LANES };

typedef struct {
    const zero_backend *backend; /* borrowed */
    zero_math math;
    bool is_open;
    zero_type type, rows_type; /* of parameters and of activations */
    int64_t rows, T, C, H, V;  /* of one call; rows = B*T */
    int64_t stride;            /* of logits */
    float dropout;             /* --dropout: masks of attention and of branches */
    int64_t words;             /* of the embedding's table that fit a lane */
    int64_t length;            /* elements of a lane */
    bench_block block;
    int64_t walked; /* position of the measures, over their lanes end to end */
    float *lane[BENCH_LANES];
    char *grad, *param; /* lanes of `type` */
    float *mean, *rstd, *sums, *more_sums, *lse, *losses, *work;
    double *square;
    int32_t *tokens;
} bench_lanes;

/* The caller sets sizes, backend, type and math.device; all memory is taken here. ZERO_ERR_NOMEM,
 * or the backend's failure. */
zero_status bench_lanes_init(bench_lanes *l);
void bench_lanes_destroy(bench_lanes *l); /* accepts a zeroed one */

/* Fills all lanes with ordinary numbers, squares not negative: the results of one kernel might
 * slow down the next. Where activations have 16 bits, either half of a float is such a number. */
zero_status bench_lanes_fill(bench_lanes *l);

/* The measures: bytes that are read and written in place, or only read; on a device bytes that its
 * library copies, half of them read. They walk through the lanes of floats except V, each call from
 * the end of the last one: a loop over one lane finds part of it in a large cache, and is up to 1.6
 * times as fast. */
void bench_lanes_stream(bench_lanes *l, double bytes);
void bench_lanes_read(bench_lanes *l, double bytes);
