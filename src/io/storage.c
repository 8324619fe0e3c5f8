#include "io/storage.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/fail.h"

#define PRIVATE_DIR  0700
#define PRIVATE_FILE 0600

/* Repeats a call that returns -1 as long as only signals get in its way. */
#define AGAIN(result, call) \
    do { \
        (result) = (call); \
    } while ((result) < 0 && errno == EINTR)

static zero_status cannot(zero_status code, const char *path, const char *what)
{
    return zero_fail(code, "%s: cannot be %s: %s", path, what, strerror(errno));
}

/* ---- directories ---- */

static zero_status adopt(int fd, const char *path, zero_storage_dir *dir)
{
    if (fd < 0) return cannot(ZERO_ERR_IO, path, "opened as a directory");
    *dir = (zero_storage_dir){.fd = fd, .is_open = true};
    snprintf(dir->path, sizeof dir->path, "%.*s", ZERO_STORAGE_PATH - 1, path);
    return ZERO_OK;
}

/* One that was cut would be another directory's. */
static zero_status check_length(const char *path)
{
    if (strlen(path) < ZERO_STORAGE_PATH) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_INVALID,
        "%.100s...: a path of %zu bytes: expected at most %d; move it, or give a "
        "relative one",
        path, strlen(path), ZERO_STORAGE_PATH - 1);
}

