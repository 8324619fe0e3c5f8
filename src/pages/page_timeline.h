/* page_timeline.h - the timeline while it is drawn: what is shared by its window and its rows. */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

#include "pages/page_kind.h"
#include "pages/svg_axis.h"
#include "trace/trace_read.h"

#define ZERO_TIMELINE_WIDTH 1040.0
#define ZERO_TIMELINE_LEFT  58.0
#define ZERO_TIMELINE_RIGHT 1030.0
#define ZERO_TIMELINE_TOP   26.0
#define ZERO_TIMELINE_LANES 3 /* rows of collectives in flight */

typedef struct {
    const zero_traced *trace;
    int64_t n; /* ranks that are drawn */
    int64_t first_step, last_step;
    int64_t begin, end;      /* nanoseconds */
    double row, lane, pitch; /* heights: of a row, of a lane, from row to row */
    double column;           /* units of the picture that have one colour */
    double least;            /* width of a box with a title */
    zero_axis x;             /* milliseconds */
    FILE *out;
    double (*spent)[ZERO_KINDS]; /* [n] nanoseconds; owned */
} zero_timeline;

static inline double zero_timeline_at(const zero_timeline *t, int64_t time)
{
    return zero_axis_at(&t->x, (double)(time - t->begin) * 1e-6);
}

static inline bool zero_timeline_has(const zero_timeline *t, int64_t step)
{
    return step >= t->first_step && step <= t->last_step;
}

/* The row of rank r of those that are drawn. */
void zero_timeline_rank(const zero_timeline *t, int64_t r);
