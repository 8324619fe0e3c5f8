/* launch.h - how a program of ours starts and ends MPI.
 *
 * A program that starts MPI itself calls neither start nor stop; it begins with
 * zero_comm_world(). */
#pragma once

#include <stddef.h>

#include "zero/status.h"

/* Starts MPI (thread level FUNNELED: only the main thread communicates); once per process.
 * Also works without a launcher, as a world of one rank.
 *
 * ZERO_ERR_ENV if a launcher started several ranks and each of them finds itself alone: the
 * program is linked with an MPI other than the launcher's, and N ranks would train N models.
 * MPI is up then all the same. ZERO_ERR_INVALID if MPI was up before. */
ZERO_NODISCARD zero_status zero_launch_start(int *argc, char ***argv);

/* The same at thread level MULTIPLE, for programs with progress threads (progress.h).
 * ZERO_ERR_UNSUPPORTED if this MPI cannot; MPI is up then all the same. */
ZERO_NODISCARD zero_status zero_launch_start_threaded(int *argc, char ***argv);

/* Ends MPI; collective over MPI_COMM_WORLD. All groups are destroyed before. */
ZERO_NODISCARD zero_status zero_launch_stop(void);

/* Ends all ranks that MPI can reach, with this exit code; this process ends after 10 s even if
 * MPI hangs. */
_Noreturn void zero_launch_abort(int code);

/* The rank that the launcher's environment gives this process, else 0: decides who prints before
 * MPI is up. Any time. */
int zero_launch_rank_hint(void);

/* Name and version of the MPI library, such as "Open MPI v4.1.4", cut to `size` bytes with the
 * final zero. Legal before MPI is up. */
void zero_launch_library(char *text, size_t size);
