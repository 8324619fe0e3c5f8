#include "comm/thread.h"

#include <sched.h>
#include <time.h>

#include "base/clock.h"
#include "base/helper_thread.h"
#include "comm/family.h"
#include "comm/flight.h"
#include "comm/mpi_error.h"

#define ANSWER_EVERY  0.1  /* seconds; while nothing is in flight, but a watchdog may ask */
#define RECENT        0.05 /* seconds after the last poll that found something in flight */
#define RECENT_PERIOD 1e-3 /* seconds; a wake-up costs 20 us of a busy core */
#define WORKS_PERIOD  2e-4 /* seconds */

struct zero_thread {
    zero_comm *comm; /* borrowed; the whole of its family */
    double period;
    pthread_t id;
    pthread_mutex_t lock; /* of the group, and of the fields below */
    pthread_cond_t changed;
    bool is_stopping;
    bool is_asleep;     /* for longer than RECENT_PERIOD */
    atomic_int n_wait;  /* threads that wait, and poll */
    atomic_int n_begin; /* threads that want the lock for more than a poll */
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
    if (!t) return;
    atomic_fetch_add(&t->n_begin, 1);
    pthread_mutex_lock(&t->lock);
    atomic_fetch_sub(&t->n_begin, 1);
}

bool zero_thread_try_lock(const zero_comm *comm)
{
    struct zero_thread *t = thread_of(comm);
    if (!t) return true;
    if (atomic_load(&t->n_begin) > 0) sched_yield();
    return pthread_mutex_trylock(&t->lock) == 0;
}

void zero_thread_unlock(const zero_comm *comm)
{
    struct zero_thread *t = thread_of(comm);
    if (t) pthread_mutex_unlock(&t->lock);
}

void zero_thread_wake(const zero_comm *comm)
{
    struct zero_thread *t = thread_of(comm);
    if (t && t->is_asleep) pthread_cond_signal(&t->changed);
}

void zero_thread_waits(const zero_comm *comm, int one)
{
    struct zero_thread *t = thread_of(comm);
    if (t) atomic_fetch_add(&t->n_wait, one);
}

void zero_thread_fail(const zero_comm *comm, zero_status st)
{
    struct zero_thread *t = thread_of(comm);
    if (t && t->failure.status == ZERO_OK) t->failure = zero_failure_keep(st);
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
    double last = 0.0; /* when something was in flight */
    pthread_mutex_lock(&t->lock);
    while (!t->is_stopping && t->failure.status == ZERO_OK) {
        bool is_active = zero_family_is_active(t->comm);
        double now = zero_clock_seconds();
        if (is_active) last = now;
        t->is_asleep = now - last > RECENT;
        if (is_active && atomic_load(&t->n_wait) == 0)
            sleep_for(t, t->period);
        else if (!t->is_asleep)
            sleep_for(t, fmax(t->period, RECENT_PERIOD));
        else if (t->comm->watch)
            sleep_for(t, ANSWER_EVERY);
        else
            pthread_cond_wait(&t->changed, &t->lock);
        if (t->is_stopping || atomic_load(&t->n_wait) > 0) continue;
        zero_status st = zero_flight_poll(t->comm, NULL);
        if (st != ZERO_OK) zero_thread_fail(t->comm, st);
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

static zero_status start(zero_comm *comm, double period, int least)
{
    int level = MPI_THREAD_SINGLE;
    ZERO_TRY(zero_mpi(MPI_Query_thread(&level)));
    ZERO_FAIL_IF(level < least, ZERO_ERR_UNSUPPORTED,
                 "a progress thread needs MPI at thread level %s (%d); it runs at level %d",
                 least == MPI_THREAD_MULTIPLE ? "MULTIPLE" : "SERIALIZED", least, level);
    struct zero_thread *t;
    ZERO_TRY(zero_new(&t, 1, "a progress thread"));
    t->comm = comm;
    t->period = period;
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

zero_status zero_progress_start(zero_comm *comm, double period_seconds)
{
    ZERO_TRY(zero_family_check_whole(comm, "a progress thread"));
    if (period_seconds > 0.0 && period_seconds <= 1.0 && !comm->thread)
        return start(comm, period_seconds, MPI_THREAD_MULTIPLE);
    return zero_fail(ZERO_ERR_INVALID,
                     "a progress thread with a period of %g s: expected more than 0, at "
                     "most 1, and one thread per group",
                     period_seconds);
}

zero_status zero_thread_need(zero_comm *comm)
{
    zero_comm *whole = zero_family_whole(comm);
    zero_status st = ZERO_OK;
    pthread_mutex_lock(&whole->starting);
    if (!whole->thread) st = start(whole, WORKS_PERIOD, MPI_THREAD_SERIALIZED);
    pthread_mutex_unlock(&whole->starting);
    return st;
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
