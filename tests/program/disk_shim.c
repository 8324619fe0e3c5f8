/* disk_shim.c - preloaded by offload.sh: a disk that fails, or lacks something.
 *
 *     DISK_LACKS   O_DIRECT or O_TMPFILE: the kernel refuses it
 *     DISK_FAULT   read-error, read-end, wrong-bit or write-error
 *     DISK_RANK    the rank that has the fault
 *     DISK_AT      the first transfer of scratch files with the fault, from 1; all later ones have
 *                  it, too */
#define _GNU_SOURCE /* RTLD_NEXT, O_TMPFILE, O_DIRECT */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

typedef int open_function(const char *path, int flags, ...);
typedef ssize_t read_function(int fd, void *data, size_t bytes, off_t at);
typedef ssize_t write_function(int fd, const void *data, size_t bytes, off_t at);

static bool is_set_to(const char *name, const char *value)
{
    const char *text = getenv(name);
    return text && strcmp(text, value) == 0;
}

static long number(const char *name)
{
    const char *text = getenv(name);
    return text ? strtol(text, NULL, 10) : -1;
}

static long rank(void)
{
    long open_mpi = number("OMPI_COMM_WORLD_RANK"), mpich = number("PMI_RANK");
    return open_mpi >= 0 ? open_mpi : mpich >= 0 ? mpich : 0;
}

/* A file without a name. */
static bool is_scratch(int fd)
{
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0) return false;
    path[n] = '\0';
    return strstr(path, " (deleted)") && !strstr(path, "/dev/");
}

/* True from the DISK_AT-th transfer on. */
static bool is_due(int fd)
{
    static atomic_long transfers;
    if (rank() != number("DISK_RANK") || !is_scratch(fd)) return false;
    return atomic_fetch_add(&transfers, 1) + 1 >= number("DISK_AT");
}

static void *next(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

/* ---- what the disk lacks ---- */

#define OPEN(name) \
    int name(const char *path, int flags, ...) \
    { \
        open_function *real; \
        void *found = next(#name); \
        va_list list; \
        va_start(list, flags); \
        mode_t mode = va_arg(list, mode_t); \
        va_end(list); \
        memcpy(&real, &found, sizeof real); \
        if ((flags & O_TMPFILE) == O_TMPFILE && is_set_to("DISK_LACKS", "O_TMPFILE")) { \
            errno = EOPNOTSUPP; \
            return -1; \
        } \
        return real(path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

#define FCNTL(name) \
    int name(int fd, int command, ...) \
    { \
        int (*real)(int, int, ...); \
        void *found = next(#name); \
        va_list list; \
        va_start(list, command); \
        void *argument = va_arg(list, void *); \
        va_end(list); \
        memcpy(&real, &found, sizeof real); \
        if (command == F_SETFL && ((long)argument & O_DIRECT) && \
            is_set_to("DISK_LACKS", "O_DIRECT")) { \
            errno = EINVAL; \
            return -1; \
        } \
        return real(fd, command, argument); \
    }
FCNTL(fcntl)
FCNTL(fcntl64)

/* ---- what it gets wrong ---- */

static ssize_t faulty_read(read_function *real, int fd, void *data, size_t bytes, off_t at)
{
    bool due = getenv("DISK_FAULT") && is_due(fd);
    if (due && is_set_to("DISK_FAULT", "read-end")) return 0;
    if (due && is_set_to("DISK_FAULT", "read-error")) {
        errno = EIO;
        return -1;
    }
    ssize_t n = real(fd, data, bytes, at);
    if (due && n > 0 && is_set_to("DISK_FAULT", "wrong-bit")) ((char *)data)[n / 2] ^= 1;
    return n;
}

#define READ(name) \
    ssize_t name(int fd, void *data, size_t bytes, off_t at) \
    { \
        read_function *real; \
        void *found = next(#name); \
        memcpy(&real, &found, sizeof real); \
        return faulty_read(real, fd, data, bytes, at); \
    }
READ(pread)
READ(pread64)

#define WRITE(name) \
    ssize_t name(int fd, const void *data, size_t bytes, off_t at) \
    { \
        write_function *real; \
        void *found = next(#name); \
        memcpy(&real, &found, sizeof real); \
        if (is_set_to("DISK_FAULT", "write-error") && is_due(fd)) { \
            errno = EIO; \
            return -1; \
        } \
        return real(fd, data, bytes, at); \
    }
WRITE(pwrite)
WRITE(pwrite64)
