/* system_call.h - system calls that fail, for the files of this folder. */
#pragma once

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/fail.h"

/* Repeats a call that returns -1 as long as only signals get in its way. */
#define ZERO_AGAIN(result, call) \
    do { \
        (result) = (call); \
    } while ((result) < 0 && errno == EINTR)

/* "PATH: cannot be opened: No such file or directory", with errno's reason. */
#define zero_cannot(code, path, what) \
    zero_fail((code), "%s: cannot be %s: %s", (path), (what), strerror(errno))

/* The same for an open(). If this process or the machine has no descriptors or memory left, the
 * file is not to blame, and another one would fail, too. */
#define zero_cannot_open(path, what) zero_cannot(zero_open_status(), (path), (what))

static inline zero_status zero_open_status(void)
{
    bool is_exhausted = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
    return is_exhausted ? ZERO_ERR_ENV : ZERO_ERR_IO;
}

/* Both are of one file, whatever its names. */
static inline bool zero_is_one_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}
