/* schedule_places.h - places of a program's buffers. All their lives are known, so that
 * they need not be placed in the order of their births: each gets the lowest offset that is
 * free during its whole life, the largest first. Where that leaves gaps at the peak, those
 * go first that are alive when memory is fullest, if that is better. */
#pragma once

#include "sharding/schedule.h"

/* The time grows with the square of the number of buffers: with more of them they get the
 * first gap when they are born. */
#define ZERO_PLACES_AT_ONCE 10000

/* True if the program has at most ZERO_PLACES_AT_ONCE buffers. */
bool zero_places_are_few(const zero_schedule *s, zero_program_kind kind);

/* Sets the offsets of the program's buffers, above those of the whole run, and the extents.
 * Their lifetimes are known. A space has equal offsets on ranks whose buffers there have
 * equal sizes and lives, and are in the same order. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_places_find(zero_schedule *s, zero_program_kind kind);
