/* run_trace.h - the trace of a run: each rank writes its events, and rank 0 the file.
 *
 *     rank r    its clock is that of rank 0: comm/clock_offset.h
 *               its spans, flights and transfers as text (trace_file.h)
 *     rank 0    takes texts in the order of ranks (comm/deliver.h)
 *
 * Times begin with the first step that the trace has. What a step spends before, after and
 * between its programs is one span named ZERO_TRACE_OUTSIDE, so that a rank's spans add up
 * to the step_seconds of its metrics. */
#pragma once

#include "comm/clock_offset.h"
#include "engine/engine.h"
#include "trace/trace_file.h"

#define ZERO_TRACE_OUTSIDE "outside the program"

/* One rank's part of a trace. All borrowed. */
typedef struct {
    const zero_schedule *schedule;
    const zero_trace *trace;      /* stopped; NULL: this rank has none */
    zero_comm *comm;              /* the world */
    zero_clock_reading clocks[2]; /* at the start and at the end */
    bool is_alone; /* the others cannot be asked any more: a file of this rank alone */
} zero_run_trace;

typedef struct {
    zero_trace_head head; /* the steps are filled in */
    zero_whole_file
        *place; /* begun, on the rank that writes; taken over if there are steps */
} zero_run_trace_file;

/* The steps that were written. */
typedef struct {
    int64_t first_step, last_step; /* 0: no rank has a step, and there is no file */
    int64_t left_out;              /* transfers: more at once than a file has rows for */
} zero_run_trace_result;

/* Events of this rank in a file with that many steps; 0 without a trace. ZERO_ERR_NOMEM. */
zero_status zero_run_trace_count(const zero_schedule *s, const zero_trace_window *window,
                                 zero_trace_counts *counts);

/* Writes the file on rank 0: collective over the world, with one verdict, or local if this
 * rank is alone. */
zero_status zero_run_trace_write(const zero_run_trace *mine,
                                 const zero_run_trace_file *file,
                                 zero_run_trace_result *result);
