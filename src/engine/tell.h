/* tell.h - fills in the events of a walk (told.h). Reads memory, and changes nothing. */
#pragma once

#include "engine/walk.h"

/* *list[instructions of a step] = room for events on at most ZERO_TOLD_RANKS ranks, with
 * what is known before. The caller's (free()). ZERO_ERR_NOMEM. */
zero_status zero_tell_open(const zero_schedule *s, zero_told **list);

/* To be called before and after the instruction is executed. */
void zero_tell_before(const zero_walk *w, const zero_instruction *i, zero_told *told);
void zero_tell_after(const zero_walk *w, const zero_instruction *i, zero_told *told);
