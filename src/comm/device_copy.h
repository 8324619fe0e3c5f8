/* device_copy.h - what a collective has begun on a device: copies to and from its mirrors,
 * or direct sums, copies and marks, which count as stores. */
#pragma once

#include <stdbool.h>

#include "comm/group.h"
#include "zero/status.h"

/* The collective begins: its copies wait for what was computed before. Host memory: nothing
 * to do. */
ZERO_NODISCARD zero_status zero_device_copy_place(zero_collective *op);

/* Begins a FETCH or STORE step; its direction has a free slot. */
ZERO_NODISCARD zero_status zero_device_copy_begin(zero_collective *op,
                                                  const zero_collective_step *step);

/* Likewise a MARK, or a direct COPY or ADD of `n` terms. */
ZERO_NODISCARD zero_status zero_device_mark(zero_collective *op);
ZERO_NODISCARD zero_status zero_device_copy_near(zero_collective *op, void *to,
                                                 const void *from, size_t bytes);
ZERO_NODISCARD zero_status zero_device_add(zero_collective *op, int n,
                                           const zero_collective_step *step, void *to);

/* Takes note of the copies that have ended. Never waits. */
ZERO_NODISCARD zero_status zero_device_copy_reap(zero_collective *op);

/* True if the direction has a free slot. */
static inline bool zero_device_copy_fits(const zero_device_tickets *copies)
{
    return copies->begun - copies->ended < ZERO_COLLECTIVE_COPIES;
}

/* True if all copies that the first `until` steps began have ended. */
static inline bool zero_device_copy_ended(const zero_device_tickets *copies, int64_t until)
{
    return copies->ended == copies->begun ||
           copies->step[copies->ended % ZERO_COLLECTIVE_COPIES] >= until;
}

/* Copies in flight. */
static inline int64_t zero_device_copy_left(const zero_collective *op)
{
    return op->fetches.begun - op->fetches.ended + op->stores.begun - op->stores.ended;
}
