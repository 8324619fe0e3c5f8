/* step_machine.h - runs the steps of all ranks of a layout in one process, in random order.
 *
 * The worst machine that is still an MPI: any rank may continue or be late at any step, messages
 * between a pair match in the order posted and end in any order, a send ends only when its
 * receive has it (or, if eager, mostly at once). A rank's buffers are garbage before it begins,
 * and are overwritten after it ends.
 *
 * With spec.on_device each rank has a device, whose arrays only FETCH and STORE reach. Copies end
 * at any later moment. With spec.direct neighbours or messages reach these arrays: what a rank has
 * computed is there when its MARK ends, all else in them is overwritten at that moment, and its device
 * copies and adds at any later moment, in the order of its steps. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lists/algorithm.h"

#define MACHINE_COPIES 16

typedef struct {
    zero_collective_spec spec; /* the machine sets in_apart and out_apart */
    const zero_layout *layout;
    uint64_t trial; /* the inputs, and the order of events */
    int requests;   /* messages in flight per rank, at most */
    int copies;     /* from its device, and to it, likewise; 1 to MACHINE_COPIES / 2 */
    bool eager, in_place;
} machine_case;

/* Runs it once and checks
 *   - that some rank can continue until all have ended,
 *   - the results, bit for bit, and that nothing else is written,
 *   - that each element of `out` is written once,
 *   - that no buffer is touched while a message is in flight from or to it,
 *   - that planned, counted and actual traffic are equal.
 * Returns whether all is well; if not, prints why on standard error. traffic[size], by rank, may
 * be NULL. */
bool machine_run(const machine_case *c, zero_traffic *traffic);
