/* collective.h - reduce-scatter and all-gather that go on while the caller computes.
 *
 * The data is one flat array of `size` pieces, `stride` elements apart, of which the first
 * `count` each take part (a bucket is such a window over a group's flat space):
 *
 *     0           stride        2*stride             size*stride
 *     |xxxxx      |xxxxx        |xxxxx      ...      |         x = takes part: count
 * elements piece 0     piece 1       piece 2              piece r belongs to rank r
 *
 * A collective is a small program: a list of steps for this rank, built once by init and
 * run in order by progress as far as messages allow. It can be begun as often as wanted.
 *
 *     init -> begin -> progress ... progress -> wait -> begin -> ... -> destroy
 *
 * Between begin and the end (progress says done, or wait returns) the struct stays where it
 * is, and its buffers belong to the collective. Several may be in flight on a group, if all
 * ranks begin them in the same order. Nothing allocates after init; nothing moves unless
 * somebody calls progress, poll or wait. After a failed MPI call only an abort is left.
 *
 * The sum over ranks follows the tree of base/tree.h over the ranks and so depends neither
 * on the order of arrival nor on count, stride or chunks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <mpi.h>

#include "comm/comm.h"
#include "zero/status.h"

#define ZERO_COLLECTIVE_REQUESTS 16                 /* in flight per collective, at most */
#define ZERO_COLLECTIVE_CHUNK    ((int64_t)1 << 17) /* elements per message: 512 KiB */
#define ZERO_COLLECTIVE_STAGING  ((int64_t)1 << 20) /* elements that staging is held to */

typedef enum { ZERO_REDUCE_SCATTER, ZERO_ALL_GATHER } zero_collective_kind;

typedef struct {
    zero_collective_kind kind;
    int64_t count, stride; /* elements; 0 <= count <= stride */
    int64_t max_chunk; /* elements per message, at most 2^28; 0: ZERO_COLLECTIVE_CHUNK */
} zero_collective_spec;

typedef enum {
    ZERO_STEP_SEND,
    ZERO_STEP_RECEIVE,
    ZERO_STEP_ADD,
    ZERO_STEP_COPY
} zero_step_kind;

/* One step of one rank. Offsets count elements. */
typedef struct {
    zero_step_kind kind;
    int peer;     /* send, receive: the other rank */
    int64_t len;  /* elements */
    int64_t from; /* send, copy, and the own term of an add: offset in `in` */
    int64_t
        to; /* add, copy: offset in `out`; receive: in staging, or `out` if all-gather */
    int64_t staged; /* add: offset of the received terms in staging */
    int64_t after;  /* add: the last receive that it waits for, an index of this list */
} zero_step;

typedef struct zero_collective {
    zero_comm *comm; /* borrowed */
    zero_collective_spec spec;
    int64_t chunk;       /* elements per step, at most */
    int64_t n_steps;     /* may be 0 */
    zero_step *steps;    /* [n_steps], owned */
    const float **terms; /* [size], owned: what an add sums, by rank */

    /* while it runs */
    bool is_active;
    const float *in;
    float *out, *staging;
    int tag, in_flight;
    int64_t next_step;
    MPI_Request requests[ZERO_COLLECTIVE_REQUESTS];
    int64_t step_of[ZERO_COLLECTIVE_REQUESTS]; /* which step posted the request */
    struct zero_collective *next_active;       /* begun after this one on the same group */
} zero_collective;

/* Elements of staging that begin needs on a group of `size` ranks: never less for a larger
 * count. At most ZERO_COLLECTIVE_STAGING up to 8192 ranks (beyond, chunks would become
 * smaller than 64 elements). 0 for an all-gather. */
int64_t zero_collective_staging(const zero_collective_spec *spec, int size);

/* Messages that a rank of a group of `size` sends, and as many that it receives. */
int64_t zero_collective_messages(const zero_collective_spec *spec, int size);

/* Builds the program. Local, without messages: ZERO_ERR_INVALID for sizes outside the
 * bounds above or arrays beyond 2^60 elements; ZERO_ERR_NOMEM may befall one rank alone. */
ZERO_NODISCARD zero_status zero_collective_init(zero_collective *op, zero_comm *comm,
                                                const zero_collective_spec *spec);

/* Frees the program; accepts a zeroed struct. */
void zero_collective_destroy(zero_collective *op);

/* Collective over the group, never blocks. Buffers are the caller's.
 *   reduce-scatter: in[size][stride], out[count] = the sum over ranks of piece `rank`.
 * `out` may be this rank's own piece of `in`. staging[zero_collective_staging()].
 *   all-gather: in[count] = this rank's piece, out[size][stride]; out[r] = rank r's `in`.
 * `in` may be this rank's own piece of `out`. `staging` is not used. Elements of `out`
 * outside the window of `count` are not touched. */
ZERO_NODISCARD zero_status zero_collective_begin(zero_collective *op, const float *in,
                                                 float *out, float *staging);

/* Runs what can be run now, at most one chunk of arithmetic; never blocks. *done tells
 * whether the collective has ended, also when asked again. */
ZERO_NODISCARD zero_status zero_collective_progress(zero_collective *op, bool *done);

/* Progress for every collective in flight on the group: what a compute loop calls. */
ZERO_NODISCARD zero_status zero_collective_poll(zero_comm *comm);

/* Polls the group until `op` has ended, which helps all others in flight as well: ranks may
 * wait for theirs in different orders. Yields the processor, since ranks may share one. */
ZERO_NODISCARD zero_status zero_collective_wait(zero_collective *op);

/* The program, one line per step. */
void zero_collective_print(const zero_collective *op, FILE *file);

/* data[size][stride] becomes on all ranks the sum over ranks, within the window of `count`:
 * reduce-scatter, then all-gather. Blocks, allocates, and ends with one verdict on all
 * ranks; for use outside of steps. staging as for a reduce-scatter of this count and
 * stride. */
ZERO_NODISCARD zero_status zero_all_reduce(zero_comm *comm, int64_t count, int64_t stride,
                                           float *data, float *staging);
