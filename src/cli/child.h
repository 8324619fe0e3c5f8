/* child.h - a command that is started, watched until it ends, and ended with us.
 *
 * It has a process group of its own, so a Ctrl-C reaches us alone, and we decide: it gets
 * SIGTERM, which launchers pass on to their ranks, and after 15 s, or at a second request,
 * SIGKILL. Where the kernel can (Linux) it also gets SIGTERM if we are killed. */
#pragma once

#include "base/fail.h"

typedef struct {
    int stopped; /* the signal that asked us to stop; 0: none */
    int signal;  /* that ended the command; 0: it ended by itself, */
    int code;    /* with this exit code */
} zero_child_end;

/* From now on SIGINT, SIGTERM, SIGHUP and SIGUSR2 are requests to stop, not ends; those
 * that are ignored, as SIGHUP is under nohup, stay so. */
void zero_child_expect_stop(void);

/* Runs words[], ended by NULL, the first of which is looked for in PATH. Standard output
 * and standard error go to the open file `log`; the standard input is empty. Waits until it
 * has ended. ZERO_ERR_ENV if it cannot be started. */
zero_status zero_child_run(char *const words[], int log, zero_child_end *end);

#define ZERO_CHILD_MESSAGE 300

/* Shows the last lines of the file on stderr, and finds the last message in them that is
 * zero's own; empty: they have no such message. */
void zero_child_log_tell(const char *path, char message[ZERO_CHILD_MESSAGE]);
