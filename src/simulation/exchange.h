/* exchange.h - collectives of all ranks in flight, step by step over the network.
 *
 * The steps are those that a run executes (lists/step.h), packed. A rank's part of a
 * collective goes on only when the rank looks at it, as in a run: a look posts messages,
 * does the arithmetic for which data is there, and signals to neighbours. Who looks when is
 * the caller's business; it is told when a look would find something new.
 *
 * Messages of up to 64 KiB leave when they are sent; larger ones, and all of a reduce, when
 * they are awaited as well, as MPI's do. */
#pragma once

#include "lists/spec.h"
#include "simulation/network.h"

typedef struct zero_exchanges zero_exchanges;

/* A rank's part of a collective that is over. */
typedef struct {
    int rank;          /* of the world */
    int64_t call;      /* number in its group */
    const void *begin; /* the caller's, of its begin */
    double begun, ended;
} zero_exchange_end;

typedef struct {
    zero_network_input network;
    /* Bytes per second at which a rank adds and copies, all operands counted; INFINITY:
     * arithmetic takes no time. What is read in a neighbour's memory travels on the links
     * inside a node besides. */
    double memory_bandwidth;
    /* Called when rank `rank` of the world could go on with a collective: at the earliest
     * at events->now. May be called several times before it looks; it must not look in the
     * call. */
    void (*stir)(void *arg, int rank);
    /* Called when a part ends; NULL: not. Nothing here may be called back. */
    void (*ended)(void *arg, const zero_exchange_end *end);
    /* Called when a message or a transfer of the caller's own has arrived; NULL: it has
     * none. */
    zero_message_arrived *arrived;
    void *arg;
} zero_exchanges_input;

/* What the caller has to send by itself, by the network (a vote, losses, a norm; transfers
 * of a disk), has such cookies: 0 <= own < 2^61. */
#define ZERO_EXCHANGE_COOKIE(own) ((own)*4 + 3)

/* Borrows the events. ZERO_ERR_NOMEM. */
zero_status zero_exchanges_open(zero_exchanges **x, const zero_exchanges_input *input,
                                zero_events *events);
void zero_exchanges_close(zero_exchanges *x); /* accepts NULL */

/* A group of ranks of the world: member i is rank ranks[i]. The layout is the group's,
 * borrowed for the life of x. Groups with the same layout share their lists. *group: its
 * number, from 0 on. ZERO_ERR_NOMEM. */
zero_status zero_exchanges_add_group(zero_exchanges *x, const int *ranks,
                                     const zero_layout *layout, int *group);
/* The step lists of all members for this collective. Equal ones are kept once: fields
 * that change no step (`unit`) do not count. *lists: their number. A status of
 * zero_steps_init(); ZERO_ERR_UNSUPPORTED for MPI's own collectives and data of a
 * device. */
zero_status zero_exchanges_add_lists(zero_exchanges *x, int group,
                                     const zero_collective_spec *spec, int *lists);

/* Member `member` of the group begins its part of the group's collective number `call`, at
 * events->now, and takes a first look. Calls are counted from 0 on in every group; a member
 * may have several in flight, and begins them in order. Returns the seconds of arithmetic
 * of the look.
 *
 * `begin` is the caller's: it is told when the part is over. May be NULL.
 *
 * A look ends with the first arithmetic that takes time, so that what follows begins after
 * it. If it returns more than 0 the rank is stirred, and has to look again after these
 * seconds. */
double zero_exchanges_begin(zero_exchanges *x, int group, int64_t call, int lists,
                            int member, const void *begin);
/* Rank `rank` of the world looks at all that it has in flight. Returns seconds of
 * arithmetic. */
double zero_exchange_look(zero_exchanges *x, int rank);
/* The member's part is over: what it takes part in later may reuse the buffers. */
bool zero_exchange_is_over(const zero_exchanges *x, int group, int64_t call, int member);
/* ZERO_ERR_NOMEM if memory has run out since the last call. */
zero_status zero_exchanges_status(const zero_exchanges *x);
/* To be told of its events. */
zero_network *zero_exchanges_network(zero_exchanges *x);
