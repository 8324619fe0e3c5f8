#include "comm/sigterm.h"

#include <signal.h>

#include "base/clock.h"
#include "base/ending.h"
#include "base/fail.h"

#define LOOK_EVERY   0.1 /* seconds */
#define LONGEST_LOOK 0.5 /* seconds that the time between two looks counts, at most */
#define PATIENCE     3.0 /* seconds */

static const int signals[] = {SIGTERM, SIGHUP};

void zero_sigterm_turn(zero_sigterm *s, int64_t advanced, double patience)
{
    double now = zero_clock_seconds();
    double passed = s->last_look > 0.0 ? now - s->last_look : LOOK_EVERY;
    if (passed < LOOK_EVERY) return;
    /* They can be pending only while they are blocked. */
    sigset_t set;
    bool is_pending = sigpending(&set) == 0 &&
                      (sigismember(&set, SIGTERM) == 1 || sigismember(&set, SIGHUP) == 1);
    bool waits = advanced == s->advanced && is_pending;
    s->pending = waits ? s->pending + fmin(passed, LONGEST_LOOK) : 0.0;
    s->last_look = now;
    s->advanced = advanced;
    if (s->pending >= PATIENCE * fmax(patience, 1.0)) zero_sigterm_accept();
}

void zero_sigterm_accept(void)
{
    sigset_t now, set;
    sigemptyset(&set);
    pthread_sigmask(SIG_BLOCK, NULL, &now);
    for (int i = 0; i < 2; i++) {
        if (sigismember(&now, signals[i]) != 1) continue;
        sigaddset(&set, signals[i]);
        zero_end_on(signals[i]);
    }
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}
