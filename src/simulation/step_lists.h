/* step_lists.h - the packed lists of all members of a group; equal lists are kept once.
 *
 * Most collectives look alike from all members, or from all with the same place on their
 * node. Lists that are known to be equal are not even written: a thousand ranks have a
 * thousand lists of thousands of steps. */
#pragma once

#include "simulation/packing.h"

/* The lists of all members of a group for one collective. */
typedef struct zero_list_set {
    zero_collective_spec spec;
    zero_peers peers;
    /* [size]; owned. NULL: those of set `like`, whose root is another member with the same
     * part to play, turned by the distance between the roots. */
    const zero_packed_list **list_of;
    const struct zero_list_set *like;
} zero_list_set;

typedef struct {
    zero_queues by_hash;  /* of packed lists; owned */
    zero_list_set **sets; /* [n_sets]; owned */
    int64_t n_sets, set_capacity;
} zero_step_lists;

void zero_step_lists_destroy(zero_step_lists *l); /* accepts a zeroed struct */

/* The lists of this collective, made unless they are there. Borrows the layout: two with
 * other addresses count as different. *set: their number. The status of zero_steps_init(),
 * and ZERO_ERR_UNSUPPORTED for MPI's own collectives and data of a device. */
zero_status zero_step_lists_add(zero_step_lists *l, const zero_collective_spec *spec,
                                const zero_layout *layout, int *set);

const zero_packed_list *zero_step_lists_get(const zero_list_set *set, int member);

/* How many members' lists are written, if other members' are known to be equal to theirs:
 * the lists of members 0 to n - 1. */
int zero_step_lists_distinct(const zero_collective_spec *spec, const zero_layout *layout);
