/* device_steps.h - the steps that a device adds to an algorithm's: copies between it and the mirrors,
 * or, if neighbours reach its memory, what signals wait for. */
#pragma once

#include "comm/step.h"

/* Adds FETCH and STORE steps to a list that its algorithm has written for the mirrors. `stride`:
 * elements between pieces of the device's arrays. A failure is kept in steps->failed. */
void zero_steps_add_copies(zero_steps *steps, int64_t stride);

/* Of a direct collective: begins the list, before its algorithm writes it. */
void zero_steps_mark(zero_steps *steps);
/* Of a direct collective, finished: a signal tells neighbours that this rank has written and read what
 * stands before it, so it waits until the device has. */
void zero_steps_signal_late(zero_steps *steps);
