/* schedule_memory.h - lifetimes and places of buffers.
 *
 * All memory is laid out before step 1, so there is no allocation and no fragmentation
 * inside a step (the paper's M_D, section 6.3), and the peak is known before anything is
 * allocated. In each space a program's buffers lie above what lives for the whole run.
 * Programs share that memory.
 *
 *     0         persistent                                    extent
 *     |  parameters, states  | a program's buffers, gap, ...  |
 *     |                      | cache | generate's and token's   |
 *
 * All lives are known, so buffers need not be placed in the order of their births: the
 * largest is placed first, at the lowest offset that is free during its whole life. Where
 * that leaves gaps at the peak, those are placed first that are alive when memory is
 * fullest, if that is better. A space has equal offsets on ranks whose buffers there have
 * equal sizes and lives, and are in the same order. */
#pragma once

#include "sharding/schedule.h"

/* The time grows with the square of the number of buffers: with more of them in a program
 * they are placed in the order of their births. */
#define ZERO_PLACES_AT_ONCE 10000

/* Finds when each buffer lives and where, and the peaks. ZERO_ERR_NOMEM. */
zero_status zero_schedule_lay_out(zero_schedule *s);

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

/* The instructions between which a buffer is used, both included; first -1: by none. */
typedef struct {
    int first, last;
} zero_life;

/* The peaks of a program whose buffers have these lives (NULL: the planned ones), and the
 * bytes at each instruction: live[length]. */
zero_peak zero_schedule_peak(const zero_schedule *s, zero_program_kind program,
                             const zero_life *lives, size_t *live);

/* ---- the staircase of memory ---- */

/* True while instruction `at` of the program runs. */
bool zero_buffer_lives_at(const zero_buffer *b, zero_program_kind program, int at);

/* The bytes of each class that are alive while instruction `at` of the program runs, as
 * this rank's costs (zero_schedule_cost); with a device those on the device. Their sum is
 * the instruction's live_bytes. of_class[length][ZERO_CLASSES], the caller's. */
void zero_schedule_live(const zero_schedule *s, zero_program_kind program,
                        size_t (*of_class)[ZERO_CLASSES]);
/* The same of one instruction. */
void zero_schedule_live_at(const zero_schedule *s, zero_program_kind program, int at,
                           size_t of_class[ZERO_CLASSES]);
