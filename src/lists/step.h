/* step.h - a collective as a small program: the steps of one rank, run in order.
 *
 * Messages are posted when their turn comes and end by themselves; a step that needs the
 * data of earlier messages names them. Ranks of a node follow each other through counters
 * in shared memory (signal.h), one per rank, which pass through phases 1, 2, ... of the
 * collective. Algorithms write such lists (algorithm.h), steps_run.c runs them, and tests
 * run those of all ranks without MPI.
 *
 * If the data is a device's, `in` and `out` of all steps are the mirrors (spec.h). Copies
 * between them and the device are steps as well, which end by themselves like messages.
 * Algorithms do not write them: device_steps.c adds them to the finished list.
 *
 * If neighbours or MPI reach the device's memory (direct), its own arrays are those of all
 * steps. Sums and copies are queued on the device and end by themselves, as stores do. A
 * signal waits for all of them before it, and for the mark that begins the list: no
 * neighbour reads what is still being computed. Between nodes hier fetches to staging, and
 * stores from there, by steps that it writes itself; a sum or a copy to staging is fetched,
 * too. With p2p staging is the device's, and messages wait for the mark, a receive into
 * staging also for the sums of what was there before. */
#pragma once

#include "base/number.h"
#include "lists/spec.h"

typedef enum {
    ZERO_STEP_SEND,
    ZERO_STEP_RECEIVE,
    ZERO_STEP_ADD,    /* the terms of a sum, to `out` or to staging */
    ZERO_STEP_COPY,   /* from this rank's or a neighbour's memory to this rank's */
    ZERO_STEP_SIGNAL, /* this rank's counter reaches a phase */
    ZERO_STEP_AWAIT,  /* wait until a neighbour's counter has reached a phase */
    ZERO_STEP_MPI,    /* MPI's own collective on one chunk */
    ZERO_STEP_FETCH, /* a part of `in`, from the device to the mirror; direct: to staging */
    ZERO_STEP_STORE, /* a part of the mirror of `out`, to the device; direct: of staging */
    ZERO_STEP_MARK, /* direct: ends when the device has done all that it was given so far */
} zero_step_kind;

typedef enum { ZERO_IN, ZERO_OUT, ZERO_STAGING } zero_place;

#define ZERO_PHASE_BITS     24 /* of a counter: 16 million phases in one collective */
#define ZERO_ALL_NEIGHBOURS (-1)

/* A place that a step reads or writes: an element of a rank's `in` or `out`, or a byte of
 * this rank's staging. */
typedef struct {
    zero_place place;
    int rank; /* whose `in` or `out`: this rank's, or through the window a neighbour's */
    int64_t at;
} zero_spot;

typedef struct {
    zero_step_kind kind;
    zero_type type;     /* of a message or a copy; add: of the result */
    int peer;           /* send, receive, await: the other rank, or ZERO_ALL_NEIGHBOURS */
    int sum;            /* add: which list of terms */
    int64_t len;        /* elements; await: those that neighbours have read here by then */
    int64_t phase;      /* signal, await */
    zero_spot from, to; /* add: `from` is where the terms' pieces begin */
    int64_t staged;     /* add: byte of staging where the received terms begin */

    /* fetch: `from` is an element of the device's array; store: `to` is. The other spot is
     * in this rank's mirror. signal, on a device: neighbours may now read `len` elements of
     * each piece of the mirror of `in`, from element from.at of the piece on. */

    /* The step waits until the receives (sends, fetches) among the first `received`
     * (`sent`, `fetched`) steps of the list have ended; direct: also what the device does
     * for the first `stored` steps. */
    int64_t received, sent, fetched, stored;
} zero_collective_step;

/* Bytes of a message, unless staging is short. */
#define ZERO_STEP_CHUNK ((size_t)512 << 10)
/* Bytes of a direct sum or copy: a device takes longer for them than the host to queue the
 * next. */
#define ZERO_DIRECT_CHUNK ((size_t)16 << 20)

/* One term of a sum: the contribution of the ranks of a subtree. */
typedef struct {
    int first, count; /* ranks */
    zero_type type;
    int64_t staged; /* bytes after the step's `staged`; -1: in rank `first`'s `in` */
} zero_term;

typedef struct {
    int64_t n, capacity;
    zero_term *terms; /* [n], in the order of ranks; NULL while steps are counted */
    int64_t n_read;   /* the terms that lie in neighbours' memory */
    int64_t n_staged; /* the terms that lie in staging */
} zero_sum;

/* The steps of rank `rank`, while they are written and afterwards. A plan only counts what
 * they move: then algorithms write them as ever, and nothing is kept but the last step. */
typedef struct {
    zero_collective_spec spec;
    const zero_layout *layout; /* borrowed */
    int rank;
    int64_t chunk; /* elements per step, at most */

    zero_collective_step *list; /* [n] */
    int64_t n, capacity;
    zero_sum *sums; /* [n_sums] */
    int64_t n_sums, sum_capacity;
    bool failed; /* no memory: the list is incomplete */

    zero_traffic *counted; /* borrowed: of all steps but the last; NULL: steps are kept */
    zero_collective_step last; /* counting: this one may still change */
} zero_steps;

