/* device_times.h - the profile's clock where calls return early: marks in a device's queue.
 *
 * A walk sets a mark wherever the class of its instructions changes, and a last one at its end. Time
 * between two marks belongs to the class that began at the first: its calls, and what the device
 * waited for, as copies or the host.
 *
 *     walk 1    |F|  B  |R|B|..|U|      the first half of the marks; read when walk 3 begins
 *     walk 2    |F|  B  |R|B|..|U|      the other half; read when walk 4 begins
 *
 * So nothing is waited for, except in a walk with more changes than half of the marks: it reads its own
 * when they are used up. */
#pragma once

#include "engine/link.h"
#include "engine/profile.h"

typedef struct {
    const zero_stopwatch
        *watch; /* NULL: the host's clock tells times, and nothing here is called */
    const zero_math *math; /* borrowed, open, like the next two */
    zero_link *link;       /* keeps failures */
    zero_profile *profile;
    const zero_instruction *
        *begun; /* [marks]: the first of a class; NULL: the end of a walk; owned */
    zero_program_kind program[2]; /* of each half */
    int n[2];                     /* marks of each half that are set and not read */
    int half;                     /* the present walk's */
} zero_device_times;

/* ZERO_ERR_NOMEM. Without a stopwatch there is nothing to release. */
ZERO_NODISCARD zero_status zero_device_times_init(zero_device_times *t,
                                                  const zero_backend *backend,
                                                  const zero_math *math, zero_link *link,
                                                  zero_profile *profile);
void zero_device_times_destroy(zero_device_times *t); /* accepts a zeroed one */

void zero_device_times_begin(zero_device_times *t, zero_program_kind program);
/* Before an instruction is executed. */
void zero_device_times_next(zero_device_times *t, const zero_instruction *i);
void zero_device_times_end(zero_device_times *t);

/* Adds what is left to the profile; waits for the device. Without a stopwatch nothing. */
void zero_device_times_read(zero_device_times *t);
