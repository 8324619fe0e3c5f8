#define _GNU_SOURCE /* O_PATH */
#include "io/file.h"

#include <limits.h>
#include <unistd.h>

#include "base/number.h"
#include "io/system_call.h"

zero_path_kind zero_path_look(const char *path)
{
    struct stat info;
    if (!zero_examine(path, &info))
        return errno == EIO || errno == ESTALE ? ZERO_PATH_OF_OTHER : ZERO_PATH_OF_NOTHING;
    return S_ISREG(info.st_mode)   ? ZERO_PATH_OF_FILE
           : S_ISDIR(info.st_mode) ? ZERO_PATH_OF_DIRECTORY
                                   : ZERO_PATH_OF_OTHER;
}

/* A clone without Git LFS has a few such lines in place of each large file. */
#define POINTER      "version https://git-lfs.github.com/spec/"
#define POINTER_MOST 1024 /* bytes of one, by that specification */

static zero_status refuse(const char *path, const char *found)
{
    return zero_fail(ZERO_ERR_IO, "%s: expected a regular file, found a %s", path, found);
}

static zero_status examine(zero_file *file)
{
    struct stat info;
    if (!zero_examine_open(file->fd, file->path, &info))
        return zero_cannot(ZERO_ERR_IO, file->path, "examined");
    if (S_ISDIR(info.st_mode)) return refuse(file->path, "directory");
    if (!S_ISREG(info.st_mode)) return refuse(file->path, "device, pipe or socket");
    file->bytes = (uint64_t)info.st_size;
    char first[sizeof POINTER - 1];
    if (file->bytes < sizeof first || file->bytes >= POINTER_MOST) return ZERO_OK;
    ZERO_TRY(zero_file_read(file, 0, first, sizeof first));
    ZERO_FAIL_IF(memcmp(first, POINTER, sizeof first) == 0, ZERO_ERR_IO,
                 "%s: a pointer of Git LFS in place of the file: fetch the file with 'git "
                 "lfs pull' in its repository",
                 file->path);
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
    zero_print(file->path, "%s", path);
    return open_at(AT_FDCWD, path, 0, file);
}

zero_status zero_file_open_in(const zero_storage_dir *dir, const char *name,
                              zero_file *file)
{
    *file = (zero_file){0};
    zero_storage_path(dir, name, file->path);
    return open_at(dir->fd, name, O_NOFOLLOW, file);
}

/* ---- by their paths ---- */

#ifndef O_PATH
#define O_PATH O_RDONLY
#endif

/* "a/b/c" is c in a/b. A path that the kernel would refuse is cut. */
static const char *split(const char *path, char folder[PATH_MAX])
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    snprintf(folder, PATH_MAX, "%.*s", (int)(name - path), path);
    if (!slash) snprintf(folder, PATH_MAX, ".");
    return name;
}

bool zero_file_is_same(const char *a, const char *b)
{
    char folder_a[PATH_MAX], folder_b[PATH_MAX];
    struct stat of_a, of_b;
    bool has_a = zero_examine(a, &of_a), has_b = zero_examine(b, &of_b);
    if (has_a || has_b) return has_a && has_b && zero_is_one_file(&of_a, &of_b);
    const char *name_a = split(a, folder_a), *name_b = split(b, folder_b);
    return zero_same_text(name_a, name_b) && zero_examine(folder_a, &of_a) &&
           zero_examine(folder_b, &of_b) && zero_is_one_file(&of_a, &of_b);
}

static bool is_trusted(const struct stat *info)
{
    return info->st_uid == geteuid() || info->st_uid == 0;
}

static bool others_add_to(const struct stat *folder)
{
    return !is_trusted(folder) || (folder->st_mode & (S_IWGRP | S_IWOTH));
}

/* A second name of a file may be a trap just as a link. */
static int open_in(int folder, const char *name, int flags)
{
    struct stat around, info;
    int fd;
    if (!zero_examine_open(folder, name, &around)) return -1;
    bool is_link = zero_examine_in(folder, name, &info) && S_ISLNK(info.st_mode);
    /* In a sticky directory such as /tmp others can make a link, but cannot replace one of
     * ours. */
    bool may_be_replaced = others_add_to(&around) && !(around.st_mode & S_ISVTX);
    bool follows = is_link && is_trusted(&around) && is_trusted(&info) && !may_be_replaced;
    if (!follows) flags |= O_NOFOLLOW;
    flags |= O_CREAT | O_APPEND | O_CLOEXEC;
    ZERO_FILE_CALL(fd, name, "opened for writing", openat(folder, name, flags, 0666));
    if (fd < 0 && is_link && !follows) errno = ELOOP; /* kernels have other reasons, too */
    bool is_trap = fd >= 0 && others_add_to(&around) &&
                   zero_examine_open(fd, name, &info) && S_ISREG(info.st_mode) &&
                   info.st_nlink > 1;
    if (!is_trap) return fd;
    close(fd);
    errno = ELOOP;
    return -1;
}

int zero_file_open_to_append(const char *path, int flags)
{
    char path_of_folder[PATH_MAX];
    int folder;
    errno = ENAMETOOLONG;
    if (strlen(path) >= sizeof path_of_folder) return -1;
    const char *name = split(path, path_of_folder);
    ZERO_FILE_CALL(folder, path_of_folder, "opened as a directory",
                   open(path_of_folder, O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (folder < 0) return -1;
    int fd = open_in(folder, name, flags), error = errno;
    close(folder);
    errno = error;
    return fd;
}

/* ---- reading ---- */

zero_status zero_file_place(const zero_file *file, uint64_t place[2])
{
    struct stat info;
    if (!zero_examine_open(file->fd, file->path, &info))
        return zero_cannot(ZERO_ERR_IO, file->path, "examined");
    place[0] = (uint64_t)info.st_dev;
    place[1] = (uint64_t)info.st_ino;
    return ZERO_OK;
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
    ZERO_FAIL_IF(n < 0, ZERO_ERR_IO, "%s: cannot be read at byte %" PRIu64 ": %s",
                 file->path, at, strerror(errno));
    *read = (size_t)n;
    return ZERO_OK;
}

zero_status zero_file_read(const zero_file *file, uint64_t at, void *data, size_t bytes)
{
    char *to = data;
    for (size_t have = 0, n = 0; have < bytes; have += n) {
        ZERO_TRY(zero_file_read_some(file, at + have, to + have, bytes - have, &n));
        ZERO_FAIL_IF(n == 0, ZERO_ERR_IO,
                     "%s: the file ends after %" PRIu64
                     " bytes: expected at least %" PRIu64,
                     file->path, at + have, at + bytes);
    }
    return ZERO_OK;
}

void zero_file_expect(const zero_file *file, uint64_t at, uint64_t bytes)
{
    (void)posix_fadvise(file->fd, (off_t)at, (off_t)bytes, POSIX_FADV_WILLNEED);
}
