/* visit.h - reading and writing this rank's masters and the optimizer's states.
 *
 * Code that reads or writes states does so block by block, in a visitor: states need not
 * lie in this rank's memory, nor in one piece. Elements are those of the group's flat
 * space. Nothing here is collective. A visit can fail on one rank alone, so the ranks agree
 * before their next collective (zero_agree()).
 *
 * States in memory come as one block. Those of a scratch file pass through its slots
 * (tier.h), in the file's blocks (sharding/offload.h); those of a device through chunks of
 * the host's memory, ZERO_OFFLOAD_BLOCK elements from the beginning of the range. */
#pragma once

#include "sharding/checks.h"
#include "state/runner.h"

typedef enum {
    ZERO_STATE_MASTER, /* fp32 parameters */
    ZERO_STATES = 1 + ZERO_MOST_STATES
} zero_state_part;

/* The states of some elements; range.begin is element 0 of each array. An array that the
 * schedule does not have is NULL: masters of 16 bits and states, if it is forward_only, and
 * states that the optimizer does not keep. In fp32 the masters are the parameters. */
typedef struct {
    zero_range range;
    union {
        float *part[ZERO_STATES];
        float *master;
    };
} zero_state_block;

typedef enum {
    ZERO_VISIT_READ,
    ZERO_VISIT_CHANGE, /* some numbers are read or kept, others are written */
    ZERO_VISIT_FILL    /* every number of the range is written, and none is read before */
} zero_visit_access;

/* The arrays of the block are valid until the function returns. A failure ends the
 * visit. */
typedef zero_status zero_state_visitor(void *arg, const zero_state_block *block);

/* Calls `visit` for consecutive blocks that tile `range`, which lies in what this rank
 * holds; not at all if the range is empty. To be called between walks, or in an instruction
 * while no slot is in use. ZERO_ERR_ENV or ZERO_ERR_FORMAT if they cannot be read or
 * written, else the visitor's status. */
zero_status zero_states_visit(zero_runner *r, int group, zero_range range,
                              zero_visit_access access, zero_state_visitor *visit,
                              void *arg);

/* *view = the states of at most ZERO_STATES_VIEW elements in one piece, to be read. States
 * in memory are not copied; others are copied to room[3 * length], which may be NULL for
 * states in memory. The status of zero_states_visit(). */
#define ZERO_STATES_VIEW ((int64_t)1 << 20)
zero_status zero_states_view(zero_runner *r, int group, zero_range range, float *room,
                             zero_state_block *view);

/* The same beside walks, in one other thread than theirs: UPDATE must not change what is
 * read (zero_states_reader). room[ZERO_STATES_ROOM] begins at a page. States must be in
 * the host's reach; the status of zero_tier_peek(). */
#define ZERO_STATES_ROOM (ZERO_STATES * (ZERO_STATES_VIEW + ZERO_OFFLOAD_BLOCK))
zero_status zero_states_view_beside(zero_runner *r, int group, zero_range range,
                                    float *room, zero_state_block *view);
/* False if they are in a device's memory. */
bool zero_states_are_in_reach(const zero_runner *r);

/* Writes zeros to the blocks of the file that no visit has written: all their elements are
 * padding. */
zero_status zero_states_write_padding(zero_runner *r);
