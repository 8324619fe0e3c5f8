/* sigterm.h - ranks that block SIGTERM while they wait for a rank that is gone.
 *
 * A program may block SIGTERM and take it between two steps, as a request to save and stop.
 * But launchers also send SIGTERM when a rank has died, and kill only much later (Slurm
 * after 30 s). The other ranks then wait for the dead one and never reach the next step. So
 * SIGTERM takes its default action once it has been pending for 3 s of one wait in which
 * nothing moved. A rank that is only slow has these 3 s; a job that is suspended as a whole
 * and continued has not waited. SIGHUP is handled alike. */
#pragma once

#include <stdint.h>

typedef struct {
    double last_look; /* when; 0: not yet */
    double pending;   /* seconds SIGTERM has been pending without progress */
    int64_t advanced; /* the group's count at the last look */
} zero_sigterm;

/* One turn of a wait that began with a zeroed struct. Looks ten times a second. Does not
 * return once the time is up, which is `patience` times as long if that is above 1. */
void zero_sigterm_turn(zero_sigterm *s, int64_t advanced, double patience);

/* Unblocks them in the calling thread: they end the process from here on, at once if they
 * are pending. */
void zero_sigterm_accept(void);
