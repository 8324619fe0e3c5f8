/* works.h - what zero/collective.h begins: collectives whose step lists are kept for the next
 * of the same shape, and messages. For the other files of comm/. */
#pragma once

#include "comm/wait.h"

struct zero_work {
    zero_comm *comm; /* borrowed */
    zero_operation what;
    bool done;
    zero_requests requests; /* of messages and barriers; their list is owned */

    /* A collective that is undecided: whether ranks read each other's memory or exchange
     * messages. */
    zero_collective_spec spec;
    const void *in;
    void *out;
    struct zero_work *next;
};

/* A work of the group for *place. Takes the lock, which zero_works_begun() gives back. */
zero_status zero_works_make(zero_comm *comm, zero_work **place, zero_work **work);

/* *place = the work, or frees one that did not begin. What MPI may still write to stays, and
 * so does the failure. Returns st. */
zero_status zero_works_begun(zero_comm *comm, zero_status st, zero_work *w,
                             zero_work **place);

/* Makes the group one that works can use: starts the family's thread (thread.h), and names
 * the group, if need be. Local. */
zero_status zero_works_start(zero_comm *comm);

/* Begins the collectives of which all ranks have said by now where their data lie. The
 * caller holds the lock. */
zero_status zero_works_decide(zero_comm *comm);

/* Waits until nothing is in flight on the groups of its family. The caller holds the
 * lock. */
zero_status zero_works_drain(zero_comm *comm);

/* Waits for all that is in flight on the family, and frees what the group's works kept.
 * Frees nothing after a failure: then an abort follows. Accepts a group without works. */
zero_status zero_works_end(zero_comm *comm);
