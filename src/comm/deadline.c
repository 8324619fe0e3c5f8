#include "comm/deadline.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <unistd.h>

#include "base/fail.h"

#define TICKS       10 /* a second */
#define RANKS_APART 15 /* ticks */

/* Runs in a signal handler. */
static void leave(const zero_deadline *d)
{
    size_t at = 0;
    while (at < d->length) {
        ssize_t n = write(STDERR_FILENO, d->text + at, d->length - at);
        if (n <= 0) break;
        at += (size_t)n;
    }
    _exit(d->code);
}

static void tick(int signal, siginfo_t *info, void *context)
{
    (void)signal;
    (void)context;
    zero_deadline *d = info->si_value.sival_ptr;
    if (info->si_code != SI_TIMER || d->left <= 0) return; /* another process sent it */
    d->left = d->left - 1;
    if (d->left == 0) leave(d);
}

/* Returns a real-time signal that nothing handles, or 0. */
static int find_signal(void)
{
    for (int s = SIGRTMAX; s >= SIGRTMIN; s--) {
        struct sigaction now;
        if (sigaction(s, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) &&
            now.sa_handler == SIG_DFL)
            return s;
    }
    return 0;
}

static zero_status fail(const char *what, int error)
{
    return zero_fail(ZERO_ERR_ENV,
                     "the watchdog has no timer (%s: %s): allow more pending signals "
                     "(ulimit -i), or give --watchdog 0",
                     what, strerror(error));
}

static zero_status make_timer(int signal, union sigval value, timer_t *timer)
{
    struct sigevent event = {
        .sigev_notify = SIGEV_SIGNAL, .sigev_signo = signal, .sigev_value = value};
    if (timer_create(CLOCK_MONOTONIC, &event, timer) == 0) return ZERO_OK;
    return fail("timer_create", errno);
}

static zero_status make_timers(zero_deadline *d)
{
    ZERO_TRY(make_timer(d->signal, (union sigval){.sival_ptr = d}, &d->timer));
    zero_status st = make_timer(SIGCONT, (union sigval){.sival_int = d->code}, &d->last);
    if (st != ZERO_OK) timer_delete(d->timer);
    d->is_open = st == ZERO_OK;
    return st;
}

/* The handler needs no memory. Calls that a tick interrupts are restarted where they can
 * be. */
static zero_status take_signal(zero_deadline *d)
{
    struct sigaction action = {.sa_sigaction = tick, .sa_flags = SA_RESTART | SA_SIGINFO};
    sigset_t ours;
    d->signal = find_signal();
    if (d->signal == 0) return fail("all real-time signals have handlers", EBUSY);
    sigfillset(&action.sa_mask);
    if (sigaction(d->signal, &action, &d->before) != 0) return fail("sigaction", errno);
    sigemptyset(&ours);
    sigaddset(&ours, d->signal);
    pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
    return ZERO_OK;
}

zero_status zero_deadline_open(zero_deadline *d, double seconds, int rank, int code)
{
    *d = (zero_deadline){.seconds = seconds, .rank = rank, .code = code};
    if (!(seconds > 0.0)) return ZERO_OK;
    ZERO_TRY(take_signal(d));
    zero_status st = make_timers(d);
    if (st != ZERO_OK) sigaction(d->signal, &d->before, NULL);
    return st;
}

/* ticks = 0: stops. */
static void set_timer(zero_deadline *d, sig_atomic_t ticks)
{
    long pause = ticks > 0 ? 1000000000L / TICKS : 0;
    struct itimerspec every = {.it_interval.tv_nsec = pause, .it_value.tv_nsec = pause};
    d->left = 0; /* a tick on its way does not meet a half-written text */
    timer_settime(d->timer, 0, &every, NULL);
    d->left = ticks;
}

static void write_text(zero_deadline *d, const char *phase)
{
    char rank[32] = "";
    if (d->rank > 0) snprintf(rank, sizeof rank, "rank %d: ", d->rank);
    int n = snprintf(d->text, sizeof d->text,
                     "zero: %s%s has taken longer than the %g s that --watchdog allows: "
                     "another rank is stopped or dead, or the network between the nodes "
                     "carries nothing; look there, or give a longer --watchdog\n",
                     rank, phase, d->seconds);
    d->length = n < 0 ? 0 : (size_t)n < sizeof d->text ? (size_t)n : sizeof d->text - 1;
}

void zero_deadline_begin(zero_deadline *d, const char *phase)
{
    if (!d || !d->is_open) return;
    zero_deadline_end(d);
    d->length = 0;
    if (phase) write_text(d, phase);
    double wait = ceil(d->seconds * TICKS) + RANKS_APART * fmin(d->rank, 2.0);
    set_timer(d, wait < SIG_ATOMIC_MAX ? (sig_atomic_t)wait : SIG_ATOMIC_MAX);
}

void zero_deadline_end(zero_deadline *d)
{
    if (d && d->is_open) set_timer(d, 0);
}

/* Runs in a signal handler, which the timer reaches in a stopped process, too. */
static void wake(int signal, siginfo_t *info, void *context)
{
    static const char text[] = "zero: a rank has not ended within the time that --watchdog "
                               "allows: it was stopped, "
                               "or hangs after the end of MPI; its results are complete\n";
    (void)signal;
    (void)context;
    if (info->si_code != SI_TIMER) return;
    if (write(STDERR_FILENO, text, sizeof text - 1) < 0) _exit(info->si_value.sival_int);
    _exit(info->si_value.sival_int);
}

void zero_deadline_until_exit(const zero_deadline *d)
{
    if (!d || !d->is_open) return;
    struct sigaction action = {.sa_sigaction = wake, .sa_flags = SA_RESTART | SA_SIGINFO};
    struct itimerspec at = {.it_value = {(time_t)ceil(d->seconds) + 1, 500000000L}};
    sigfillset(&action.sa_mask);
    sigaction(SIGCONT, &action, NULL);
    timer_settime(d->last, 0, &at, NULL);
}

/* Ignoring the signal drops a tick that is still pending. */
void zero_deadline_close(zero_deadline *d)
{
    if (!d->is_open) return;
    zero_deadline_end(d);
    signal(d->signal, SIG_IGN);
    timer_delete(d->timer);
    sigaction(d->signal, &d->before, NULL);
    d->is_open = false;
}
