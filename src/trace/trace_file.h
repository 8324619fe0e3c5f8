/* trace_file.h - a trace as Chrome's JSON array, which Perfetto and chrome://tracing open:
 * one format for runs and simulations.
 *
 *     process  a node                         "pid": node
 *       thread   a rank: instructions         "ph": "X", spans that do not overlap
 *       rows     its collectives in flight    "ph": "X", threads below it: as many as there
 *                                             are at once
 *       rows     its queues                   "ph": "X", threads below it
 *       counter  its bytes by class           "ph": "C", a staircase
 *
 * One event per line, in any order; a file that was cut off is read up to its last whole
 * line. Times are seconds of one clock, from the start of the trace, and are written in
 * whole nanoseconds, so that a span ends exactly where the next one begins. Names may come
 * from outside: they are made legible (base/legible.h) and cut after ZERO_TRACE_NAME
 * bytes. */
#pragma once

#include "io/whole_file.h"
#include "sharding/instruction_text.h"

#define ZERO_TRACE_VERSION 1
#define ZERO_TRACE_NAME    160                 /* bytes of a name, at most */
#define ZERO_TRACE_MOST    ((int64_t)64 << 20) /* bytes of a file that is written */

/* Threads, which viewers draw in the order of their numbers: rank r is ZERO_TRACE_THREADS *
 * r, and its row k that + k. Rows from 1 on are for flights, those from ZERO_TRACE_QUEUES
 * on are queues. */
#define ZERO_TRACE_THREADS 1000
#define ZERO_TRACE_QUEUES  900
#define ZERO_TRACE_ROWS    16 /* queues */

typedef struct zero_trace_file zero_trace_file;

/* All borrowed, until _end(). */
typedef struct {
    const zero_layout *layout; /* the nodes of the world's ranks */
    const char *const *hosts;  /* [layout->n_nodes] names; NULL: "simulated" */
    const char *command, *version, *commit;
    int64_t run; /* as `id` in the run's metrics (train/metrics.h); simulations: 0 */
    int64_t first_step, last_step; /* the steps that it has, from 1 */
    double clock_uncertainty;      /* seconds, of the worst node; 0: one clock */
    const char *note;              /* why it is shorter than asked for; NULL */
    /* [ZERO_CLASSES] the most bytes of each class: those with 0 have no row in the
     * counters. NULL: all have one. */
    const size_t *class_peak;
} zero_trace_head;

typedef struct {
    int rank;
    int64_t step;         /* from 1 */
    const char *name;     /* zero_text_instruction() */
    const char *category; /* zero_trace_category() */
    int at;    /* number of the instruction in its program, from 1, as --show-schedule */
    int group; /* or -1 */
    int64_t bytes; /* as --show-schedule; -1: none */
    size_t live_bytes;
    double begin, end;
    /* simulations: seconds of it for others; drawn as a span within; else 0 */
    double waited;
} zero_trace_span;

typedef struct {
    int rank;
    /* The same on all ranks of the group that take part in it; on a rank no two flights
     * have equal ones. */
    int64_t step, sequence; /* zero_trace_sequence() */
    int first;              /* the lowest rank of that group */
    const char *name;       /* zero_trace_collective() */
    int64_t sent;           /* bytes */
    double begin, end;
} zero_trace_flight;

/* Events that are to come, of all ranks. */
typedef struct {
    /* waits: spans that waited; samples: of memory */
    int64_t spans, waits, flights, samples;
} zero_trace_counts;

/* ZERO_ERR_INVALID if a file with so many has more than ZERO_TRACE_MOST bytes, with both
 * numbers; `remedy` says what to do: "give --trace-ranks with fewer of the 1024 ranks". */
zero_status zero_trace_file_check(const zero_trace_counts *counts, const char *remedy);

/* Begins the file under a temporary name. ZERO_ERR_NOMEM; ZERO_ERR_INVALID naming the path;
 * ZERO_ERR_ENV if *lock is ZERO_LOCK_BUSY. */
zero_status zero_trace_file_place(zero_whole_file *place, const char *path,
                                  zero_whole_file_wish wish, zero_lock *lock);
/* Begins the trace in it. After ZERO_OK it is the trace's; else ZERO_ERR_NOMEM. Without a
 * place (NULL) the events are text, for the file of another rank. */
zero_status zero_trace_file_begin(zero_trace_file **file, zero_whole_file *place,
                                  const zero_trace_head *head);
/* The events so far; borrowed. Returns the first failure, as _append() does. */
zero_status zero_trace_file_text(zero_trace_file *f, const char **text, size_t *bytes);
/* Puts the text of another rank into the file. */
zero_status zero_trace_file_append(zero_trace_file *f, int rank, const char *text,
                                   size_t bytes);
/* Names a rank; once, before its events. */
void zero_trace_file_rank(zero_trace_file *f, int rank);
void zero_trace_file_span(zero_trace_file *f, const zero_trace_span *span);
/* Fewest rows are needed if a rank's flights come in the order of their ends. */
void zero_trace_file_flight(zero_trace_file *f, const zero_trace_flight *flight);
/* From `at` on the rank has these bytes; nothing if it has them already. */
void zero_trace_file_memory(zero_trace_file *f, int rank, double at,
                            const size_t of_class[ZERO_CLASSES]);
/* A row of its own below a rank: a device's queue, the transfers of a file. At most
 * ZERO_TRACE_ROWS different rows; spans of a row do not overlap. */
void zero_trace_file_queue(zero_trace_file *f, int rank, const char *row,
                           const zero_trace_span *span);
/* With ZERO_OK finishes it; else, or if a write failed, removes it. Frees `f`. Returns the
 * first failure: times that are not finite are one. */
zero_status zero_trace_file_end(zero_trace_file *f, zero_status st);
/* Keeps a failure of the caller's, which _end() returns. */
void zero_trace_file_fail(zero_trace_file *f, zero_status st);

/* ---- how a trace names what ranks do, in runs and simulations alike ---- */

/* The bytes of each class while each instruction of a program runs; to be freed.
 * ZERO_ERR_NOMEM. */
zero_status zero_trace_live(const zero_schedule *s, zero_program_kind kind,
                            size_t (**live)[ZERO_CLASSES]);

/* "compute", "communication", "disk", "other" */
const char *zero_trace_category(zero_op op);

/* "reduce-scatter block 3": a collective of REDUCE, GATHER and their like. */
void zero_trace_collective(const zero_model *model, const zero_instruction *i,
                           zero_collective_kind kind, char text[ZERO_TRACE_NAME]);

/* One number of `call`, counted from 0 in a group of this part of the family, that no other
 * part's collectives have. */
static inline int64_t zero_trace_sequence(zero_family_part part, int64_t call)
{
    return call * ZERO_FAMILY_PARTS + part;
}
