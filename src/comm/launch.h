/* launch.h - how a program of ours comes up under MPI, and how it goes down.
 *
 * A program that starts MPI on its own leaves start and stop alone and begins with
 * zero_comm_world(). */
#pragma once

#include <stddef.h>

#include "zero/status.h"

/* Starts MPI (thread level FUNNELED: only the main thread communicates); once per process.
 * Also works without a launcher, as a world of one rank.
 *
 * ZERO_ERR_ENV if a launcher started several ranks and each of them finds itself alone: the
 * program is linked with another MPI than the launcher's, and N ranks would train N models.
 * MPI is up then nevertheless. ZERO_ERR_INVALID if MPI was up before. */
ZERO_NODISCARD zero_status zero_launch_start(int *argc, char ***argv);

/* The same at thread level MULTIPLE, for programs with progress threads (progress.h).
 * ZERO_ERR_UNSUPPORTED if this MPI cannot; MPI is up then nevertheless. */
ZERO_NODISCARD zero_status zero_launch_start_threaded(int *argc, char ***argv);

/* Ends MPI; collective over MPI_COMM_WORLD. All groups are destroyed before. */
ZERO_NODISCARD zero_status zero_launch_stop(void);

/* Ends all ranks with this exit code, as far as MPI reaches them, and this process after 10 s
 * if MPI does not. */
_Noreturn void zero_launch_abort(int code);

/* The rank that the launcher's environment gives this process, 0 if it gives none: who may
 * speak before MPI is up. Any time. */
int zero_launch_rank_hint(void);

/* Name and version of the MPI library, such as "Open MPI v4.1.4", cut to `size` bytes with
 * their end. Legal before MPI is up. */
void zero_launch_library(char *text, size_t size);
