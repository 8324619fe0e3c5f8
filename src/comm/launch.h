/* launch.h - how a program of ours starts and ends MPI.
 *
 * A program that starts MPI itself calls neither start nor stop; it begins with
 * zero_comm_world(). */
#pragma once

#include "comm/deadline.h"
#include "comm/group.h"

/* Opens the deadline of a program that is about to start MPI, from --watchdog in seconds. A
 * value that the user has given holds for the start, too. The default is five times as long
 * there: on many nodes MPI may take minutes to start. Local. ZERO_ERR_ENV: no timer. */
zero_status zero_launch_limit(zero_deadline *d, double watchdog, bool is_given);

/* Starts MPI (thread level FUNNELED: only the main thread communicates); once per process.
 * Also works without a launcher, as a world of one rank, in a shell of srun --pty, too.
 *
 * ZERO_ERR_ENV if a launcher started several ranks and each of them finds itself alone: the
 * program is linked with an MPI other than the launcher's, and N ranks would train N
 * models. MPI is up then all the same. ZERO_ERR_INVALID if MPI was up before. */
zero_status zero_launch_start(int *argc, char ***argv);

/* The same at thread level MULTIPLE, for programs with progress threads (thread.h).
 * ZERO_ERR_UNSUPPORTED if this MPI cannot; MPI is up then all the same. */
zero_status zero_launch_start_threaded(int *argc, char ***argv);

/* The same at level SERIALIZED or higher, for programs with works (works.h). */
zero_status zero_launch_start_serialized(void);

/* Ends MPI; collective over MPI_COMM_WORLD. All groups are destroyed before. */
zero_status zero_launch_stop(void);

/* Ends the group of all ranks, its helpers, and MPI, under the group's deadline, which the
 * caller closes after it. Collective. Flush the standard output before: a deadline does
 * not. */
zero_status zero_launch_leave(zero_comm *world);

/* Ends all ranks that MPI can reach, with this exit code; this process ends after 10 s even
 * if MPI hangs. */
_Noreturn void zero_launch_abort(int code);

/* The rank that the launcher's environment gives this process, else 0: decides who prints
 * before MPI is up. Any time. */
int zero_launch_rank_hint(void);

/* False if a terminal on the standard error may not be the user's own. Open MPI's mpirun
 * can give its ranks one whose output it labels; other PMI launchers may do so. Slurm's
 * srun gives one only with --pty, and it is the user's. Any time. */
bool zero_launch_has_own_terminal(void);

/* Name and version of the MPI library, such as "Open MPI v4.1.4", cut to `size` bytes with
 * the final zero. Legal before MPI is up. */
void zero_launch_library(char *text, size_t size);

/* Whether this MPI sends from and receives into memory of CUDA's devices; and in words,
 * such as "CUDA-aware". Any time; some MPIs know more once they are up. */
bool zero_launch_is_cuda_aware(void);
const char *zero_launch_cuda(void);
