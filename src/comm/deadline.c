#include "comm/deadline.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>

#include <mpi.h>
#include <unistd.h>

#include "base/helper_thread.h"
#include "base/legible.h"
#include "base/waiting.h"
#include "comm/mpi_error.h"

#define LONGEST_PAUSE 1.0  /* seconds between two looks, at most */
#define LEAST_PAUSE   1e-3 /* and at least */
#define OTHERS        8.0  /* seconds in which other ranks have spoken */
#define LOOKS         20   /* until the limit, at least */
#define RANK_APART    (ZERO_DEADLINE_APART / 2.0)
#define STACK         ((size_t)1 << 19) /* bytes; MPI_Abort() needs some */
#define TEXT          2048

/* ---- the end ---- */

__attribute__((format(printf, 2, 3))) static void say(const zero_deadline *d,
                                                      const char *fmt, ...)
{
    char text[TEXT], rank[32] = "", line[TEXT + 64];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (d->rank > 0) zero_print(rank, "rank %d: ", d->rank);
    const char *before = isatty(STDERR_FILENO) ? ZERO_LINE_ERASED : ""; /* of progress */
    int n = zero_print(line, "%szero: %s%s\n", before, rank, text);
    for (ssize_t at = 0, done; at < n; at += done)
        if ((done = write(STDERR_FILENO, line + at, (size_t)(n - at))) <= 0) return;
}

static void leave(const zero_deadline *d)
{
    char number[32] = "";
    if (d->number > 0) zero_print(number, " %" PRId64, d->number);
    if (d->work)
        say(d,
            "%s%s has not moved for %.3g s, longer than --watchdog allows: threads wait "
            "for each other, or a computation does not end; try --threads 1, or give a "
            "longer --watchdog",
            d->work, number, d->waited);
    else if (d->phase)
        say(d,
            "%s has taken longer than the %g s that --watchdog allows: another rank is "
            "stopped or dead, or the network between the nodes carries nothing; look "
            "there, or give a longer --watchdog",
            d->phase, d->seconds);
    _exit(d->code);
}

static void leave_outside(const zero_deadline *d, const char *what, double seconds)
{
    say(d,
        "%s: no answer for %.3g s, longer than --watchdog allows: a disk, file server or "
        "device has stopped; look there, or give a longer --watchdog",
        what, seconds);
    /* The kernel takes a process away from a launcher's sight only once all its threads
     * have left their calls. If MPI_Abort() hangs, too, a timer ends what it can. */
    if (d->is_launched && zero_mpi_is_up()) {
        zero_deadline_until_exit(d);
        MPI_Abort(MPI_COMM_WORLD, d->code);
    }
    _exit(d->code);
}

/* ---- looks ---- */

/* The clock of some MPIs is for their ranks alone, so this thread only counts its
 * pauses. */
static void *watch(void *arg)
{
    zero_deadline *d = arg;
    struct pollfd closing = {.fd = d->closing[0], .events = POLLIN};
    for (double pause = 0.0; poll(&closing, 1, (int)(1e3 * pause)) <= 0;) {
        pthread_mutex_lock(&d->lock);
        /* Ranks that wait for one that computes tell more than it can itself, so they speak
         * first. One that waits for a file knows more, and speaks before the others do
         * (watch.c: a quarter of the limit). */
        double turn = fmin(d->rank, 2.0), limit = d->seconds + RANK_APART * turn;
        double file_limit = d->seconds + fmin(RANK_APART, d->seconds / 16.0) * turn;
        unsigned moves = atomic_load_explicit(&d->moves, memory_order_relaxed);
        char what[TEXT];
        double late = zero_waiting_look(pause, file_limit, what, sizeof what);
        if (late > 0.0) leave_outside(d, what, late);
        d->waited = moves == d->seen ? d->waited + pause : 0.0;
        d->seen = moves;
        if (d->work && d->is_launched) limit += fmin(OTHERS, d->seconds);
        if (d->counts && d->waited >= limit) leave(d);
        pause = fmax(fmin(LONGEST_PAUSE, d->seconds / LOOKS), LEAST_PAUSE);
        pthread_mutex_unlock(&d->lock);
    }
    return NULL;
}