void zero_steps_destroy(zero_steps *steps); /* accepts a zeroed struct */

/* Direct: whether the device runs the ADD or COPY, since it reads arrays of devices. Sums
 * of what lies in staging are the host's. */
bool zero_steps_is_near(const zero_steps *steps, const zero_collective_step *step);

/* Adds what the step moves: both the measured and the planned ledger come from here. */
void zero_steps_count(const zero_steps *steps, const zero_collective_step *step,
                      zero_traffic *traffic);

/* How many steps of the list have to run until no send is left: 0 without sends. */
int64_t zero_steps_until_sent(const zero_steps *steps);

/* A rank whose messages are bounded (spec.message) sends that many more than it has
 * received, at most, where it receives as many as it sends. */
#define ZERO_PACE 8

/* Makes each send wait for the receives that stand before the send ZERO_PACE sends earlier.
 * The lists of all ranks have one order of messages, so ranks cannot wait in a circle if
 * they could not before: each waits for earlier messages only. */
void zero_steps_pace(zero_steps *steps);

/* ---- for algorithms ---- */

/* Appends a step; a failure is kept in steps->failed. */
void zero_steps_add(zero_steps *steps, zero_collective_step step);
/* The step that was appended last, to be changed. After a failure a step that nobody
 * reads. */
zero_collective_step *zero_steps_last(zero_steps *steps);
/* A new sum without terms; returns its number. */
int zero_steps_add_sum(zero_steps *steps);
void zero_steps_add_term(zero_steps *steps, int sum, zero_term term);

#define ZERO_STEP_ALIGN 64 /* elements: chunks begin at cache lines if the data does */

/* A chunk of up to `most` elements, no longer than `count` in whole lines. */
static inline int64_t zero_step_chunk(int64_t count, int64_t most)
{
    int64_t whole = zero_round_up(count, ZERO_STEP_ALIGN);
    return whole > 0 ? zero_min(most, whole) : most;
}

/* The whole lines in an n-th of so many elements; one at least. */
static inline int64_t zero_step_share(int64_t elements, int64_t n)
{
    return zero_max(elements / n / ZERO_STEP_ALIGN, 1) * ZERO_STEP_ALIGN;
}

/* `most` elements of `bytes` each, or as many whole lines as a message may have. */
int64_t zero_step_message(const zero_collective_spec *spec, int64_t most, size_t bytes);

int64_t zero_steps_chunks(const zero_steps *steps); /* ceil(count / chunk) */
/* In how many portions `in` becomes ready: on a device chunk by chunk, else all at once. At
 * least
 * 1. */
int64_t zero_steps_portions(const zero_steps *steps);
int64_t zero_steps_chunk_len(const zero_steps *steps, int64_t k);
/* The first element of chunk k of piece `piece`, in an array of pieces. */
int64_t zero_steps_chunk_at(const zero_steps *steps, int piece, int64_t k);

/* The piece of `in` that an owner sums; in a reduce there is one, the root's. */
static inline int zero_steps_piece(const zero_steps *steps, int owner)
{
    return steps->spec.kind == ZERO_REDUCE ? 0 : owner;
}

/* The piece of `out` that an owner's sum becomes: in an all-reduce there are all. */
static inline int zero_steps_result(const zero_steps *steps, int owner)
{
    return steps->spec.kind == ZERO_ALL_REDUCE ? owner : 0;
}

/* Chunk k of piece `piece` in the `in` (`out`) of a rank. */
static inline zero_spot zero_steps_in(const zero_steps *steps, int rank, int piece,
                                      int64_t k)
{
    return (zero_spot){ZERO_IN, rank, zero_steps_chunk_at(steps, piece, k)};
}

static inline zero_spot zero_steps_out(const zero_steps *steps, int rank, int piece,
                                       int64_t k)
{
    return (zero_spot){ZERO_OUT, rank, zero_steps_chunk_at(steps, piece, k)};
}

static inline zero_spot zero_steps_staged(const zero_steps *steps, int64_t at)
{
    return (zero_spot){ZERO_STAGING, steps->rank, at};
}

/* Append a step on chunk k, from and to the places where it begins; the first returns it,
 * to be changed. */
zero_collective_step *zero_steps_put(zero_steps *steps, zero_step_kind kind, int64_t k,
                                     zero_spot from, zero_spot to);
void zero_steps_send(zero_steps *steps, int64_t k, int peer, zero_spot from);
void zero_steps_receive(zero_steps *steps, int64_t k, int peer, zero_spot to);
static inline void zero_steps_copy(zero_steps *steps, int64_t k, zero_spot from,
                                   zero_spot to)
{
    zero_steps_put(steps, ZERO_STEP_COPY, k, from, to);
}
void zero_steps_signal(zero_steps *steps, int64_t phase);
/* Signals that chunks `first` to `first + n - 1` of each piece of `in` are ready. */
void zero_steps_signal_in(zero_steps *steps, int64_t phase, int64_t first, int64_t n);
/* n_read: elements that neighbours have read here by then. */
void zero_steps_await(zero_steps *steps, int peer, int64_t phase, int64_t n_read);
