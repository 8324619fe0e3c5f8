/* step_machine.h - runs the steps of all ranks of a layout in one process, in random order.
 *
 * The worst machine that is still an MPI: any rank may go on or be late at any step, messages
 * between a pair match in the order posted and end in any order, a send ends only when its
 * receive has it (or, if eager, mostly at once). What a rank has not yet begun with is garbage, and
 * what it has ended with is overwritten. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "comm/algorithm.h"

typedef struct {
    zero_collective_spec spec; /* in_apart and out_apart are the machine's */
    const zero_layout *layout;
    uint64_t trial; /* the inputs, and the order of events */
    int requests;   /* messages in flight per rank, at most */
    bool eager, in_place;
} machine_case;

/* Runs it once and checks
 *   - that some rank can go on until all have ended,
 *   - the results, bit for bit, and that nothing else is written,
 *   - that each element of `out` is written once,
 *   - that no buffer is touched while a message is under way in it,
 *   - that planned traffic, counted traffic and what really moved are the same.
 * Returns whether all was well; if not, says why on standard error. traffic[size] of each rank
 * may be NULL. */
bool machine_run(const machine_case *c, zero_traffic *traffic);
