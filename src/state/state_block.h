/* state_block.h - masters, momentum and variance of some elements, as a visitor is given them. */
#pragma once

#include "base/range.h"
#include "zero/status.h"

/* The states of some elements; range.begin is element 0 of each array. An array that the
 * schedule does not have is NULL: masters of 16 bits and moments, if it is forward_only. In fp32
 * the masters are the parameters. */
typedef struct {
    zero_range range;
    float *master, *momentum, *variance;
} zero_state_block;

typedef enum {
    ZERO_VISIT_READ,
    ZERO_VISIT_CHANGE, /* some numbers are read or kept, others are written */
    ZERO_VISIT_FILL    /* every number of the range is written, and none is read before */
} zero_visit_access;

/* States in memory come as one block. Blocks of a file end at multiples of ZERO_OFFLOAD_BLOCK
 * elements (sharding/offload.h), counted from the beginning of what the rank holds
 * (zero_states_held()), or at the end of the visited range. */

/* The arrays of the block are valid until the function returns. A failure ends the visit. */
typedef zero_status zero_state_visitor(void *arg, const zero_state_block *block);
