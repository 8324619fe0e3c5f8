/* tell.h - fills in the events of a walk (told.h). Reads memory, and changes nothing. */
#pragma once

#include "engine/told.h"
#include "engine/walk.h"

/* To be called before and after the instruction is executed. */
void zero_tell_before(const zero_walk *w, const zero_instruction *i, zero_told *told);
void zero_tell_after(const zero_walk *w, const zero_instruction *i, zero_told *told);
