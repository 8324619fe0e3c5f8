/* device_times.h - the profile's clock where calls return early: marks in a device's queue.
 *
 * A walk sets a mark wherever the class of its instructions changes, and a last one at its
 * end. Time between two marks belongs to the class that began at the first: its calls, and
 * what the device waited for, as copies or the host. A mark that is set while the device
 * has nothing to do tells when it was set. So the classes that wait, and compute nothing,
 * have the time in which it stood still.
 *
 *     host     BACKWARD 1   REDUCE_WAIT 2 .....................   BACKWARD 0
 *     device   |  calls of BACKWARD 1  |  exposed: REDUCE_WAIT 2  |  calls of BACKWARD 0
 *              mark                    mark                       mark
 *
 * Marks are read where a walk has waited for the device anyway: after OVERFLOW, and where
 * it ends in a wait. So nothing is waited for, except where all marks are used up before.
 * In each step the time from the OVERFLOW of the step before to its own is read. */
#pragma once

#include "state/link.h"
#include "state/profile.h"

struct zero_device_mark {
    const zero_instruction *begun; /* the first of a class; NULL: the end of a walk */
    zero_program_kind program;
};

typedef struct {
    const zero_stopwatch
        *watch; /* NULL: the host's clock tells times, and nothing here is called */
    const zero_math *math; /* borrowed, open, like the next two */
    zero_link *link;       /* keeps failures */
    zero_profile *profile;
    struct zero_device_mark *ring; /* [watch->marks]; mark i is at [i % marks]; owned */
    int64_t first, n;              /* the oldest that is not read; all set so far */
    zero_program_kind program;     /* that is walked; the walk sets it */
} zero_device_times;

/* ZERO_ERR_NOMEM. Without a stopwatch there is nothing to release. */
zero_status zero_device_times_init(zero_device_times *t, const zero_backend *backend,
                                   const zero_math *math, zero_link *link,
                                   zero_profile *profile);
void zero_device_times_destroy(zero_device_times *t); /* accepts a zeroed one */

/* Before an instruction is executed. */
void zero_device_times_next(zero_device_times *t, const zero_instruction *i);
void zero_device_times_end(zero_device_times *t);

/* Adds what is left to the profile; waits for the device. Without a stopwatch nothing. */
void zero_device_times_read(zero_device_times *t);
