/* bench_lanes.h - memory in which kernels are timed: more than caches hold.
 *
 * In a step a kernel finds what another one wrote some time ago, so here it never works on the
 * same part of a lane twice in a row. Lanes of floats, and two of the step's type, in memory
 * as a run has it. */
#pragma once

#include "base/arena.h"
#include "math/backend.h"

enum { BENCH_X, BENCH_Y, BENCH_Z, BENCH_M, BENCH_V, BENCH_STREAM, BENCH_LANES };

typedef struct {
    const zero_backend *backend; /* borrowed */
    zero_math math;
    zero_type type;
    int64_t rows, T, C, H, V; /* of one call; rows = B*T, of logits `chunk` */
    int64_t chunk, words;     /* words of the embedding's table that fit a lane */
    int64_t length;           /* elements of a lane */
    zero_arena arena;         /* of the lanes */
    int64_t walked; /* how far the measures have come, over their lanes end to end */
    float *lane[BENCH_LANES];
    char *grad, *param; /* lanes of `type` */
    float *mean, *rstd, *sums, *more_sums, *lse, *losses, *work, *scratch;
    int32_t *tokens;
} bench_lanes;

/* `l` has its sizes, its backend and its type; all memory is taken here. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status bench_lanes_init(bench_lanes *l);
void bench_lanes_destroy(bench_lanes *l); /* accepts a zeroed one */

/* Ordinary numbers everywhere, no square negative: what a kernel leaves may slow the next. */
void bench_lanes_fill(bench_lanes *l);

/* The measures: as many bytes read and written in place, and read alone. They walk through the
 * lanes of floats but V, each call from where the last one ended: a stream over one lane finds
 * part of it in a large cache, and is up to 1.6 times as fast. */
void bench_lanes_stream(bench_lanes *l, double bytes);
void bench_lanes_read(bench_lanes *l, double bytes);
