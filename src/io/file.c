#include "io/file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"
#include "io/system_call.h"

#define READ_AT_ONCE ((size_t)1 << 30) /* pread() takes no more than 2 GiB */

/* A clone without Git LFS has a few such lines in place of each large file. */
#define POINTER      "version https://git-lfs.github.com/spec/"
#define POINTER_MOST 1024 /* bytes of one, by that specification */

static zero_status refuse(const char *path, const char *found)
{
    return zero_fail(ZERO_ERR_IO, "%s: expected a regular file, found a %s", path, found);
}

static zero_status refuse_pointer(const zero_file *file)
{
    char first[sizeof POINTER - 1];
    if (file->bytes < sizeof first || file->bytes >= POINTER_MOST) return ZERO_OK;
    ZERO_TRY(zero_file_read(file, 0, first, sizeof first));
    if (memcmp(first, POINTER, sizeof first) != 0) return ZERO_OK;
    return zero_fail(ZERO_ERR_IO,
                     "%s: a pointer of Git LFS in place of the file: fetch the file with "
                     "'git lfs pull' in its repository",
                     file->path);
}

static zero_status examine(zero_file *file)
{
    struct stat info;
    if (fstat(file->fd, &info) != 0)
        return zero_cannot(ZERO_ERR_IO, file->path, "examined");
    if (S_ISDIR(info.st_mode)) return refuse(file->path, "directory");
    if (!S_ISREG(info.st_mode)) return refuse(file->path, "device, pipe or socket");
    file->bytes = (uint64_t)info.st_size;
    return refuse_pointer(file);
}

/* Without O_NONBLOCK opening a pipe would wait for a writer. */
static zero_status open_at(int at, const char *name, int flags, zero_file *file)
{
    ZERO_AGAIN(file->fd, openat(at, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags));
    if (file->fd < 0 && errno == ELOOP && flags == O_NOFOLLOW)
        return refuse(file->path, "link");
    if (file->fd < 0) return zero_cannot_open(file->path, "opened for reading");
    file->is_open = true;
    zero_status st = examine(file);
    if (st != ZERO_OK) zero_file_close(file);
    return st;
}

zero_status zero_file_open(const char *path, zero_file *file)
{
    *file = (zero_file){0};
    snprintf(file->path, sizeof file->path, "%s", path);
    return open_at(AT_FDCWD, path, 0, file);
}

zero_status zero_file_open_in(const zero_storage_dir *dir, const char *name,
                              zero_file *file)
{
    *file = (zero_file){0};
    zero_storage_path(dir, name, file->path);
    return open_at(dir->fd, name, O_NOFOLLOW, file);
}

void zero_file_close(zero_file *file)
{
    if (file->is_open) close(file->fd);
    file->is_open = false;
}

zero_status zero_file_read_some(const zero_file *file, uint64_t at, void *data,
                                size_t bytes, size_t *read)
{
    ssize_t n;
    ZERO_AGAIN(n, pread(file->fd, data, zero_min_size(bytes, READ_AT_ONCE), (off_t)at));
    if (n < 0)
        return zero_fail(ZERO_ERR_IO, "%s: cannot be read at byte %" PRIu64 ": %s",
                         file->path, at, strerror(errno));
    *read = (size_t)n;
    return ZERO_OK;
}

zero_status zero_file_read(const zero_file *file, uint64_t at, void *data, size_t bytes)
{
    char *to = data;
    for (size_t have = 0, n = 0; have < bytes; have += n) {
        ZERO_TRY(zero_file_read_some(file, at + have, to + have, bytes - have, &n));
        if (n == 0)
            return zero_fail(ZERO_ERR_IO,
                             "%s: the file ends after %" PRIu64
                             " bytes: expected at least %" PRIu64,
                             file->path, at + have, at + bytes);
    }
    return ZERO_OK;
}
