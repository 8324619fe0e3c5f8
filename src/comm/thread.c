#include "comm/thread.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/grow.h"
#include "base/helper_thread.h"
#include "comm/family.h"
#include "comm/flight.h"
#include "comm/mpi_error.h"

#define ANSWER_EVERY 0.1 /* seconds; while nothing is in flight, but a watchdog may ask */

struct zero_thread {
    zero_comm *comm; /* borrowed; the whole of its family */
    double period;
    pthread_t id;
    pthread_mutex_t lock; /* of the group, and of the fields below */
    pthread_cond_t changed;
    bool is_stopping;
    zero_failure failure;
};

/* The family's thread, or NULL. */
static struct zero_thread *thread_of(const zero_comm *comm)
{
    return comm->whole ? comm->whole->thread : comm->thread;
}

void zero_thread_lock(const zero_comm *comm)
{
    struct zero_thread *t = thread_of(comm);
    if (t) pthread_mutex_lock(&t->lock);
}

void zero_thread_unlock(const zero_comm *comm)
{
    struct zero_thread *t = thread_of(comm);
    if (t) pthread_mutex_unlock(&t->lock);
}

void zero_thread_wake(const zero_comm *comm)
{
    struct zero_thread *t = thread_of(comm);
    if (t) pthread_cond_signal(&t->changed);
}

zero_status zero_thread_failure(const zero_comm *comm)
{
    const struct zero_thread *t = thread_of(comm);
    return t ? zero_failure_restore(&t->failure) : ZERO_OK;
}

/* ---- the thread ---- */

static void sleep_for(struct zero_thread *t, double seconds)
{
    double until = zero_clock_seconds() + seconds; /* on the clock that `changed` uses */
    struct timespec at = {.tv_sec = (time_t)until,
                          .tv_nsec = (long)(1e9 * (until - floor(until)))};
    pthread_cond_timedwait(&t->changed, &t->lock, &at);
}

static void *run(void *arg)
{
    struct zero_thread *t = arg;
    pthread_mutex_lock(&t->lock);
    while (!t->is_stopping && t->failure.status == ZERO_OK) {
        if (zero_family_is_active(t->comm))
            sleep_for(t, t->period);
        else if (t->comm->watch)
            sleep_for(t, ANSWER_EVERY);
        else
            pthread_cond_wait(&t->changed, &t->lock);
        t->failure = zero_failure_keep(zero_flight_poll(t->comm, NULL));
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* ---- start and stop ---- */

static void release(struct zero_thread *t)
{
    pthread_cond_destroy(&t->changed);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

zero_status zero_progress_start(zero_comm *comm, double period_seconds)
{
    ZERO_TRY(zero_family_check_whole(comm, "a progress thread"));
    if (!(period_seconds > 0.0 && period_seconds <= 1.0) || comm->thread)
        return zero_fail(ZERO_ERR_INVALID,
                         "a progress thread with a period of %g s: expected more than 0, "
                         "at most 1, and one thread per group",
                         period_seconds);
    int level = MPI_THREAD_SINGLE;
    ZERO_TRY(zero_mpi(MPI_Query_thread(&level)));
    if (level != MPI_THREAD_MULTIPLE)
        return zero_fail(ZERO_ERR_UNSUPPORTED,
                         "a progress thread needs MPI at thread level MULTIPLE (%d); it "
                         "runs at level %d",
                         MPI_THREAD_MULTIPLE, level);
    struct zero_thread *t;
    ZERO_TRY(zero_new(&t, 1, "a progress thread"));
    t->comm = comm;
    t->period = period_seconds;
    pthread_mutexattr_t mutex;
    pthread_condattr_t cond;
    pthread_mutexattr_init(&mutex);
    pthread_mutexattr_settype(&mutex, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&t->lock, &mutex);
    pthread_mutexattr_destroy(&mutex);
    pthread_condattr_init(&cond);
    pthread_condattr_setclock(&cond, CLOCK_MONOTONIC);
    pthread_cond_init(&t->changed, &cond);
    pthread_condattr_destroy(&cond);
    comm->thread = t;
    int error = zero_helper_thread_start(&t->id, 0, run, t);
    if (error == 0) return ZERO_OK;
    comm->thread = NULL;
    release(t);
    return zero_fail(ZERO_ERR_ENV, "cannot start a progress thread: %s", strerror(error));
}

void zero_progress_stop(zero_comm *comm)
{
    struct zero_thread *t = comm->thread;
    if (!t) return;
    pthread_mutex_lock(&t->lock);
    t->is_stopping = true;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->id, NULL);
    comm->thread = NULL;
    release(t);
}
