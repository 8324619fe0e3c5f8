/* waiting.h - what threads of this process wait for outside of it, for a watchdog beside
 * them.
 *
 * A disk may stop answering: a snapshot freezes it, a server is gone. So may a device. A
 * thread that waits for it can neither say so nor be ended. So each wait is in a list as
 * long as it lasts, and another thread looks at the list.
 *
 *     begin "run/m.json", "synced" | fsync() .............. | end
 *                                looks: 1 s  2 s  3 s ... limit
 *
 * The list is the process's, whatever engines live in it, because a process ends as a
 * whole. */
#pragma once

#include "base/fail.h"

/* On the caller's stack. */
typedef struct zero_waiting {
    const char *whom, *what; /* borrowed: "run/m.json", "synced" */
    double begun;            /* on base/clock.h */
    double patience;         /* times the usual limit */
    double waited;           /* seconds between looks */
    bool is_seen;
    struct zero_waiting *next, **at;
} zero_waiting;

/* How many times longer than usual work on files may take whose amount nobody knows. */
#define ZERO_FILE_PATIENCE 10.0

/* Any thread. `end` leaves errno as the call before it has set it. */
void zero_waiting_begin(zero_waiting *w, const char *whom, const char *what,
                        double patience);
void zero_waiting_end(zero_waiting *w);

/* A look, `passed` seconds after the last one. If a wait has been seen for `limit` seconds
 * or more, times its patience, returns these seconds, and text gets "run/m.json: cannot be
 * synced"; else 0. One thread looks. */
double zero_waiting_look(double passed, double limit, char *text, size_t size);

/* How long the oldest wait has lasted, by the clock; 0 if there is none. Any thread. */
double zero_waiting_oldest(void);
