/* jail.h - a stranger's program, run so that nothing is left of it.
 *
 * Every process in it has a private directory, an environment of its own, no input,
 * a process group that is killed as a whole, a signal that kills it if we die, and limits
 * of CPU time, memory, file size and open files. A closed one is also under a filter of
 * system calls (Linux: seccomp, which root, containers and plain users all may set): it can
 * read files, but it can write none, start no process, send no signal to another, open no
 * socket and raise no limit; SIGSYS ends it if it tries. */
#pragma once

#include <sys/types.h>

#include "base/fail.h"

#define ZERO_JAIL_PATH 256

typedef struct {
    char path[ZERO_JAIL_PATH]; /* the directory */
    int log;                   /* standard output and error of all its processes */
    int keeper_pipe;
    pid_t keeper; /* removes the directory when we end, however that happens */
} zero_jail;

zero_status zero_jail_open(zero_jail *jail);
void zero_jail_close(zero_jail *jail); /* accepts a zeroed one */

/* Writes a file into its directory. */
zero_status zero_jail_write(const zero_jail *jail, const char *name, const char *text);
/* The last 2000 bytes that its processes have printed since the last call; free() them. */
char *zero_jail_take_said(const zero_jail *jail);

/* Runs a command that is not closed, such as a compiler, to its end, for at most `seconds`.
 * ZERO_ERR_ENV if it cannot be started; *code: its exit code, -1: a signal or the time has
 * ended it. */
zero_status zero_jail_run(const zero_jail *jail, char *const words[], double seconds,
                          int *code);

/* Starts a closed command with a socket at descriptor 3, whose other end is *socket. */
zero_status zero_jail_start(const zero_jail *jail, char *const words[], pid_t *pid,
                            int *socket);
