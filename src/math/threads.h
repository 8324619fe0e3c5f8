/* threads.h - the threads that compute in a rank (team.h), for those who start it. */
#pragma once

#include <stdbool.h>

/* Whether zero_math.threads counts: the build has OpenMP. */
bool zero_cpu_has_threads(void);

/* Each of a rank's threads calls this once, the caller as number 0. They are those that compute
 * later, as long as their number stays. */
void zero_cpu_each_thread(int threads, void (*call)(int index, void *arg), void *arg);
