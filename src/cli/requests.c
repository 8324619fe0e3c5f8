#include "cli/requests.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/ending.h"
#include "base/legible.h"
#include "base/number.h"

bool zero_requests_ignore(int signal)
{
    struct sigaction now;
    return sigaction(signal, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

static void fill(sigset_t *set, bool can_save)
{
    sigemptyset(set);
    sigaddset(set, SIGUSR1);
    sigaddset(set, SIGUSR2);
    if (can_save) sigaddset(set, SIGTERM);
    if (can_save && !zero_requests_ignore(SIGHUP)) sigaddset(set, SIGHUP);
}

/* Redirects a signal to the main thread (tid = pid), where it stays pending. */
static void pass_on(int signal)
{
    int error = errno;
    syscall(SYS_tgkill, getpid(), getpid(), signal);
    errno = error;
}

static void set_handler(int signal, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    sigfillset(&action.sa_mask);
    sigaction(signal, &action, NULL);
}

/* Someone waits at a terminal, so the request is answered at once. The second SIGINT ends
 * the process. */
static void stop(int signal)
{
    static const char text[] = "zero: note: the run saves and stops after this step; press "
                               "Ctrl-C again to end it at once\n";
    int error = errno;
    if (write(STDERR_FILENO, text, sizeof text - 1) >= 0) errno = error;
    zero_end_on(signal);
    pass_on(SIGUSR2);
}

/* A terminal that has hung up takes no text, and the signal ends the process all the
 * same. */
static void end_on_clean_line(int signal)
{
    (void)!write(STDERR_FILENO, ZERO_LINE_ERASED, sizeof ZERO_LINE_ERASED - 1);
    zero_end_by(signal);
}

static void stop_on_clean_line(int signal)
{
    int error = errno;
    if (write(STDERR_FILENO, ZERO_LINE_ERASED, sizeof ZERO_LINE_ERASED - 1) >= 0)
        errno = error;
    stop(signal);
    set_handler(signal, end_on_clean_line);
}

void zero_requests_keep_line_clean(void)
{
    const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (int i = 0; i < ZERO_COUNT(signals); i++) {
        struct sigaction now;
        if (sigaction(signals[i], NULL, &now) != 0) continue;
        if (now.sa_handler == stop) set_handler(signals[i], stop_on_clean_line);
        if (zero_ends_on(signals[i])) set_handler(signals[i], end_on_clean_line);
    }
}

void zero_requests_hold(const sigset_t *set)
{
    /* The main thread blocks first: the handler is for the other threads. */
    pthread_sigmask(SIG_BLOCK, set, NULL);
    /* Threads that libraries started when they were loaded, as OpenBLAS does, block
     * nothing: a signal sent to the process reaches one of them and by default ends the
     * process. */
    const int signals[] = {SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGHUP};
    for (int i = 0; i < ZERO_COUNT(signals); i++)
        if (sigismember(set, signals[i]) == 1) set_handler(signals[i], pass_on);
}

void zero_requests_expect(bool can_save)
{
    sigset_t set;
    fill(&set, can_save);
    zero_requests_hold(&set);
    if (!can_save) return;
    /* Shells ignore SIGINT for what they start in the background. */
    if (!zero_requests_ignore(SIGINT)) set_handler(SIGINT, stop);
    signal(SIGPIPE, SIG_IGN); /* output.h notices, and the run saves */
}

/* SIGTERM can be pending only if we blocked it, so it need not be known here. */
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
