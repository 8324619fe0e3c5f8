#include "base/ending.h"

#include "base/number.h"

#include <signal.h>
#include <unistd.h>

/* A shell gives a process that signal n has ended the exit code 128 + n. */
#define SHELLS 128

static void end(int signal)
{
    _exit(SHELLS + signal);
}

void zero_end_on(int which)
{
    signal(which, getpid() == 1 ? end : SIG_DFL);
}

bool zero_ends_on(int which)
{
    struct sigaction now;
    return sigaction(which, NULL, &now) == 0 &&
           (now.sa_handler == SIG_DFL || now.sa_handler == end);
}

void zero_end_by(int which)
{
    zero_end_on(which);
    raise(which);
}

void zero_ending_begin(void)
{
    const int signals[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    for (int i = 0; i < ZERO_COUNT(signals); i++)
        if (zero_ends_on(signals[i])) zero_end_on(signals[i]);
}
