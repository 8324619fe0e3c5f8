/* status.h - how every fallible function of the library reports failure.
 *
 * The library never prints and never exits: it returns a status and leaves one message,
 * which names what was expected, what was found, where, and what to do. */
#pragma once

typedef enum {
    ZERO_OK = 0,
    ZERO_ERR_INVALID,     /* the caller, or the user, broke a documented condition */
    ZERO_ERR_UNSUPPORTED, /* a valid wish that this build cannot fulfil */
    ZERO_ERR_ENV,         /* launcher, machine or device do not allow it */
    ZERO_ERR_NOMEM,       /* host or device memory exhausted */
    ZERO_ERR_IO,          /* a file could not be read or written */
    ZERO_ERR_FORMAT,      /* a file was read, but its content is not what it must be */
    ZERO_ERR_MPI,         /* an MPI call failed */
    ZERO_ERR_DIVERGED,    /* training produced a value that is not finite */
    ZERO_ERR_STALLED, /* the watchdog: ranks wait and nothing moves; end all ranks at once */
    ZERO_STOPPED, /* no failure: what was asked to stop has stopped, and can go on later */
} zero_status;

#define ZERO_NODISCARD __attribute__((warn_unused_result))

/* The text of this thread's last failure, without its place; valid until the next one. One
 * line without control characters, whatever names it shows. */
const char *zero_last_error(void);
/* "file.c:42" of this thread's last failure, for bug reports and debug output. */
const char *zero_last_error_place(void);

/* What the program ends with (README, "Exit codes"): 2 usage, 3 environment, 4 data, 75
 * stopped on request, 86 watchdog, 1 else. */
int zero_exit_code(zero_status status);
