/* helper_thread.h - threads beside the program's own. Signals stay with that one. */
#pragma once

#include <stddef.h>

#include <pthread.h>

/* `stack` bytes, or 0 for the usual number. Returns 0 or the system's error. */
int zero_helper_thread_start(pthread_t *thread, size_t stack, void *(*run)(void *),
                             void *arg);
