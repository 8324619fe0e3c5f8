#include "cli/requests.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/legible.h"

static void fill(sigset_t *set, bool can_save)
{
    sigemptyset(set);
    sigaddset(set, SIGUSR1);
    sigaddset(set, SIGUSR2);
    if (can_save) sigaddset(set, SIGTERM);
}

/* Redirects a signal to the main thread (tid = pid), where it stays pending. */
static void pass_on(int signal)
{
    int error = errno;
    syscall(SYS_tgkill, getpid(), getpid(), signal);
    errno = error;
}

/* Threads that libraries started when they were loaded, as OpenBLAS does, block nothing: a
 * signal sent to the process reaches one of them and by default ends the process. */
static void handle(const sigset_t *set)
{
    const int signals[] = {SIGUSR1, SIGUSR2, SIGTERM, SIGINT, SIGHUP};
    struct sigaction action = {.sa_handler = pass_on, .sa_flags = SA_RESTART};
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        if (sigismember(set, signals[i]) == 1) sigaction(signals[i], &action, NULL);
}

/* Someone waits at a terminal, so the request is answered at once. */
static void stop(int signal)
{
    static const char text[] = "zero: note: the run saves and stops after this step; press "
                               "Ctrl-C again to end it at once\n";
    int error = errno;
    (void)signal;
    if (write(STDERR_FILENO, text, sizeof text - 1) >= 0) errno = error;
    pass_on(SIGUSR2);
}

/* The second SIGINT ends the process. */
static void handle_interrupt(void)
{
    struct sigaction action = {.sa_handler = stop,
                               .sa_flags = (int)(SA_RESTART | SA_RESETHAND)};
    struct sigaction before;
    sigfillset(&action.sa_mask);
    sigaction(SIGINT, NULL, &before);
    if (before.sa_handler != SIG_IGN) sigaction(SIGINT, &action, NULL); /* as under nohup */
}

/* The default action, which SA_RESETHAND has restored, follows when this handler returns. A terminal
 * that has hung up takes no text, and SIGHUP ends the process all the same. */
static void end_on_clean_line(int signal)
{
    (void)!write(STDERR_FILENO, ZERO_LINE_ERASED, sizeof ZERO_LINE_ERASED - 1);
    raise(signal);
}

static void end_cleanly(int signal)
{
    struct sigaction action = {.sa_handler = end_on_clean_line,
                               .sa_flags = (int)SA_RESETHAND};
    sigaction(signal, &action, NULL);
}

static void stop_on_clean_line(int signal)
{
    int error = errno;
    if (write(STDERR_FILENO, ZERO_LINE_ERASED, sizeof ZERO_LINE_ERASED - 1) >= 0)
        errno = error;
    end_cleanly(signal);
    stop(signal);
}

void zero_requests_keep_line_clean(void)
{
    const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct sigaction now;
        if (sigaction(signals[i], NULL, &now) != 0) continue;
        if (now.sa_handler == SIG_DFL) end_cleanly(signals[i]);
        if (now.sa_handler != stop) continue;
        now.sa_handler = stop_on_clean_line;
        now.sa_flags = (int)SA_RESTART;
        sigaction(signals[i], &now, NULL);
    }
}

void zero_requests_hold(const sigset_t *set)
{
    /* The main thread blocks first: the handler is for the other threads. */
    pthread_sigmask(SIG_BLOCK, set, NULL);
    handle(set);
}

void zero_requests_expect(bool can_save)
{
    sigset_t set;
    fill(&set, can_save);
    zero_requests_hold(&set);
    if (can_save) handle_interrupt();
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
