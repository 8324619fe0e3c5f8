/* deadline.h - ends this process when a call that cannot be watched takes too long.
 *
 * The watchdog (watch.h) needs a group, and calls that return to its loop. MPI_Init, the
 * making of groups, and MPI_Finalize block inside MPI: a rank that is stopped there, or a
 * network that is dead, would hold all others for ever. Such calls stand between begin and
 * end:
 *
 *     begin "starting MPI" | MPI_Init .............. | end
 *                 tick  tick  tick  tick ... limit: one line on stderr, _exit(code)
 *
 * A timer of the kernel interrupts the process ten times a second and counts. It needs
 * neither MPI nor a thread, for which a limit on the address space may leave no room.
 * Ticks are lost while the process is stopped, so a job that is suspended as a whole and
 * continued has not waited.
 *
 * The launcher ends the other ranks. So that one rank speaks, rank 1 allows 1.5 s more
 * than rank 0, and higher ranks 3 s.
 *
 * Only a program makes a deadline. In a program that starts MPI itself the library
 * installs no signal handler. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "zero/status.h"

#define ZERO_DEADLINE_TEXT 512

/* Must not move in memory while it is open. */
typedef struct {
    bool is_open;   /* the timers exist */
    double seconds; /* the limit; 0: none */
    int rank;
    int code; /* the exit code */
    int signal;
    struct sigaction before; /* what the signal did */
    timer_t timer, last;
    volatile sig_atomic_t left; /* ticks; 0: not counting */
    char text[ZERO_DEADLINE_TEXT];
    size_t length;
} zero_deadline;

/* Local. `rank` is for the message, and may be a guess. Takes a real-time signal that
 * nothing else handles. Without a limit (0) the deadline does nothing. ZERO_ERR_ENV if
 * the system gives no timer. */
ZERO_NODISCARD zero_status zero_deadline_open(zero_deadline *d, double seconds, int rank,
                                              int code);

/* Counts from now on; `phase` is for the message: "starting MPI"; NULL: say nothing.
 * Each begin counts anew. Accepts NULL, like _end: then nothing limits the call. */
void zero_deadline_begin(zero_deadline *d, const char *phase);
void zero_deadline_end(zero_deadline *d);

/* For a rank that is about to end: MPI no longer connects it with the others. If it were
 * stopped there, they would be gone, and the launcher would wait for it for ever. So the
 * kernel continues it 1.5 s after the limit, and it ends with `code`. Holds until the
 * process ends, whatever becomes of the deadline. A job that is suspended just then ends
 * in this way, too; its results are complete. Accepts NULL. */
void zero_deadline_until_exit(const zero_deadline *d);

/* Accepts a zeroed one. */
void zero_deadline_close(zero_deadline *d);
