/* freed.h - where gradients in flight end their lives.
 *
 * RELEASE says that gathered parameters are no longer needed; gradients need no such
 * instruction, as their memory ends with the last instruction that names it. Programs that
 * are shown have a line for it all the same: without one stages 1 and 2 would look alike,
 * although stage 2 keeps only this rank's piece of a gradient. */
#pragma once

#include "sharding/schedule.h"

typedef struct {
    int at;    /* after this instruction of the program */
    int group; /* whose gradient it was */
    size_t bytes;
} zero_freed;

/* The gradients in flight that end in the program, in its order: *freed is the caller's
 * (free). As costs of this rank. ZERO_ERR_NOMEM. */
zero_status zero_schedule_freed(const zero_schedule *s, zero_program_kind program,
                                zero_freed **freed, int *n);
