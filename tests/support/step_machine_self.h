/* step_machine_self.h - shared by the files of the step machine.
 *
 *     step_machine.c            steps, and the order of events
 *     step_machine_copies.c     copies between devices and their mirrors
 *     step_machine_messages.c   the memory that steps may touch, and messages in flight
 *     step_machine_ranks.c      memory, and how ranks begin and end */
#pragma once

#include <inttypes.h>
#include <stdlib.h>

#include "lists/mirror.h"
#include "support/step_machine.h"
#include "support/tree_oracle.h"

#define MACHINE_POISON 0xff /* NaN, in all types */

typedef struct {
    bool is_used, is_send;
    int rank, peer, partner; /* partner: the other end's slot, or -1 */
    int64_t number;          /* among messages in this direction between the two */
    int64_t step, len;
    zero_type type;
    char *at, *payload; /* payload: the copy of an eager send, which has ended */
} request;

typedef struct {
    bool is_used, is_fetch;
    int rank;
    int64_t
        step; /* direct: what the device does is this step, and ends in the order of steps */
    const char *from;
    char *to;
    size_t bytes;
} copy_state;

typedef struct {
    zero_steps steps;
    bool has_begun, has_ended;
    int64_t next, phase;
    int in_flight, n_buffered; /* n_buffered: eager sends not yet received */
    char *in, *out;            /* on a device: its arrays */
    char *mirror_in,
        *mirror_out;        /* the `in` and `out` of steps; without a device the same */
    char *memory, *staging; /* memory: the mirrors, then staging */
    size_t memory_bytes, staging_bytes;
    int64_t *sent_to, *received_from; /* [size]: messages posted so far */
    int64_t n_sent, n_received;       /* posted, and arrived */
    zero_traffic counted, moved;
} rank_state;

typedef struct {
    machine_case c;
    int size;
    int64_t in_len, out_len; /* elements */
    rank_state *ranks;
    char **node_in, **node_out; /* [n_nodes] */
    unsigned char **writes;     /* [size]: how often an element of its `out` was written */
    request *requests;
    int n_requests;
    copy_state *copies; /* [size][MACHINE_COPIES] */
    int n_copies;       /* in flight */
    uint64_t random;
    bool failed;
} machine;

/* ---- step_machine_ranks.c ---- */

/* Prints the first failure on standard error. */
__attribute__((format(printf, 3, 4))) void machine_fail(machine *m, int rank,
                                                        const char *format, ...);
void *machine_take(size_t n, size_t bytes); /* zeroed, never NULL */
bool machine_share_node(const machine *m, int a, int b);

void machine_allocate(machine *m);
bool machine_build_rank(machine *m, int r);
void machine_release(machine *m);
void machine_begin_rank(machine *m, int r);
/* `in`; and before it what `out`, and staging on a device, hold first. */
void machine_fill(machine *m, int r);
void machine_end_rank(machine *m, int r);
/* Element i of rank r's `out` at the end. */
float machine_expected(const machine *m, int r, int64_t i);

/* ---- step_machine_copies.c ---- */

/* Fails if a copy is in flight from or to these bytes. */
void machine_touch_copies(machine *m, int r, const char *at, size_t bytes, bool writes);
void machine_begin_copy(machine *m, int r, const zero_collective_step *step);
/* Direct: gives the device a MARK, COPY or ADD. Its inputs are there when the MARK ends. */
void machine_begin_near(machine *m, int r, const zero_collective_step *step);
/* Where a term of the ADD lies. */
zero_spot machine_term_spot(int r, const zero_collective_step *step, const zero_term *term);
bool machine_end_copy(machine *m, uint64_t random); /* one, if any is in flight */
/* The fetches, or stores, in flight that the first `until` steps of rank r began. */
int machine_count_copies(const machine *m, int r, bool fetches, int64_t until);

/* ---- step_machine_messages.c ---- */

/* Fails if a message or a copy is in flight from or to these bytes. */
void machine_touch(machine *m, int r, const char *at, size_t bytes, bool writes);
/* Counts writes to `out`; fails outside the window of `count`. */
void machine_note_write(machine *m, int r, zero_spot spot, int64_t len);
/* Counts reads of a neighbour's memory; fails if its `out` does not hold the data yet. */
void machine_note_read(machine *m, int r, zero_spot spot, int64_t len, zero_type type);
/* The address of a spot; fails outside all buffers, and where this rank must not look. */
char *machine_locate(machine *m, int r, zero_spot spot, int64_t len, zero_type type);

void machine_post(machine *m, int r, const zero_collective_step *step);
bool machine_deliver(machine *m, uint64_t random); /* one message, if any can arrive */
bool machine_have_ended(const machine *m, int r, bool sends, int64_t until);

/* True for elements between the pieces of an all-reduce. */
bool machine_is_gap(const machine *m, int64_t i);
