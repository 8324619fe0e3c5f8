/* schedule_memory.h - lifetimes and places of buffers.
 *
 * All memory is laid out before step 1, so there is no allocation and no fragmentation
 * inside a step (the paper's M_D, section 6.3), and the peak is known before anything is
 * allocated. In each space a program's buffers lie above what lives for the whole run
 * (schedule_places.h). Programs share that memory.
 *
 *     0         persistent                                    extent
 *     |  parameters, states  | a program's buffers, gap, ...  |
 *     |                      | cache | generate's and token's   | */
#pragma once

#include "sharding/schedule.h"

/* Finds when each buffer lives and where, and the peaks. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_schedule_lay_out(zero_schedule *s);

/* Each member becomes at least that of `more`. */
void zero_peak_widen(zero_peak *peak, const zero_peak *more);

/* The places of the buffers that live for the whole run, and sums as if there were no
 * others. */
void zero_schedule_place_persistent(zero_schedule *s);

/* True with a device if the space is the host's: its bytes count apart from the
 * device's. */
bool zero_schedule_is_beside(const zero_schedule *s, zero_space space);

/* The bytes that a buffer costs this rank: its share, if the buffer lies there once per
 * node. */
size_t zero_schedule_cost(const zero_schedule *s, const zero_buffer *b);
