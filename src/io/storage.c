#include "io/storage.h"

#include <dirent.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/number.h"
#include "io/system_call.h"
#include "io/write_back.h"

#define PRIVATE_DIR  0700
#define PRIVATE_FILE 0600
#define PUBLIC_DIR   0755
#define PUBLIC_FILE  0644

/* ---- directories ---- */

static zero_status adopt(int fd, const char *path, zero_storage_dir *dir)
{
    if (fd < 0) return zero_cannot_open(path, "opened as a directory");
    *dir = (zero_storage_dir){.fd = fd, .is_open = true};
    zero_print(dir->path, "%.*s", ZERO_STORAGE_PATH - 1, path);
    return ZERO_OK;
}

zero_status zero_storage_check_length(const char *path, size_t most)
{
    size_t len = strlen(path);
    ZERO_INVALID_IF(len > most,
                    "%.100s...: the path has %zu bytes: expected at most %zu; move it, or "
                    "give a relative one",
                    path, len, most);
    return ZERO_OK;
}

zero_status zero_storage_open(const char *path, zero_storage_dir *dir)
{
    int fd;
    ZERO_TRY(zero_storage_check_length(path, ZERO_STORAGE_PATH - 1));
    ZERO_FILE_CALL(fd, path, "opened as a directory",
                   open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return adopt(fd, path, dir);
}

static int open_dir_at(int at, const char *name, const char *path)
{
    const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW;
    int fd;
    ZERO_FILE_CALL(fd, path, "opened as a directory", openat(at, name, flags));
    return fd;
}

zero_status zero_storage_enter(const zero_storage_dir *parent, const char *name,
                               zero_storage_dir *dir)
{
    char path[ZERO_STORAGE_FILE_PATH];
    zero_storage_path(parent, name, path);
    return adopt(open_dir_at(parent->fd, name, path), path, dir);
}

bool zero_storage_is_private(const zero_storage_dir *dir)
{
    struct stat info;
    return zero_examine_open(dir->fd, dir->path, &info) &&
           (info.st_mode & (S_IRWXG | S_IRWXO)) == 0;
}

bool zero_storage_is_own(const zero_storage_dir *dir)
{
    struct stat info;
    return zero_examine_open(dir->fd, dir->path, &info) && info.st_uid == geteuid();
}

/* Some mounts have modes of their own and refuse others, as CIFS and object stores do. What
 * is made there has no more rights than were asked for, or those of the mount:
 * zero_storage_is_private() tells. */
static bool is_refused(int failed)
{
    return failed && (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS);
}

/* Another user who owns the parent may put something else in its place at any moment: a
 * link is not followed, and what is another user's keeps its mode. The umask may take
 * rights from us, too; then we could not open what we made. */
static zero_status make_private(int at, const char *name, const char *path,
                                zero_storage_dir *dir)
{
    int failed;
    ZERO_FILE_CALL(failed, path, "made", mkdirat(at, name, PRIVATE_DIR));
    if (failed) return zero_cannot(ZERO_ERR_ENV, path, "made");
    int fd = open_dir_at(at, name, path);
    if (fd < 0 && errno == EACCES) {
        ZERO_FILE_CALL(failed, path, "made private",
                       fchmodat(at, name, PRIVATE_DIR, AT_SYMLINK_NOFOLLOW));
        if (!failed) fd = open_dir_at(at, name, path);
    }
    ZERO_TRY(adopt(fd, path, dir));
    if (!zero_storage_is_own(dir)) return ZERO_OK;
    ZERO_FILE_CALL(failed, path, "made private", fchmod(fd, PRIVATE_DIR));
    if (!failed || is_refused(failed)) return ZERO_OK;
    zero_status st = zero_cannot(ZERO_ERR_ENV, path, "made private");
    zero_storage_close(dir);
    return st;
}

zero_status zero_storage_make(const zero_storage_dir *parent, const char *name,
                              zero_storage_dir *dir)
{
    char path[ZERO_STORAGE_FILE_PATH];
    zero_storage_path(parent, name, path);
    return make_private(parent->fd, name, path, dir);
}

zero_status zero_storage_make_public(const zero_storage_dir *parent, const char *name,
                                     zero_storage_dir *dir)
{
    char path[ZERO_STORAGE_FILE_PATH];
    int failed;
    zero_storage_path(parent, name, path);
    ZERO_FILE_CALL(failed, path, "made", mkdirat(parent->fd, name, PUBLIC_DIR));
    if (failed) return zero_cannot(ZERO_ERR_ENV, path, "made");
    ZERO_TRY(zero_storage_enter(parent, name, dir));
    dir->is_public = true;
    return ZERO_OK;
}

zero_status zero_storage_open_or_make(const char *path, zero_storage_dir *dir)
{
    struct stat info;
    ZERO_TRY(zero_storage_check_length(path, ZERO_STORAGE_PATH - 1));
    bool is_new = !zero_examine(path, &info) && errno == ENOENT;
    if (is_new) {
        /* With a slash at its end, a link would be followed. */
        char name[ZERO_STORAGE_PATH];
        size_t n = strlen(path);
        while (n > 1 && path[n - 1] == '/') n--;
        zero_print(name, "%.*s", (int)n, path);
        ZERO_TRY(make_private(AT_FDCWD, name, path, dir));
    } else {
        ZERO_TRY(zero_storage_open(path, dir));
    }
    zero_status st = zero_storage_sync_parent(dir);
    if (st != ZERO_OK) zero_storage_close(dir);
    return st;
}

zero_status zero_storage_open_or_make_public(const char *path, zero_storage_dir *dir)
{
    int failed;
    ZERO_TRY(zero_storage_check_length(path, ZERO_STORAGE_PATH - 1));
    ZERO_FILE_CALL(failed, path, "made", mkdir(path, PUBLIC_DIR));
    if (failed && errno != EEXIST) return zero_cannot(ZERO_ERR_ENV, path, "made");
    ZERO_TRY(zero_storage_open(path, dir));
    dir->is_public = true;
    return ZERO_OK;
}

void zero_storage_path(const zero_storage_dir *dir, const char *name,
                       char path[ZERO_STORAGE_FILE_PATH])
{
    snprintf(path, ZERO_STORAGE_FILE_PATH, "%s/%.60s", dir->path, name);
}

void zero_storage_close(zero_storage_dir *dir)
{
    if (dir->is_open && dir->is_signed)
        ZERO_WATCHED_FOR(ZERO_FILE_PATIENCE, dir->path, "unlocked",
                         unlinkat(dir->fd, ZERO_STORAGE_HOLDER, 0));
    if (dir->is_open) ZERO_WATCHED(dir->path, "closed", close(dir->fd));
    *dir = (zero_storage_dir){0};
}

zero_status zero_storage_sync(const zero_storage_dir *dir)
{
    int failed;
    ZERO_FILE_CALL(failed, dir->path, "synced", fsync(dir->fd));
    /* Some file systems cannot sync directories and answer EINVAL. */
    if (failed && errno != EINVAL) return zero_cannot(ZERO_ERR_ENV, dir->path, "synced");
    return ZERO_OK;
}

zero_status zero_storage_sync_parent(const zero_storage_dir *dir)
{
    zero_storage_dir parent;
    char path[ZERO_STORAGE_FILE_PATH];
    int fd;
    zero_print(path, "%s/..", dir->path);
    ZERO_FILE_CALL(fd, path, "opened as a directory",
                   openat(dir->fd, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    /* A directory that cannot be read cannot be synced. */
    if (fd < 0 && errno == EACCES) return ZERO_OK;
    ZERO_TRY(adopt(fd, path, &parent));
    zero_status st = zero_storage_sync(&parent);
    zero_storage_close(&parent);
    return st;
}

zero_status zero_storage_rename(const zero_storage_dir *dir, const char *from,
                                const char *to)
{
    char path[ZERO_STORAGE_FILE_PATH];
    int failed;
    zero_storage_path(dir, from, path);
    ZERO_FILE_CALL(failed, path, "renamed", renameat(dir->fd, from, dir->fd, to));
    ZERO_FAIL_IF(failed, ZERO_ERR_ENV, "%s: %s cannot be renamed to %s: %s", dir->path,
                 from, to, strerror(errno));
    return ZERO_OK;
}

static zero_status remove_name(const zero_storage_dir *dir, const char *name, int flags)
{
    char path[ZERO_STORAGE_FILE_PATH];
    int failed;
    zero_storage_path(dir, name, path);
    ZERO_SPACE_CALL(failed, path, "removed", unlinkat(dir->fd, name, flags));
    ZERO_FAIL_IF(failed && errno != ENOENT, ZERO_ERR_ENV, "%s/%s: cannot be removed: %s",
                 dir->path, name, strerror(errno));
    return ZERO_OK;
}

zero_status zero_storage_remove_file(const zero_storage_dir *dir, const char *name)
{
    return remove_name(dir, name, 0);
}

/* A directory that is emptied. */
typedef struct {
    zero_storage_dir dir;
    zero_failure first; /* of the files that stay */
} emptying;

static zero_status remove_file(void *arg, const char *name)
{
    emptying *e = arg;
    zero_status st = remove_name(&e->dir, name, 0);
    if (st != ZERO_OK && e->first.status == ZERO_OK) e->first = zero_failure_keep(st);
    return ZERO_OK;
}

/* False if there is no such name, or none that can be examined. */
static bool examine(const zero_storage_dir *dir, const char *name, struct stat *info)
{
    char path[ZERO_STORAGE_FILE_PATH];
    int failed;
    zero_storage_path(dir, name, path);
    ZERO_FILE_CALL(failed, path, "examined",
                   fstatat(dir->fd, name, info, AT_SYMLINK_NOFOLLOW));
    return !failed;
}

zero_status zero_storage_check_removable(const zero_storage_dir *dir, const char *name)
{
    struct stat info;
    ZERO_FAIL_IF(examine(dir, name, &info) && !S_ISDIR(info.st_mode), ZERO_ERR_ENV,
                 "%s/%s: cannot be removed: it is a %s, not a directory", dir->path, name,
                 S_ISLNK(info.st_mode) ? "symbolic link" : "file");
    return ZERO_OK;
}

zero_status zero_storage_remove(const zero_storage_dir *dir, const char *name)
{
    emptying e = {.first = {.status = ZERO_OK}};
    if (!zero_storage_has(dir, name)) return ZERO_OK;
    ZERO_TRY(zero_storage_check_removable(dir, name));
    ZERO_TRY(zero_storage_enter(dir, name, &e.dir));
    zero_status st = zero_storage_list(&e.dir, remove_file, &e);
    zero_storage_close(&e.dir);
    ZERO_TRY(st);
    ZERO_TRY(zero_failure_restore(&e.first));
    return remove_name(dir, name, AT_REMOVEDIR);
}

zero_status zero_storage_check_place(const zero_storage_dir *dir)
{
    struct stat ours, named;
    if (!zero_examine_open(dir->fd, dir->path, &ours))
        return zero_cannot(ZERO_ERR_ENV, dir->path, "examined");
    bool is_named = zero_examine(dir->path, &named);
    if (!is_named && errno != ENOENT && errno != ENOTDIR)
        return zero_cannot(ZERO_ERR_ENV, dir->path, "examined");
    ZERO_FAIL_IF(!is_named || !zero_is_one_file(&ours, &named), ZERO_ERR_ENV,
                 "%s: %s there any more: the directory that was opened by this path was "
                 "moved or removed; move it back",
                 dir->path, is_named ? "it is not" : "nothing is");
    return ZERO_OK;
}

bool zero_storage_has(const zero_storage_dir *dir, const char *name)
{
    struct stat info;
    return examine(dir, name, &info);
}

zero_status zero_storage_room(const zero_storage_dir *dir, uint64_t *bytes)
{
    struct statvfs info;
    int failed;
    ZERO_FILE_CALL(failed, dir->path, "asked for its free space", fstatvfs(dir->fd, &info));
    if (failed) return zero_cannot(ZERO_ERR_ENV, dir->path, "asked for its free space");
    *bytes = (uint64_t)info.f_bavail * (uint64_t)info.f_frsize;
    return ZERO_OK;
}

zero_status zero_storage_list(const zero_storage_dir *dir,
                              zero_status (*visit)(void *arg, const char *name), void *arg)
{
    int fd; /* a second one, for closedir() closes it */
    ZERO_FILE_CALL(fd, dir->path, "listed",
                   openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (fd < 0) return zero_cannot_open(dir->path, "listed");
    DIR *stream = fdopendir(fd);
    if (!stream) {
        close(fd);
        return zero_fail(ZERO_ERR_NOMEM, "no memory to list %s", dir->path);
    }
    zero_status st = ZERO_OK;
    while (st == ZERO_OK) {
        const struct dirent *entry;
        errno = 0;
        ZERO_WATCHED(dir->path, "listed", entry = readdir(stream));
        if (!entry && errno != 0) st = zero_cannot(ZERO_ERR_IO, dir->path, "listed");
        if (!entry) break;
        if (!zero_same_text(entry->d_name, ".") && !zero_same_text(entry->d_name, ".."))
            st = visit(arg, entry->d_name);
    }
    closedir(stream);
    return st;
}

/* ---- files ---- */

/* A full disk, or quota, is found before anything is written. */
static zero_status reserve(const zero_storage_file *file, uint64_t bytes)
{
    int error = 0;
    if (bytes == 0) return ZERO_OK;
    do
        ZERO_WATCHED_FOR(ZERO_FILE_PATIENCE, file->path, "given its space",
                         error = posix_fallocate(file->fd, 0, (off_t)bytes));
    while (error == EINTR);
    ZERO_FAIL_IF(error != 0 && error != EOPNOTSUPP && error != EINVAL, ZERO_ERR_ENV,
                 "%s: no space for its %" PRIu64 " bytes: %s", file->path, bytes,
                 strerror(error));
    return ZERO_OK;
}

zero_status zero_storage_create(const zero_storage_dir *dir, const char *name,
                                uint64_t bytes, zero_storage_file *file)
{
    *file = (zero_storage_file){0};
    zero_storage_path(dir, name, file->path);
    ZERO_FILE_CALL(file->fd, file->path, "created",
                   openat(dir->fd, name,
                          O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
                          dir->is_public ? PUBLIC_FILE : PRIVATE_FILE));
    if (file->fd < 0) return zero_cannot(ZERO_ERR_ENV, file->path, "created");
    file->is_open = true;
    int failed = 0; /* the umask may have taken rights from us, too */
    if (!dir->is_public)
        ZERO_FILE_CALL(failed, file->path, "made private", fchmod(file->fd, PRIVATE_FILE));
    zero_status st = failed && !is_refused(failed)
                         ? zero_cannot(ZERO_ERR_ENV, file->path, "made private")
                         : reserve(file, bytes);
    if (st != ZERO_OK) zero_storage_close_file(file);
    return st;
}

zero_status zero_storage_write(zero_storage_file *file, const void *data, size_t bytes)
{
    const char *from = data;
    while (bytes > 0) {
        ssize_t n;
        int error;
        ZERO_FILE_CALL(n, file->path, "written",
                       write(file->fd, from, zero_min_size(bytes, ZERO_FILE_CALL_BYTES)));
        ZERO_FAIL_IF(n <= 0, ZERO_ERR_ENV, "%s: cannot be written at byte %" PRIu64 ": %s",
                     file->path, file->at, n < 0 ? strerror(errno) : "nothing was written");
        from += n;
        bytes -= (size_t)n;
        file->at += (uint64_t)n;
        error = zero_write_back(file->path, file->fd, &file->begun, file->at);
        ZERO_FAIL_IF(error != 0, ZERO_ERR_ENV, "%s: cannot be written back: %s", file->path,
                     strerror(error));
    }
    return ZERO_OK;
}

zero_status zero_storage_seek(zero_storage_file *file, uint64_t at)
{
    off_t moved;
    ZERO_FILE_CALL(moved, file->path, "written", lseek(file->fd, (off_t)at, SEEK_SET));
    if (moved < 0) return zero_cannot(ZERO_ERR_ENV, file->path, "written");
    file->at = file->begun = at;
    return ZERO_OK;
}

zero_status zero_storage_sync_file(const zero_storage_file *file)
{
    int failed;
    ZERO_FILE_CALL(failed, file->path, "synced", fsync(file->fd));
    return failed ? zero_cannot(ZERO_ERR_ENV, file->path, "synced") : ZERO_OK;
}

zero_status zero_storage_finish(zero_storage_file *file)
{
    int failed;
    zero_status st = zero_storage_sync_file(file);
    file->is_open = false;
    /* Data are safe after a sync, so an interrupted close() is no error. */
    ZERO_WATCHED(file->path, "closed", failed = close(file->fd));
    if (failed && errno != EINTR && st == ZERO_OK)
        st = zero_cannot(ZERO_ERR_ENV, file->path, "closed");
    return st;
}

zero_status zero_storage_put(const zero_storage_dir *dir, const char *name,
                             const void *data, size_t bytes)
{
    ZERO_AT_END(zero_storage_close_file) zero_storage_file file = {0};
    ZERO_TRY(zero_storage_create(dir, name, bytes, &file));
    ZERO_TRY(zero_storage_write(&file, data, bytes));
    return zero_storage_finish(&file);
}

void zero_storage_close_file(zero_storage_file *file)
{
    if (file->is_open) ZERO_WATCHED(file->path, "closed", close(file->fd));
    file->is_open = false;
}
