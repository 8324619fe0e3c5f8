/* system_call.h - system calls on files, which may fail or never return, for the files of
 * this folder. */
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include "base/waiting.h"

/* Bytes that one call moves at most. A disk that needs minutes for them has stopped. */
#define ZERO_FILE_CALL_BYTES ((size_t)32 << 20)

/* A statement with a call on the file `path`, which may be "synced". A watchdog sees how
 * long it lasts. */
#define ZERO_WATCHED_FOR(patience, path, what, statement) \
    do { \
        zero_waiting in_flight_; \
        zero_waiting_begin(&in_flight_, (path), (what), (patience)); \
        statement; \
        zero_waiting_end(&in_flight_); \
    } while (0)
#define ZERO_WATCHED(path, what, statement) ZERO_WATCHED_FOR(1.0, path, what, statement)

/* A call that returns -1 on errors. It is repeated as long as only signals get in its
 * way. */
#define ZERO_REPEAT(result, call) \
    do (result) = (call); \
    while ((result) < 0 && errno == EINTR)

/* Both. One on space that is taken or given back, of whole files, may last ten times as
 * long. */
#define ZERO_FILE_CALL(result, path, what, call) \
    ZERO_WATCHED(path, what, ZERO_REPEAT(result, call))
#define ZERO_SPACE_CALL(result, path, what, call) \
    ZERO_WATCHED_FOR(ZERO_FILE_PATIENCE, path, what, ZERO_REPEAT(result, call))

/* "PATH: cannot be opened: No such file or directory", with errno's reason. */
#define zero_cannot(code, path, what) \
    zero_fail((code), "%s: cannot be %s: %s", (path), (what), strerror(errno))

/* The same for an open(). If this process or the machine has no descriptors or memory left,
 * the file is not to blame, and another one would fail, too. */
#define zero_cannot_open(path, what) zero_cannot(zero_open_status(), (path), (what))

static inline zero_status zero_open_status(void)
{
    bool is_exhausted = errno == EMFILE || errno == ENFILE || errno == ENOMEM;
    return is_exhausted ? ZERO_ERR_ENV : ZERO_ERR_IO;
}

/* False, with errno's reason, if a path, an open file or a name in a directory cannot be
 * examined. A path is followed if it is a link, a name is not. */
static inline bool zero_examine(const char *path, struct stat *info)
{
    int failed;
    ZERO_FILE_CALL(failed, path, "examined", stat(path, info));
    return !failed;
}

static inline bool zero_examine_open(int fd, const char *path, struct stat *info)
{
    int failed;
    ZERO_FILE_CALL(failed, path, "examined", fstat(fd, info));
    return !failed;
}

static inline bool zero_examine_in(int directory, const char *name, struct stat *info)
{
    int failed;
    ZERO_FILE_CALL(failed, name, "examined",
                   fstatat(directory, name, info, AT_SYMLINK_NOFOLLOW));
    return !failed;
}

/* Both are of one file, whatever its names. */
static inline bool zero_is_one_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}
