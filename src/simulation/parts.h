/* parts.h - collectives in flight: the structs, for exchange.c and looks.c.
 *
 * A call is one collective of a group; a part is what one member does in it, from its begin
 * to its end. A call is there from the first begin until the last member is over. */
#pragma once

#include "simulation/exchange.h"
#include "simulation/network.h"
#include "simulation/queues.h"
#include "simulation/step_lists.h"

/* As ZERO_COLLECTIVE_REQUESTS of comm/group.h, which needs MPI. */
#define ZERO_PART_REQUESTS 32

typedef struct zero_part zero_part;

/* How far a member of a call is. */
typedef struct {
    zero_part *part;   /* NULL: not begun, or over */
    zero_part *waiter; /* the first part that waits for this member's phase */
    bool is_over;
} zero_call_member;

typedef struct {
    uint64_t id;                /* of all calls */
    int n_over, n;              /* members that are over, and that take part */
    zero_call_member members[]; /* [size of the group] */
} zero_call;

typedef struct {
    const zero_layout *layout; /* borrowed: of groups with equal layouts, the first one's */
    int64_t oldest, next;      /* calls oldest to next - 1 are there */
    zero_call **calls;         /* [capacity]: call i at place i mod capacity; owned */
    int64_t capacity;          /* a power of two, or 0 */
    int ranks[];               /* [layout->size] */
} zero_exchange_group;

struct zero_part {
    zero_exchange_group *group;
    zero_call *call;
    const zero_list_set *set;
    const zero_packed_list *list;
    int member, rank; /* rank: of the world */
    int32_t next_step;
    bool is_reading;         /* its next step, a READ, has begun */
    bool is_waiting;         /* in the list of another member's waiters */
    zero_part *next_waiter;  /* in that list */
    zero_part *next_of_rank; /* a part that the rank began later */
    int64_t phase;           /* that it has signalled */
    uint32_t pending;        /* bit i: request i is in flight */
    uint32_t sends;          /* of these, sends */
    int32_t step_of[ZERO_PART_REQUESTS];
    zero_exchange_end end; /* what the caller is told */
};

typedef struct {
    zero_part *first, *last; /* parts in flight, in the order of their begin */
    bool is_stirred;         /* and has not looked since */
} zero_exchange_rank;

struct zero_exchanges {
    zero_exchanges_input input;
    bool reads_take_time;
    zero_events *events; /* borrowed */
    zero_network *network;
    zero_step_lists lists;

    zero_exchange_rank *ranks;    /* [layout->size] */
    zero_exchange_group **groups; /* [n_groups] */
    int64_t n_groups, group_capacity;
    uint64_t n_calls;      /* so far */
    zero_pool parts;       /* zero_part */
    zero_pool transfers;   /* messages between parts */
    zero_queues unmatched; /* transfers of which one end is missing, by call and pair */

    bool failed; /* no memory */
};

/* Cookies of messages: what they are for, and a pointer or the caller's number. */
typedef enum {
    ZERO_COOKIE_TRANSFER, /* a transfer */
    ZERO_COOKIE_READ,     /* the READ of this part */
    ZERO_COOKIE_NOTHING,
    ZERO_COOKIE_CALLER, /* ZERO_EXCHANGE_COOKIE() */
} zero_cookie_kind;

static inline int64_t zero_parts_cookie(zero_cookie_kind kind, const void *of)
{
    return (int64_t)(uintptr_t)of | (int64_t)kind;
}

/* ---- exchange.c ---- */

/* Tells the caller that the rank could go on, unless it knows. */
void zero_parts_stir(zero_exchanges *x, int rank);
/* The part is over. */
void zero_parts_end(zero_exchanges *x, zero_part *part);
/* Posts the message of a step; the part has fewer requests in flight than it may. */
void zero_parts_post(zero_exchanges *x, zero_part *part, const zero_packed_step *step);

/* ---- looks.c ---- */

/* Runs the part's steps as far as they are ready, until one does arithmetic; ends the part
 * after the last one. Returns the seconds of arithmetic, after which the rank should look
 * again. */
double zero_looks_advance(zero_exchanges *x, zero_part *part);

/* Something that the part may wait for has ended: stirs the rank if the part could go
 * on. */
void zero_looks_notice(zero_exchanges *x, zero_part *part);
