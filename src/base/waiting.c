#include "base/waiting.h"

#include <pthread.h>

#include "base/clock.h"
#include "base/legible.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list and its members */
static zero_waiting *newest;

void zero_waiting_begin(zero_waiting *w, const char *whom, const char *what,
                        double patience)
{
    *w = (zero_waiting){.whom = whom,
                        .what = what,
                        .begun = zero_clock_seconds(),
                        .patience = patience,
                        .at = &newest};
    pthread_mutex_lock(&lock);
    w->next = newest;
    if (newest) newest->at = &w->next;
    newest = w;
    pthread_mutex_unlock(&lock);
}

void zero_waiting_end(zero_waiting *w)
{
    pthread_mutex_lock(&lock);
    *w->at = w->next;
    if (w->next) w->next->at = w->at;
    pthread_mutex_unlock(&lock);
}

double zero_waiting_look(double passed, double limit, char *text, size_t size)
{
    const zero_waiting *late = NULL;
    pthread_mutex_lock(&lock);
    for (zero_waiting *c = newest; c; c = c->next) {
        if (c->is_seen) c->waited += passed;
        c->is_seen = true;
        if (c->waited >= limit * c->patience) late = c; /* the oldest is the last */
    }
    double seconds = late ? late->waited : 0.0;
    if (late) snprintf(text, size, "%s: cannot be %s", ZERO_SHOWN(late->whom), late->what);
    pthread_mutex_unlock(&lock);
    return seconds;
}

double zero_waiting_oldest(void)
{
    double oldest = 0.0, now = zero_clock_seconds();
    pthread_mutex_lock(&lock);
    for (const zero_waiting *c = newest; c; c = c->next)
        if (now - c->begun > oldest) oldest = now - c->begun;
    pthread_mutex_unlock(&lock);
    return oldest;
}
