#include "io/file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/number.h"
#include "io/system_call.h"

zero_path_kind zero_path_look(const char *path)
{
    struct stat info;
    int failed;
    ZERO_FILE_CALL(failed, path, "examined", stat(path, &info));
    if (failed) return ZERO_PATH_OF_NOTHING;
    return S_ISREG(info.st_mode)   ? ZERO_PATH_OF_FILE
           : S_ISDIR(info.st_mode) ? ZERO_PATH_OF_DIRECTORY
                                   : ZERO_PATH_OF_OTHER;
}

static zero_status refuse(const char *path, const char *found)
{
    return zero_fail(ZERO_ERR_IO, "%s: expected a regular file, found a %s", path, found);
}

static zero_status examine(zero_file *file)
{
    struct stat info;
    int failed;
    ZERO_FILE_CALL(failed, file->path, "examined", fstat(file->fd, &info));
    if (failed) return zero_cannot(ZERO_ERR_IO, file->path, "examined");
    if (S_ISDIR(info.st_mode)) return refuse(file->path, "directory");
    if (!S_ISREG(info.st_mode)) return refuse(file->path, "device, pipe or socket");
    file->bytes = (uint64_t)info.st_size;
    return ZERO_OK;
}

/* Without O_NONBLOCK opening a pipe would wait for a writer. */
static zero_status open_at(int at, const char *name, int flags, zero_file *file)
{
    ZERO_FILE_CALL(file->fd, file->path, "opened for reading",
                   openat(at, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | flags));
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
    if (file->is_open) ZERO_WATCHED(file->path, "closed", close(file->fd));
    file->is_open = false;
}

zero_status zero_file_read_some(const zero_file *file, uint64_t at, void *data,
                                size_t bytes, size_t *read)
{
    ssize_t n;
    ZERO_FILE_CALL(
        n, file->path, "read",
        pread(file->fd, data, zero_min_size(bytes, ZERO_FILE_CALL_BYTES), (off_t)at));
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
