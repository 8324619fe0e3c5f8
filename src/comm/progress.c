#include "comm/progress.h"

#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>
#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "base/fail.h"
#include "comm/collective.h"

#define ANSWER_EVERY 0.1 /* seconds; where a watchdog may ask, and nothing is in flight */

struct zero_progress {
    zero_comm *comm; /* borrowed */
    double period;
    pthread_t thread;
    pthread_mutex_t lock; /* of the group, and of what follows */
    pthread_cond_t changed;
    bool is_stopping;
    zero_status failure;
    char text[1024];
};

void zero_progress_take_lock(const zero_comm *comm)
{
    pthread_mutex_lock(&comm->thread->lock);
}

void zero_progress_release_lock(const zero_comm *comm)
{
    pthread_mutex_unlock(&comm->thread->lock);
}

void zero_progress_wake_thread(const zero_comm *comm)
{
    pthread_cond_signal(&comm->thread->changed);
}

zero_status zero_progress_pass_failure(const zero_comm *comm)
{
    const struct zero_progress *p = comm->thread;
    if (p->failure == ZERO_OK) return ZERO_OK;
    return zero_fail(p->failure, "%s", p->text);
}

/* ---- the thread ---- */

static void sleep_for(struct zero_progress *p, double seconds)
{
    double until = zero_clock_seconds() + seconds; /* on the clock that `changed` has */
    struct timespec t = {.tv_sec = (time_t)until,
                         .tv_nsec = (long)(1e9 * (until - floor(until)))};
    pthread_cond_timedwait(&p->changed, &p->lock, &t);
}

static void rest(struct zero_progress *p)
{
    if (p->comm->active)
        sleep_for(p, p->period);
    else if (p->comm->watch)
        sleep_for(p, ANSWER_EVERY);
    else
        pthread_cond_wait(&p->changed, &p->lock);
}

static void *run(void *arg)
{
    struct zero_progress *p = arg;
    pthread_mutex_lock(&p->lock);
    while (!p->is_stopping && p->failure == ZERO_OK) {
        rest(p);
        zero_status st = zero_collective_poll(p->comm);
        if (st != ZERO_OK) snprintf(p->text, sizeof p->text, "%s", zero_last_error());
        p->failure = st;
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* ---- start and stop ---- */

static zero_status check(const zero_comm *comm, double period)
{
    int level = MPI_THREAD_SINGLE;
    if (!(period > 0.0 && period <= 1.0) || comm->thread)
        return zero_fail(
            ZERO_ERR_INVALID,
            "a progress thread with a period of %g s: expected more than 0, at "
            "most 1, and one thread per group",
            period);
    ZERO_TRY(zero_comm_check(MPI_Query_thread(&level), "MPI_Query_thread"));
    if (level == MPI_THREAD_MULTIPLE) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_UNSUPPORTED,
        "a progress thread needs MPI at thread level MULTIPLE (%d); it runs at "
        "level %d",
        MPI_THREAD_MULTIPLE, level);
}

static void init_lock(struct zero_progress *p)
{
    pthread_mutexattr_t mutex;
    pthread_condattr_t cond;
    pthread_mutexattr_init(&mutex);
    pthread_mutexattr_settype(&mutex, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&p->lock, &mutex);
    pthread_mutexattr_destroy(&mutex);
    pthread_condattr_init(&cond);
    pthread_condattr_setclock(&cond, CLOCK_MONOTONIC);
    pthread_cond_init(&p->changed, &cond);
    pthread_condattr_destroy(&cond);
}

static void release(struct zero_progress *p)
{
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

/* Signals are the program's: its own thread receives them. */
static int create(struct zero_progress *p)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&p->thread, NULL, run, p);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

zero_status zero_progress_start(zero_comm *comm, double period_seconds)
{
    ZERO_TRY(check(comm, period_seconds));
    struct zero_progress *p = calloc(1, sizeof *p);
    if (!p) return zero_fail(ZERO_ERR_NOMEM, "no memory for a progress thread");
    p->comm = comm;
    p->period = period_seconds;
    init_lock(p);
    comm->thread = p;
    int error = create(p);
    if (error == 0) return ZERO_OK;
    comm->thread = NULL;
    release(p);
    return zero_fail(ZERO_ERR_ENV, "no progress thread could be started: %s",
                     strerror(error));
}

void zero_progress_stop(zero_comm *comm)
{
    struct zero_progress *p = comm->thread;
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    p->is_stopping = true;
    pthread_cond_signal(&p->changed);
    pthread_mutex_unlock(&p->lock);
    pthread_join(p->thread, NULL);
    comm->thread = NULL;
    release(p);
}
