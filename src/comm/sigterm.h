/* sigterm.h - ranks that block SIGTERM, and wait for one that is gone.
 *
 * A program may block SIGTERM and take it between two steps, as a request to save and stop.
 * But launchers send SIGTERM as well when a rank has died, and kill only much later (Slurm
 * after 30 s). The others then wait for the dead rank and come to no next step. So where
 * SIGTERM has been pending for 3 s of one wait in which nothing moved, it does what it does
 * by default. A rank that is only slow has these 3 s; a job that is suspended as a whole and
 * continued has not waited. */
#pragma once

#include <stdint.h>

typedef struct {
    double last_look; /* 0: none yet */
    double pending;   /* seconds in which it was, and nothing moved */
    int64_t advanced; /* comm's, at the last look */
} zero_sigterm;

/* One turn of a wait that began with a zeroed struct. Looks ten times a second; does not
 * return if the time is up, `patience` times longer if that is above 1. */
void zero_sigterm_turn(zero_sigterm *s, int64_t advanced, double patience);

/* From here on, or at once if it is pending, SIGTERM ends the process. Of the calling
 * thread. */
void zero_sigterm_accept(void);
