/* ending.h - signals that end the process, also if it is the first one of a container.
 *
 * The kernel takes no default action for process 1, so a signal would do nothing to it. */
#pragma once

#include <stdbool.h>

/* The signals by which users end a program end this one from now on, unless they are
 * ignored. Call it first. */
void zero_ending_begin(void);

/* From now on this signal ends the process. */
void zero_end_on(int signal);

/* True if it does. */
bool zero_ends_on(int signal);

/* Ends the process as the signal would, once a handler that calls this has returned. */
void zero_end_by(int signal);
