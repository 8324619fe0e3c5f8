#include "base/file_call.h"

#include <stdio.h>

#include <pthread.h>

#include "base/clock.h"
#include "base/legible.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list and its members */
static zero_file_call *newest;

void zero_file_call_begin(zero_file_call *call, const char *path, const char *what,
                          double patience)
{
    *call = (zero_file_call){.path = path,
                             .what = what,
                             .begun = zero_clock_seconds(),
                             .patience = patience,
                             .at = &newest};
    pthread_mutex_lock(&lock);
    call->next = newest;
    if (newest) newest->at = &call->next;
    newest = call;
    pthread_mutex_unlock(&lock);
}

void zero_file_call_end(zero_file_call *call)
{
    pthread_mutex_lock(&lock);
    *call->at = call->next;
    if (call->next) call->next->at = call->at;
    pthread_mutex_unlock(&lock);
}

double zero_file_calls_look(double passed, double limit, char *text, size_t size)
{
    const zero_file_call *late = NULL;
    pthread_mutex_lock(&lock);
    for (zero_file_call *c = newest; c; c = c->next) {
        if (c->is_seen) c->waited += passed;
        c->is_seen = true;
        if (c->waited >= limit * c->patience) late = c; /* the oldest is the last */
    }
    double seconds = late ? late->waited : 0.0;
    if (late) snprintf(text, size, "%s: cannot be %s", ZERO_SHOWN(late->path), late->what);
    pthread_mutex_unlock(&lock);
    return seconds;
}

double zero_file_calls_oldest(void)
{
    double oldest = 0.0, now = zero_clock_seconds();
    pthread_mutex_lock(&lock);
    for (const zero_file_call *c = newest; c; c = c->next)
        if (now - c->begun > oldest) oldest = now - c->begun;
    pthread_mutex_unlock(&lock);
    return oldest;
}
