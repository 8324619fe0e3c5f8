/* parcel.h - a rank's part of a run's trace as bytes, which travel to rank 0.
 *
 *     head | rows [n_rows] | steps | spans | flights | transfers
 *
 * A row is an instruction of the programs that are traced, named by the rank that ran it:
 * ranks may have different programs. All times are rank 0's clock. */
#pragma once

#include "comm/clock_offset.h"
#include "engine/engine.h"
#include "report/text.h"

/* One rank's part of a trace. All borrowed. */
typedef struct {
    const zero_schedule *schedule;
    const zero_trace *trace;      /* stopped; NULL: this rank has none */
    zero_comm *comm;              /* the world */
    zero_clock_reading clocks[2]; /* at the start and at the end */
} zero_run_trace;

typedef struct {
    char name[ZERO_PLAN_TEXT];    /* "BACKWARD block 3, microbatch 0" */
    char operand[ZERO_PLAN_TEXT]; /* "block 3" */
    int64_t op, group, bytes;
    size_t live_bytes, live[ZERO_CLASSES];
} zero_parcel_row;

typedef struct {
    double begin, end;
    int64_t label, bytes, is_write;
} zero_parcel_transfer;

typedef struct {
    int64_t n_rows[2]; /* of STEP, and of EPILOGUE after them */
    int64_t n_steps, n_spans, n_flights, n_transfers;
    int64_t n_open; /* of the flights, the last: had not ended */
    zero_member members[ZERO_FAMILY_PARTS];
} zero_parcel_head;

/* The parts of a parcel, in its bytes. */
typedef struct {
    zero_parcel_head head;
    zero_parcel_row *rows;
    zero_traced_step *steps;
    zero_run_span *spans; /* of all steps, one after the other */
    zero_comm_span *flights;
    zero_parcel_transfer *transfers;
} zero_parcel;

/* Makes the parcel of a rank that has a trace: *data, the caller's (free). Local.
 * ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_parcel_pack(const zero_run_trace *mine, void **data,
                                            size_t *bytes);
/* Finds the parts. They lie in `data`, which is not changed. */
void zero_parcel_open(void *data, zero_parcel *p);
