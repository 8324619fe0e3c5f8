/* traced.h - a trace that has been read: what trace_read.h gives. Times are nanoseconds
 * from the start of the trace. */
#pragma once

#include <jansson.h>

#include "sharding/schedule.h"

#define ZERO_TRACED_TEXT  ((size_t)256 << 20) /* bytes of a file, at most */
#define ZERO_TRACED_RANKS 1000000             /* of the world, at most */

typedef enum {
    ZERO_TRACED_COMPUTE,
    ZERO_TRACED_COMMUNICATION,
    ZERO_TRACED_DISK,
    ZERO_TRACED_OTHER,
    ZERO_TRACED_KINDS
} zero_traced_kind;

/* An instruction on a rank. */
typedef struct {
    int64_t begin, end;
    int64_t waited;   /* simulations: of this, for others, from `begin` on; else 0 */
    const char *name; /* "BACKWARD block 3, microbatch 0"; owned by the trace */
    zero_traced_kind kind;
    int64_t step;        /* from 1 */
    int at;              /* number of the instruction in its program, from 1 */
    int group;           /* or -1 */
    int64_t bytes, live; /* bytes: -1: none */
    int64_t line;        /* of the file */
} zero_traced_span;

/* A collective in flight on a rank. Flights with equal step, sequence and first on several
 * ranks are one collective. */
typedef struct {
    int64_t begin, end;
    int row;                /* below its rank, from 1: flights of a row do not overlap */
    const char *name;       /* "reduce-scatter block 3"; owned by the trace */
    int64_t step, sequence; /* step: in which it was begun; 0: before the first */
    int first;              /* the lowest rank that takes part */
    int64_t sent, line;
} zero_traced_flight;

/* From `at` until the next one the rank has these bytes. */
typedef struct {
    int64_t at;
    int64_t of_class[ZERO_CLASSES];
    int64_t line;
} zero_traced_sample;

/* A row below a rank: a device's queue. */
typedef struct {
    int number;              /* from 1 */
    const char *name;        /* owned by the trace */
    zero_traced_span *spans; /* [n] by begin; they do not overlap */
    int64_t n, room;
} zero_traced_row;

typedef struct {
    int rank, node;
    zero_traced_span *spans; /* [n_spans] by begin; they do not overlap */
    int64_t n_spans, span_room;
    zero_traced_flight *flights; /* [n_flights] by begin */
    int64_t n_flights, flight_room;
    zero_traced_sample *samples; /* [n_samples] by time */
    int64_t n_samples, sample_room;
    zero_traced_row *rows; /* [n_rows] */
    int64_t n_rows, row_room;
} zero_traced_rank;

typedef struct {
    const char *path; /* borrowed */
    bool is_cut;      /* the end of the file is missing */
    bool is_simulated;
    const char *command, *version, *commit, *note; /* owned; note: NULL: none */
    int64_t run;      /* as the metrics' `id`; 0: a simulation, or an older file */
    int world, nodes; /* of the job, ranks and nodes */
    int64_t first_step, last_step; /* that the file has, from 1 */
    int64_t clock_uncertainty;     /* nanoseconds */
    zero_traced_rank *ranks;       /* [n_ranks] those that it has, ascending */
    int64_t n_ranks, rank_room;
    /* [nodes] "node 0, simulated"; NULL: no rank of the node is there */
    const char **hosts;
    int64_t end;   /* of the last span, or flight */
    json_t *texts; /* its keys are all names; owned */
} zero_traced;
