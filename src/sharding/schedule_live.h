/* schedule_live.h - bytes by class at each instruction: the staircase of memory. */
#pragma once

#include "sharding/schedule.h"

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
