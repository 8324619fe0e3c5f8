/* freeze_shim.c - preloaded by frozen.sh: a disk that stops answering, or is slow.
 *
 *     FREEZE_PATH    calls on files whose path has this in it never return
 *     FREEZE_CALLS   which calls: "fsync write"; without it all of them
 *     FREEZE_RANK    only on this rank
 *     FREEZE_AT      from this one of these calls on, from 1; without it from the first
 *     FREEZE_SECONDS they return after that time, and work
 *
 * A file without a name has the path of its directory. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static double number(const char *name, double otherwise)
{
    const char *text = getenv(name);
    return text ? strtod(text, NULL) : otherwise;
}

static double rank(void)
{
    return number("OMPI_COMM_WORLD_RANK", number("PMI_RANK", 0));
}

/* "fsync" is one of "fsync write". */
static bool is_listed(const char *call)
{
    char all[256], one[64];
    const char *calls = getenv("FREEZE_CALLS");
    if (!calls) return true;
    snprintf(all, sizeof all, " %s ", calls);
    snprintf(one, sizeof one, " %s ", call);
    return strstr(all, one) != NULL;
}

static void freeze(const char *call, const char *path)
{
    static atomic_long calls;
    const char *place = getenv("FREEZE_PATH");
    const int kept = errno;
    if (!place || !strstr(path, place) || !is_listed(call)) return;
    if (rank() != number("FREEZE_RANK", rank())) return;
    if (atomic_fetch_add(&calls, 1) + 1 < (long)number("FREEZE_AT", 1)) return;
    const double seconds = number("FREEZE_SECONDS", 0);
    const struct timespec some = {.tv_sec = (time_t)seconds,
                                  .tv_nsec = (long)(1e9 * (seconds - (time_t)seconds))};
    if (seconds > 0) nanosleep(&some, NULL);
    while (seconds == 0) pause();
    errno = kept;
}

static void freeze_at(const char *call, int at, const char *path)
{
    char link[64], full[2 * PATH_MAX] = "";
    const int kept = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", at);
    ssize_t n = at == AT_FDCWD || *path == '/' ? 0 : readlink(link, full, PATH_MAX - 1);
    snprintf(full + (n > 0 ? n : 0), PATH_MAX, "%s%s", n > 0 && *path ? "/" : "", path);
    errno = kept;
    freeze(call, full);
}

static void freeze_fd(const char *call, int fd)
{
    freeze_at(call, fd, "");
}

/* ---- the calls ---- */

#define OPEN(name, parameters, at, path, ...) \
    int name parameters \
    { \
        va_list list; \
        va_start(list, flags); \
        mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0; \
        va_end(list); \
        freeze_at("open", at, path); \
        return REAL(name)(__VA_ARGS__, flags, mode); \
    }
OPEN(open, (const char *path, int flags, ...), AT_FDCWD, path, path)
OPEN(open64, (const char *path, int flags, ...), AT_FDCWD, path, path)
OPEN(openat, (int at, const char *path, int flags, ...), at, path, at, path)
OPEN(openat64, (int at, const char *path, int flags, ...), at, path, at, path)

#define FD(result, name, call, parameters, ...) \
    result name parameters \
    { \
        freeze_fd(call, fd); \
        return REAL(name)(__VA_ARGS__); \
    }
FD(ssize_t, pread, "read", (int fd, void *to, size_t n, off_t at), fd, to, n, at)
FD(ssize_t, pread64, "read", (int fd, void *to, size_t n, off64_t at), fd, to, n, at)
FD(ssize_t, pwrite, "write", (int fd, const void *from, size_t n, off_t at), fd, from, n,
   at)
FD(ssize_t, pwrite64, "write", (int fd, const void *from, size_t n, off64_t at), fd, from,
   n, at)
FD(ssize_t, write, "write", (int fd, const void *from, size_t n), fd, from, n)
FD(int, fsync, "fsync", (int fd), fd)
FD(int, fdatasync, "fsync", (int fd), fd)
FD(int, fallocate, "allocate", (int fd, int mode, off_t at, off_t n), fd, mode, at, n)
FD(int, posix_fallocate, "allocate", (int fd, off_t at, off_t n), fd, at, n)
FD(int, fstatvfs, "stat", (int fd, struct statvfs *info), fd, info)
FD(int, fstat, "stat", (int fd, struct stat *info), fd, info)
FD(int, close, "close", (int fd), fd)

#define AT(result, name, call, at, path, parameters, ...) \
    result name parameters \
    { \
        freeze_at(call, at, path); \
        return REAL(name)(__VA_ARGS__); \
    }
AT(int, renameat, "rename", from, old, (int from, const char *old, int to, const char *new),
   from, old, to, new)
AT(int, unlinkat, "unlink", at, path, (int at, const char *path, int flags), at, path,
   flags)
AT(int, mkdirat, "mkdir", at, path, (int at, const char *path, mode_t mode), at, path, mode)
AT(int, stat, "stat", AT_FDCWD, path, (const char *path, struct stat *info), path, info)
AT(int, fstatat, "stat", at, path, (int at, const char *path, struct stat *info, int flags),
   at, path, info, flags)
AT(int, statfs, "stat", AT_FDCWD, path, (const char *path, struct statfs *info), path, info)
AT(DIR *, opendir, "open", AT_FDCWD, path, (const char *path), path)