zero_status zero_storage_open(const char *path, zero_storage_dir *dir)
{
    int fd;
    ZERO_TRY(check_length(path));
    AGAIN(fd, open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return adopt(fd, path, dir);
}

zero_status zero_storage_enter(const zero_storage_dir *parent, const char *name,
                               zero_storage_dir *dir)
{
    char path[ZERO_STORAGE_PATH + 64];
    int fd;
    snprintf(path, sizeof path, "%s/%.60s", parent->path, name);
    AGAIN(fd, openat(parent->fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
    return adopt(fd, path, dir);
}

/* Under a umask that takes our own rights we could not even open what we made. */
static zero_status make(int at, const char *name, const char *path)
{
    int failed;
    AGAIN(failed, mkdirat(at, name, PRIVATE_DIR));
    if (failed) return cannot(ZERO_ERR_ENV, path, "made");
    AGAIN(failed, fchmodat(at, name, PRIVATE_DIR, 0));
    return failed ? cannot(ZERO_ERR_ENV, path, "made private") : ZERO_OK;
}

zero_status zero_storage_make(const zero_storage_dir *parent, const char *name,
                              zero_storage_dir *dir)
{
    char path[ZERO_STORAGE_PATH + 64];
    snprintf(path, sizeof path, "%s/%.60s", parent->path, name);
    ZERO_TRY(make(parent->fd, name, path));
    return zero_storage_enter(parent, name, dir);
}

zero_status zero_storage_open_or_make(const char *path, zero_storage_dir *dir)
{
    struct stat info;
    ZERO_TRY(check_length(path));
    if (stat(path, &info) != 0 && errno == ENOENT) ZERO_TRY(make(AT_FDCWD, path, path));
    ZERO_TRY(zero_storage_open(path, dir));
    zero_status st = zero_storage_sync_parent(dir);
    if (st != ZERO_OK) zero_storage_close(dir);
    return st;
}

void zero_storage_close(zero_storage_dir *dir)
{
    if (dir->is_open) close(dir->fd);
    *dir = (zero_storage_dir){0};
}

zero_status zero_storage_sync(const zero_storage_dir *dir)
{
    int failed;
    AGAIN(failed, fsync(dir->fd));
    /* There are file systems that sync no directories and say so by EINVAL. */
    if (failed && errno != EINVAL) return cannot(ZERO_ERR_ENV, dir->path, "synced");
    return ZERO_OK;
}

zero_status zero_storage_sync_parent(const zero_storage_dir *dir)
{
    zero_storage_dir parent;
    char path[ZERO_STORAGE_PATH + 64];
    int fd;
    snprintf(path, sizeof path, "%s/..", dir->path);
    AGAIN(fd, openat(dir->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0 && errno == EACCES)
        return ZERO_OK; /* what cannot be read cannot be synced */
    ZERO_TRY(adopt(fd, path, &parent));
    zero_status st = zero_storage_sync(&parent);
    zero_storage_close(&parent);
    return st;
}

zero_status zero_storage_rename(const zero_storage_dir *dir, const char *from,
                                const char *to)
{
    int failed;
    AGAIN(failed, renameat(dir->fd, from, dir->fd, to));
    if (!failed) return ZERO_OK;
    return zero_fail(ZERO_ERR_ENV, "%s: %s cannot be renamed to %s: %s", dir->path, from,
                     to, strerror(errno));
}

static zero_status remove_name(const zero_storage_dir *dir, const char *name, int flags)
{
    int failed;
    AGAIN(failed, unlinkat(dir->fd, name, flags));
    if (!failed || errno == ENOENT) return ZERO_OK;
    return zero_fail(ZERO_ERR_ENV, "%s/%s: cannot be removed: %s", dir->path, name,
                     strerror(errno));
}

static zero_status remove_file(void *arg, const char *name)
{
    return remove_name(arg, name, 0);
}

zero_status zero_storage_remove(const zero_storage_dir *dir, const char *name)
{
    zero_storage_dir inner;
    if (!zero_storage_has(dir, name)) return ZERO_OK;
    ZERO_TRY(zero_storage_enter(dir, name, &inner));
    zero_status st = zero_storage_list(&inner, remove_file, &inner);
    zero_storage_close(&inner);
    return st == ZERO_OK ? remove_name(dir, name, AT_REMOVEDIR) : st;
}

bool zero_storage_has(const zero_storage_dir *dir, const char *name)
{
    struct stat info;
    return fstatat(dir->fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

zero_status zero_storage_room(const zero_storage_dir *dir, uint64_t *bytes)
{
    struct statvfs info;
    int failed;
    AGAIN(failed, fstatvfs(dir->fd, &info));
    if (failed) return cannot(ZERO_ERR_ENV, dir->path, "asked for its free space");
    *bytes = (uint64_t)info.f_bavail * (uint64_t)info.f_frsize;
    return ZERO_OK;
}

zero_status zero_storage_lock(const zero_storage_dir *dir)
{
    int failed;
    AGAIN(failed, flock(dir->fd, LOCK_EX | LOCK_NB));
    if (!failed || errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP)
        return ZERO_OK;
    if (errno != EWOULDBLOCK) return cannot(ZERO_ERR_ENV, dir->path, "locked");
    return zero_fail(ZERO_ERR_INVALID,
                     "%s: another process writes checkpoints there: wait for it to end, or "
                     "give another --checkpoint",
                     dir->path);
}

static zero_status visit_all(DIR *stream, const char *path,
                             zero_status (*visit)(void *arg, const char *name), void *arg)
{
    struct dirent *entry;
    for (errno = 0; (entry = readdir(stream)) != NULL; errno = 0) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        ZERO_TRY(visit(arg, entry->d_name));
    }
    return errno == 0 ? ZERO_OK : cannot(ZERO_ERR_IO, path, "listed");
}

zero_status zero_storage_list(const zero_storage_dir *dir,
                              zero_status (*visit)(void *arg, const char *name), void *arg)
{
    int fd; /* of its own, for closedir() closes it */
    AGAIN(fd, openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0) return cannot(ZERO_ERR_IO, dir->path, "listed");
    DIR *stream = fdopendir(fd);
    if (!stream) {
        close(fd);
        return zero_fail(ZERO_ERR_NOMEM, "no memory to list %s", dir->path);
    }
    zero_status st = visit_all(stream, dir->path, visit, arg);
    closedir(stream);
    return st;
}

/* ---- files ---- */

static void name_file(zero_storage_file *file, const zero_storage_dir *dir,
                      const char *name)
{
    *file = (zero_storage_file){0};
    snprintf(file->path, sizeof file->path, "%s/%.60s", dir->path, name);
}

/* So that a full disk, or quota, is met before anything is written. */
static zero_status reserve(const zero_storage_file *file, uint64_t bytes)
{
    int error = 0;
    if (bytes == 0) return ZERO_OK;
    do error = posix_fallocate(file->fd, 0, (off_t)bytes);
    while (error == EINTR);
    if (error == 0 || error == EOPNOTSUPP || error == EINVAL) return ZERO_OK;
    return zero_fail(ZERO_ERR_ENV, "%s: no room for its %" PRIu64 " bytes: %s", file->path,
                     bytes, strerror(error));
}

zero_status zero_storage_create(const zero_storage_dir *dir, const char *name,
                                uint64_t bytes, zero_storage_file *file)
{
    name_file(file, dir, name);
    AGAIN(file->fd,
          openat(dir->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                 PRIVATE_FILE));
    if (file->fd < 0) return cannot(ZERO_ERR_ENV, file->path, "created");
    file->is_open = true;
    int failed; /* the umask may have taken rights away, from us as well */
    AGAIN(failed, fchmod(file->fd, PRIVATE_FILE));
    zero_status st =
        failed ? cannot(ZERO_ERR_ENV, file->path, "made private") : reserve(file, bytes);
    if (st != ZERO_OK) zero_storage_close_file(file);
    return st;
}

zero_status zero_storage_write(zero_storage_file *file, const void *data, size_t bytes)
{
    const size_t at_once = (size_t)1 << 30; /* write() takes no more than 2 GiB */
    const char *from = data;
    while (bytes > 0) {
        ssize_t n;
        AGAIN(n, write(file->fd, from, bytes < at_once ? bytes : at_once));
        if (n <= 0)
            return zero_fail(ZERO_ERR_ENV, "%s: cannot be written at byte %" PRIu64 ": %s",
                             file->path, file->at,
                             n < 0 ? strerror(errno) : "nothing was taken");
        from += n;
        bytes -= (size_t)n;
        file->at += (uint64_t)n;
    }
    return ZERO_OK;
}

zero_status zero_storage_finish(zero_storage_file *file)
{
    int failed;
    AGAIN(failed, fsync(file->fd));
    zero_status st = failed ? cannot(ZERO_ERR_ENV, file->path, "synced") : ZERO_OK;
    file->is_open = false;
    /* What is synced is safe: of close() only errors that tell of lost data count. */
    if (close(file->fd) != 0 && errno != EINTR && st == ZERO_OK)
        st = cannot(ZERO_ERR_ENV, file->path, "closed");
    return st;
}

static zero_status measure(zero_storage_file *file)
{
    struct stat info;
    if (fstat(file->fd, &info) != 0) return cannot(ZERO_ERR_IO, file->path, "examined");
    if (!S_ISREG(info.st_mode))
        return zero_fail(ZERO_ERR_FORMAT, "%s: expected a regular file, found a %s",
                         file->path,
                         S_ISDIR(info.st_mode) ? "directory" : "device, pipe or socket");
    file->bytes = (uint64_t)info.st_size;
    return ZERO_OK;
}

zero_status zero_storage_open_file(const zero_storage_dir *dir, const char *name,
                                   zero_storage_file *file)
{
    name_file(file, dir, name);
    /* Without O_NONBLOCK the open of a pipe would wait for a writer. */
    AGAIN(file->fd, openat(dir->fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
    if (file->fd < 0) {
        if (errno == ELOOP)
            return zero_fail(ZERO_ERR_FORMAT, "%s: expected a regular file, found a link",
                             file->path);
        return cannot(ZERO_ERR_IO, file->path, "opened");
    }
    file->is_open = true;
    zero_status st = measure(file);
    if (st != ZERO_OK) zero_storage_close_file(file);
    return st;
}

zero_status zero_storage_open_path(const char *path, zero_storage_file *file)
{
    *file = (zero_storage_file){0};
    snprintf(file->path, sizeof file->path, "%s", path);
    AGAIN(file->fd, open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file->fd < 0) return cannot(ZERO_ERR_IO, file->path, "opened");
    file->is_open = true;
    zero_status st = measure(file);
    if (st != ZERO_OK) zero_storage_close_file(file);
    return st;
}

zero_status zero_storage_read(const zero_storage_file *file, uint64_t at, void *data,
                              size_t bytes)
{
    char *to = data;
    while (bytes > 0) {
        ssize_t n;
        AGAIN(n, pread(file->fd, to, bytes, (off_t)at));
        if (n < 0)
            return zero_fail(ZERO_ERR_IO, "%s: cannot be read at byte %" PRIu64 ": %s",
                             file->path, at, strerror(errno));
        if (n == 0)
            return zero_fail(ZERO_ERR_IO,
                             "%s: ends at byte %" PRIu64 ", %zu bytes before its end "
                             "was expected",
                             file->path, at, bytes);
        to += n;
        at += (uint64_t)n;
        bytes -= (size_t)n;
    }
    return ZERO_OK;
}

void zero_storage_close_file(zero_storage_file *file)
{
    if (file->is_open) close(file->fd);
    file->is_open = false;
}
