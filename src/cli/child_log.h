/* child_log.h - what a run printed, as far as it says why it failed. */
#pragma once

#define ZERO_CHILD_MESSAGE 300

/* Shows the last lines of the file on stderr, and finds the last message in them that is zero's own;
 * empty: they have no such message. */
void zero_child_log_tell(const char *path, char message[ZERO_CHILD_MESSAGE]);
