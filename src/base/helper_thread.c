#include "base/helper_thread.h"

#include <signal.h>

int zero_helper_thread_start(pthread_t *thread, size_t stack, void *(*run)(void *),
                             void *arg)
{
    sigset_t all, before;
    pthread_attr_t how;
    int error = pthread_attr_init(&how);
    if (error) return error;
    if (stack > 0) error = pthread_attr_setstacksize(&how, stack);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (!error) error = pthread_create(thread, &how, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&how);
    return error;
}
