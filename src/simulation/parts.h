/* parts.h - collectives in flight: the structs, for the files of exchange.h.
 *
 * A call is one collective of a group; a part is what one member does in it, from its begin
 * to its end. A call is there from the first begin until the last member is over.
 *
 *     parts.c      takes and releases parts and calls
 *     matching.c   messages between parts
 *     looks.c      steps of a part: what they wait for, and what they do
 *     exchange.c   groups, begin, looks, events */
#pragma once

#include "simulation/exchange.h"
#include "simulation/network.h"
#include "simulation/queues.h"
#include "simulation/step_lists.h"

/* As ZERO_COLLECTIVE_REQUESTS of comm/group.h, which needs MPI. */
#define ZERO_PART_REQUESTS 32
#define ZERO_NO_PART       (-1)

typedef struct {
    int32_t group, call, member, rank; /* rank: of the world */
    int32_t set;                       /* of lists */
    int32_t next_step;
    int32_t next_of_rank; /* a part that the rank began later, or a free one */
    bool is_reading;      /* its next step, a READ, has begun */
    bool is_waiting;      /* in the list of another member's waiters */
    int32_t next_waiter;  /* in that list */
    int64_t phase;        /* that it has signalled */
    uint32_t pending;     /* bit i: request i is in flight */
    uint32_t sends;       /* of these, sends */
    int32_t step_of[ZERO_PART_REQUESTS];
    int64_t number; /* of its call */
    double begun;
    const void *begin; /* the caller's */
} zero_part;

/* How far a member of a call is. */
typedef struct {
    int32_t part;   /* ZERO_NO_PART: not begun, or over */
    int32_t waiter; /* the first part that waits for this member's phase, or ZERO_NO_PART */
    bool is_over;
} zero_call_member;

typedef struct {
    zero_call_member *members; /* [size of the group]; owned; NULL: the call is free */
    int32_t n_over;
    int32_t next; /* another free one */
} zero_call;

typedef struct {
    int *ranks;                /* [layout->size]; owned */
    const zero_layout *layout; /* borrowed: of groups with equal layouts, the first one's */
    int64_t oldest, next;      /* calls oldest to next - 1 are there */
    int32_t *calls;            /* [capacity]: call i at place i mod capacity; owned */
    int64_t capacity;          /* a power of two, or 0 */
} zero_exchange_group;

/* A message between two parts, from when either has posted it to when both ends have
 * ended. */
typedef struct {
    int32_t send_part, send_request;       /* ZERO_NO_PART: not posted, or ended */
    int32_t receive_part, receive_request; /* ZERO_NO_PART: not posted */
    int32_t from, to;                      /* ranks of the world */
    int64_t bytes;
    int32_t next; /* posted after it, for the same pair; or a free one */
    bool travels, has_arrived;
} zero_transfer;

typedef struct {
    int32_t first, last; /* parts in flight, in the order of their begin; or ZERO_NO_PART */
    bool is_stirred;     /* and has not looked since */
} zero_exchange_rank;

typedef struct zero_exchanges {
    double memory_bandwidth;
    bool reads_take_time;
    void (*stir)(void *arg, int rank);
    void (*ended)(void *arg, const zero_exchange_end *end); /* NULL: not told */
    void *arg;
    zero_events *events; /* borrowed */
    zero_network *network;
    int size; /* of the world */
    zero_step_lists lists;

    zero_exchange_rank *ranks; /* [layout->size] */
    zero_exchange_group *groups;
    int64_t n_groups, group_capacity;
    zero_call *calls;
    int64_t n_calls, call_capacity;
    zero_part *parts;
    int64_t n_parts, part_capacity;
    zero_transfer *transfers;
    int64_t n_transfers, transfer_capacity;
    int32_t free_call, free_part, free_transfer;
    zero_queues unmatched; /* transfers of which one end is missing, by call and pair */

    zero_message_arrived *arrived; /* the caller's messages */
    void *arrived_arg;
    bool failed; /* no memory */
} zero_exchanges;

/* Cookies of messages: what they are for, and its number. */
typedef enum {
    ZERO_COOKIE_TRANSFER, /* a transfer */
    ZERO_COOKIE_READ,     /* the READ of this part */
    ZERO_COOKIE_NOTHING,
    ZERO_COOKIE_CALLER, /* the caller's cookie */
} zero_cookie_kind;

static inline int64_t zero_parts_cookie(zero_cookie_kind kind, int64_t number)
{
    return number * 4 + (int64_t)kind;
}

/* ---- parts.c ---- */

/* The call, made if no member has begun it; -1: no memory. */
int32_t zero_parts_call(zero_exchanges *x, int group, int64_t number);
/* The call if it is in flight, else -1. */
int32_t zero_parts_find_call(const zero_exchanges *x, int group, int64_t number);
/* A part that the member begins now; ZERO_NO_PART: no memory. */
int32_t zero_parts_begin(zero_exchanges *x, int group, int32_t call, int set, int member);
/* The part is over. */
void zero_parts_end(zero_exchanges *x, int32_t part);
/* Tells the caller that the rank could go on, unless it knows. */
void zero_parts_stir(zero_exchanges *x, int rank);

/* ---- matching.c ---- */

/* Posts the message of a step; the part has fewer requests in flight than it may. */
void zero_matching_send(zero_exchanges *x, int32_t part, const zero_packed_step *step);
void zero_matching_receive(zero_exchanges *x, int32_t part, const zero_packed_step *step);
/* The message of a transfer has arrived. ended[2]: the parts of which a request has ended,
 * or ZERO_NO_PART. */
void zero_matching_arrived(zero_exchanges *x, int32_t transfer, int32_t *ended);

/* ---- looks.c ---- */

/* Runs the part's steps as far as they are ready, until one does arithmetic; ends the part
 * after the last one. Returns the seconds of arithmetic, after which the rank should look
 * again. */
double zero_looks_advance(zero_exchanges *x, int32_t part);

/* Something that the part may wait for has ended: stirs the rank if the part could go
 * on. */
void zero_looks_notice(zero_exchanges *x, int32_t part);
/* The READ that is its next step has ended. */
void zero_looks_has_read(zero_exchanges *x, int32_t part);
