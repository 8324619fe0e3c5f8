/* trace.h - what a rank did in the last steps: spans in rings that exist before step 1.
 *
 *     step 18    |F|F|B|R|B|..|U|      a slot: one span of 24 bytes for each instruction
 *     step 19    |F|F|B|R|B|..|U|
 *     step 20    |F|F|B|R|B|..|U|
 *     step 21    |F|F|B                the slot of the present step
 *
 * A ring of `keeps` + 1 slots, so that the last `keeps` whole steps are there while the
 * next one is made. The walk (run.c) has read the clock between two instructions anyway and
 * stores it here. Instructions that ran ahead within another one (run_offload.c) are
 * marked: they lie inside its span. Collectives in flight go to a ring of their own
 * (comm/spans.h), transfers of the scratch file as well (transfers.h).
 *
 * Only steps are recorded: the programs STEP and EPILOGUE between _step_begin() and
 * _step_end(). An evaluation, a sample or a checkpoint between two steps leaves a gap. */
#pragma once

#include "comm/spans.h"
#include "sharding/schedule.h"
#include "state/transfers.h"

typedef struct {
    double begin, end;
    int32_t at;       /* the instruction's index in its program */
    uint8_t program;  /* zero_program_kind */
    bool is_ahead;    /* it ran within another instruction */
    bool is_open;     /* it had not ended: the run failed in it */
    uint8_t reserved; /* 0 */
} zero_run_span;
_Static_assert(sizeof(zero_run_span) == 24, "a span is one store of three words");

/* An instruction as the labels of collectives and transfers name it. */
static inline int64_t zero_label(zero_program_kind program, int at)
{
    return (int64_t)program << 32 | (int64_t)at;
}
static inline int zero_label_at(int64_t label)
{
    return (int)(label & INT32_MAX);
}
static inline zero_program_kind zero_label_program(int64_t label)
{
    return (zero_program_kind)(label >> 32);
}

typedef struct {
    int64_t step;      /* from 1; 0: the slot is empty */
    double begin, end; /* as step_seconds in the metrics */
    bool is_whole;     /* it has ended */
    int32_t n;         /* spans */
} zero_traced_step;

typedef struct {
    int64_t keeps; /* whole steps that the ring keeps, >= 1 */
    int64_t last;  /* the last step to be recorded */
} zero_trace_window;

typedef struct zero_trace {
    zero_trace_window window;
    int room;                /* spans of a slot */
    zero_run_span *spans;    /* [keeps + 1][room], owned, as all below */
    zero_traced_step *steps; /* [keeps + 1] */
    zero_traced_step *now;   /* the slot of the present step; NULL between steps */
    zero_run_span *next;     /* of that slot: where its next span goes, up to `until` */
    zero_run_span *until;
    zero_comm_spans flights;
    zero_transfer_ring transfers;
    zero_comm *comm; /* borrowed, while it records */
} zero_trace;

/* Local. ZERO_ERR_NOMEM; release with _destroy(). */
zero_status zero_trace_init(zero_trace *t, const zero_schedule *s,
                            const zero_trace_window *window);
void zero_trace_destroy(zero_trace *t); /* accepts a zeroed one */

/* The memory that _init() takes on this rank, and the spans, flights and transfers of one
 * step. */
typedef struct {
    int64_t spans, flights, transfers;
    size_t bytes;
} zero_trace_size;
zero_trace_size zero_trace_measure(const zero_schedule *s, const zero_trace_window *window);

/* A step begins or has ended, at this time of the clock. */
void zero_trace_step_begin(zero_trace *t, int64_t step, double now);
void zero_trace_step_end(zero_trace *t, double now);

/* Nothing is recorded any more. A step that has not ended keeps the spans that it has. */
void zero_trace_stop(zero_trace *t);

/* After _stop(): whole steps that the trace has, oldest first, and then the present one if
 * it has not ended: list[keeps + 1]. Returns their number. */
int zero_trace_list(const zero_trace *t, const zero_traced_step **list);
/* The spans of such a step. */
const zero_run_span *zero_trace_spans(const zero_trace *t, const zero_traced_step *step);

/* For run.c and run_offload.c: an instruction has ended. */
static inline void zero_trace_note(zero_trace *t, zero_program_kind program, int at,
                                   bool is_ahead, double begin, double end)
{
    if (!t || t->next == t->until) return;
    *t->next++ = (zero_run_span){.begin = begin,
                                 .end = end,
                                 .at = at,
                                 .program = (uint8_t)program,
                                 .is_ahead = is_ahead};
}
/* The run has failed in an instruction. */
void zero_trace_note_failure(zero_trace *t, zero_program_kind program, int at,
                             double begin);
