/* threads.h - the threads that compute in a rank (team.h), for those who start it. */
#pragma once

#include "math/backend.h"

/* Whether zero_math.threads counts: the build has OpenMP. */
bool zero_cpu_has_threads(void);

/* Each of a rank's threads calls this once, the caller as number 0. They are those that
 * compute later, as long as their number stays. */
void zero_cpu_each_thread(int threads, void (*call)(int index, void *arg), void *arg);

/* Has `work` done here, while the other threads of this math wait for its calls, in a way
 * that takes no core from others (team.h). To be put around many calls. */
void zero_cpu_hold_threads(zero_math *math, void (*work)(void *arg), void *arg);
