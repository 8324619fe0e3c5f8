#include "cli/requests.h"

#include <signal.h>
#include <time.h>

static void fill(sigset_t *set, bool can_save)
{
    sigemptyset(set);
    sigaddset(set, SIGUSR1);
    sigaddset(set, SIGUSR2);
    if (can_save) sigaddset(set, SIGTERM);
}

void zero_requests_expect(bool can_save)
{
    sigset_t set;
    fill(&set, can_save);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
}

/* Of SIGTERM only what is blocked can be pending, so it need not be known here. */
zero_request zero_requests_take(void)
{
    const struct timespec at_once = {0, 0};
    zero_request highest = ZERO_REQUEST_NONE;
    sigset_t set;
    fill(&set, true);
    for (int signal; (signal = sigtimedwait(&set, NULL, &at_once)) > 0;) {
        zero_request r = signal == SIGUSR1 ? ZERO_REQUEST_SAVE : ZERO_REQUEST_STOP;
        if (r > highest) highest = r;
    }
    return highest;
}
