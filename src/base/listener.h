/* listener.h - hears what a function has to say though it does not fail: that it waits, or
 * that something stays. The library prints nothing; the program's function does. */
#pragma once

typedef struct {
    void (*tell)(void *arg, const char *text); /* one line; NULL: nobody listens */
    void *arg;
} zero_listener;

/* Formats one line, cut to the length of an error, and tells it. */
void zero_listener_tell(const zero_listener *listener, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
