/* status.h - how every function that can fail reports it.
 *
 * The library never prints and never exits. A function returns a status and leaves one
 * message: what was expected, what was found, where, and what to do. */
#pragma once

#include "zero/api.h"

ZERO_API_BEGIN

/* Who does not look at a status is warned, by compilers that know it of a type. */
#if defined(__clang__)
#define ZERO_LOOKED_AT __attribute__((warn_unused_result))
#elif defined(__has_c_attribute)
#define ZERO_LOOKED_AT [[nodiscard]]
#else
#define ZERO_LOOKED_AT
#endif

__extension__ typedef enum ZERO_LOOKED_AT {
    ZERO_OK = 0,
    ZERO_ERR_INVALID,     /* the caller, or the user, broke a documented condition */
    ZERO_ERR_UNSUPPORTED, /* a valid request that this build cannot fulfil */
    ZERO_ERR_ENV,         /* launcher, machine or device do not allow it */
    ZERO_ERR_NOMEM,       /* host or device memory is exhausted */
    ZERO_ERR_IO,          /* a file could not be read or written */
    ZERO_ERR_FORMAT,      /* a file was read, but its contents are wrong */
    ZERO_ERR_MPI,         /* an MPI call failed */
    ZERO_ERR_DIVERGED,    /* training produced a value that is not finite */
    ZERO_ERR_STALLED,     /* watchdog: nothing moves any more; end all ranks at once */
    ZERO_STOPPED,         /* not a failure: stopped on request, can be resumed */
    ZERO_ERR_DIFFERENT,   /* a result differs from the one that was expected */
    ZERO_ERR_CORRUPTED,   /* a bit of the model's state has changed in a rank's memory */
    ZERO_ERR_INTERNAL,    /* a bug of ours, found by a device: a kernel failed there */
} zero_status;

/* The message of this thread's last failure, valid until the next one. One line of UTF-8
 * without control and invisible characters, whatever names it quotes: those are shown as
 * \u{202E}. */
const char *zero_last_error(void);
/* The place of the last failure, for bug reports: "file.c:42". */
const char *zero_last_error_place(void);

/* The exit code for a status: 2 usage, 3 environment, 4 data, 75 stopped on request, 86
 * watchdog, 1 anything else. */
int zero_exit_code(zero_status status);

ZERO_API_END
