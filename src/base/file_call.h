/* file_call.h - the calls on files that have not returned yet, for a watchdog beside them.
 *
 * A disk may stop answering: a snapshot freezes it, a server is gone. A thread that waits for it can
 * neither say so nor be ended. So each call on a file is in a list as long as it lasts, and
 * another thread looks at the list.
 *
 *     begin "run/m.json", "synced" | fsync() .............. | end
 *                                looks: 1 s  2 s  3 s ... limit
 *
 * The list is the process's, whatever engines live in it, because a process ends as a whole. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* On the caller's stack. */
typedef struct zero_file_call {
    const char *path, *what; /* borrowed: "run/m.json", "synced" */
    double begun;            /* on base/clock.h */
    double patience;         /* times the usual limit */
    double waited;           /* seconds between looks */
    bool is_seen;
    struct zero_file_call *next, **at;
} zero_file_call;

/* How many times longer than usual work on files may take whose amount nobody knows. */
#define ZERO_FILE_PATIENCE 10.0

/* Any thread. A call that moves some megabytes has a `patience` of 1. `end` leaves errno as the call has
 * set it. */
void zero_file_call_begin(zero_file_call *call, const char *path, const char *what,
                          double patience);
void zero_file_call_end(zero_file_call *call);

/* A look, `passed` seconds after the last one. If a call has been seen for `limit` seconds or more,
 * times its patience, returns these seconds, and text gets "run/m.json: cannot be synced"; else 0. One
 * thread looks. */
double zero_file_calls_look(double passed, double limit, char *text, size_t size);

/* How long the oldest call has lasted, by the clock; 0 if there is none. Any thread. */
double zero_file_calls_oldest(void);
