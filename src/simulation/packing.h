/* packing.h - the step list of one member of a group, packed.
 *
 * A step takes 24 bytes. Peers are relative, so that members with the same part to play
 * have equal lists: with hier on several nodes a distance between nodes and a place on the
 * node, else a distance between members. A list says what a member waits for and what
 * moves, no addresses:
 *
 *     SEND, RECEIVE   a message
 *     READ            bytes in neighbours' memory
 *     WORK            arithmetic: adds and copies in a row, on what one READ before it has
 *                     read
 *     LEND            a READ whose end is not awaited: MPI sends from a neighbour's memory
 *     SIGNAL, AWAIT   phases; an AWAIT for what an earlier one has awaited is left out */
#pragma once

#include "lists/step.h"
#include "simulation/queues.h"

typedef enum {
    ZERO_PACKED_SEND,
    ZERO_PACKED_RECEIVE,
    ZERO_PACKED_READ,
    ZERO_PACKED_WORK,
    ZERO_PACKED_LEND,
    ZERO_PACKED_SIGNAL,
    ZERO_PACKED_AWAIT,
} zero_packed_kind;

typedef struct {
    int64_t value; /* bytes; work: of all operands; signal, await: phase */
    int32_t peer;  /* relative; await, read: or ZERO_ALL_NEIGHBOURS, which is several */
    int32_t kind;
    int32_t received, sent; /* as in lists/step.h */
} zero_packed_step;

typedef struct {
    zero_queued queued;      /* of those with one hash (step_lists.h) */
    zero_packed_step *steps; /* [n]; owned */
    int64_t n, capacity;
    int64_t until_sent; /* steps that have to run until no send is left */
} zero_packed_list;

/* How peers are relative. */
typedef struct {
    const zero_layout *layout; /* borrowed */
    int largest_node; /* ranks: distances are between nodes; 0: they are between members */
} zero_peers;

zero_peers zero_peers_of(const zero_collective_spec *spec, const zero_layout *layout);
/* The member that relative peer `peer` is to this member. */
int zero_peers_member(const zero_peers *peers, int member, int64_t peer);

/* The status of zero_steps_init(); ZERO_ERR_NOMEM. Release with _destroy. */
zero_status zero_pack(zero_packed_list *list, const zero_collective_spec *spec,
                      const zero_peers *peers, int member);
void zero_packed_list_destroy(zero_packed_list *list); /* accepts a zeroed struct */