/* ---- begin and end ---- */

static void count(zero_deadline *d, bool counts, const char *phase, const char *work,
                  int64_t number)
{
    if (!d || !d->is_open) return;
    pthread_mutex_lock(&d->lock);
    d->counts = counts;
    d->phase = phase;
    d->work = work;
    d->number = number;
    pthread_mutex_unlock(&d->lock);
    zero_deadline_move(d);
}

void zero_deadline_begin(zero_deadline *d, const char *phase)
{
    count(d, true, phase, NULL, 0);
}

void zero_deadline_begin_work(zero_deadline *d, const char *work, int64_t number)
{
    count(d, true, NULL, work, number);
}

void zero_deadline_end(zero_deadline *d)
{
    count(d, false, NULL, NULL, 0);
}

void zero_deadline_move(zero_deadline *d)
{
    if (d) atomic_fetch_add_explicit(&d->moves, 1, memory_order_relaxed);
}

void zero_deadline_set_limit(zero_deadline *d, double seconds)
{
    if (!d->is_open) return;
    pthread_mutex_lock(&d->lock);
    d->seconds = seconds;
    pthread_mutex_unlock(&d->lock);
}

/* Runs in a signal handler, which the timer reaches in a stopped process, too. */
static void wake(ZERO_UNUSED int signal, siginfo_t *info, ZERO_UNUSED void *context)
{
    static const char text[] =
        "zero: a rank has not ended within the time that --watchdog allows: it was "
        "stopped, or hangs after the end of MPI; its results are complete\n";
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

/* ---- opening and closing ---- */

static void close_pipe(const zero_deadline *d)
{
    close(d->closing[0]);
    close(d->closing[1]);
}

static zero_status start_thread(zero_deadline *d)
{
    int error = pipe(d->closing) == 0 ? 0 : errno;
    if (error == 0) {
        fcntl(d->closing[0], F_SETFD, FD_CLOEXEC);
        fcntl(d->closing[1], F_SETFD, FD_CLOEXEC);
        pthread_mutex_init(&d->lock, NULL);
        d->is_open = true;
        error = zero_helper_thread_start(&d->thread, STACK, watch, d);
        if (error == 0) return ZERO_OK;
        d->is_open = false;
        pthread_mutex_destroy(&d->lock);
        close_pipe(d);
    }
    return zero_fail(ZERO_ERR_ENV,
                     "the watchdog has no thread (%s): allow more processes (ulimit -u), "
                     "memory (ulimit -v) or files (ulimit -n), or give --watchdog 0",
                     strerror(error));
}

zero_status zero_deadline_open(zero_deadline *d, double seconds, bool is_launched, int rank,
                               int code)
{
    *d = (zero_deadline){
        .is_launched = is_launched, .rank = rank, .code = code, .seconds = seconds};
    if (!(seconds > 0.0)) return ZERO_OK;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL,
                             .sigev_signo = SIGCONT,
                             .sigev_value.sival_int = d->code};
    ZERO_FAIL_IF(timer_create(CLOCK_MONOTONIC, &event, &d->last) != 0, ZERO_ERR_ENV,
                 "the watchdog has no timer (timer_create: %s): allow more pending signals "
                 "(ulimit -i), or give --watchdog 0",
                 strerror(errno));
    zero_status st = start_thread(d);
    if (st != ZERO_OK) timer_delete(d->last);
    return st;
}

void zero_deadline_close(zero_deadline *d)
{
    if (!d->is_open) return;
    if (write(d->closing[1], "", 1) == 1) pthread_join(d->thread, NULL);
    close_pipe(d);
    pthread_mutex_destroy(&d->lock);
    d->is_open = false;
}
