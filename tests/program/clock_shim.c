/* clock_shim.c - preloaded by trace.sh: the monotonic clock of another machine.
 *
 *     CLOCK_FROM    the first rank that has it; the ranks after it have it, too
 *     CLOCK_AHEAD   seconds by which it is ahead
 *     CLOCK_DRIFT   parts per million by which it is faster */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>

typedef int clock_function(clockid_t clock, struct timespec *time);

static double number(const char *name, double absent)
{
    const char *text = getenv(name);
    return text ? strtod(text, NULL) : absent;
}

/* Rank 0 has the machine's own clock. */
static int is_other_machine(void)
{
    double rank = number("OMPI_COMM_WORLD_RANK", number("PMI_RANK", 0.0));
    return rank >= number("CLOCK_FROM", 1e9);
}

int clock_gettime(clockid_t clock, struct timespec *time)
{
    static clock_function *real;
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, time);
    if (result != 0 || clock != CLOCK_MONOTONIC || !is_other_machine()) return result;
    double shown = (double)time->tv_sec + 1e-9 * (double)time->tv_nsec;
    double more = number("CLOCK_AHEAD", 0.0) + 1e-6 * number("CLOCK_DRIFT", 0.0) * shown;
    long long nano = time->tv_nsec + (long long)(1e9 * more);
    time->tv_sec += (time_t)(nano / 1000000000);
    time->tv_nsec = (long)(nano % 1000000000);
    return 0;
}
