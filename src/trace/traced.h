/* traced.h - a trace that has been read: what trace_read.h gives. Times are nanoseconds
 * from the start of the trace. */
#pragma once

#include "io/json_tree.h"
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

/* Something on a rank, or on a row below it: an instruction, a collective in flight, what a
 * queue does. */
typedef struct {
    int64_t begin, end;
    int64_t waited;   /* simulations: of this, for others, from `begin` on; else 0 */
    const char *name; /* "BACKWARD block 3, microbatch 0"; owned by the trace */
    int64_t step;     /* from 1; of a flight in which it was begun, 0: before the first */
    int64_t line;     /* of the file */
    int row;          /* 0: of the rank; those of a row do not overlap */

    zero_traced_kind kind; /* of spans, as the next three */
    int at;                /* number of the instruction in its program, from 1 */
    int group;             /* or -1 */
    int64_t bytes, live;   /* bytes: -1: none; of a flight those that were sent */

    /* Flights with equal step, sequence and first on several ranks are one collective. */
    int64_t sequence;
    int first; /* the lowest rank that takes part */
} zero_traced_span;

/* From `at` until the next one the rank has these bytes. */
typedef struct {
    int64_t at;
    int64_t of_class[ZERO_CLASSES];
    int64_t line;
} zero_traced_sample;

/* A queue below a rank. */
typedef struct {
    int number;       /* from ZERO_TRACE_QUEUES on */
    const char *name; /* owned by the trace */
} zero_traced_row;

typedef struct {
    int rank, node;
    /* Lists by begin, of which `queues` is by row first; all are parts of one. */
    zero_traced_span *spans, *flights, *queues;
    int64_t n_spans, n_flights, n_queues, room;
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
