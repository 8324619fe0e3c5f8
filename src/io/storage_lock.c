/* Locks of files and directories. A lock is flock(), which ends with its holder, however
 * that dies. The file in a locked directory only says whose it is, so it may be stale, torn
 * or missing. */
#include <sys/file.h>
#include <unistd.h>

#include "io/storage.h"
#include "io/system_call.h"

#define HOST 65 /* bytes of a name, with its end */

zero_status zero_lock_take(int fd, const char *path, zero_lock *lock)
{
    struct stat info;
    int failed;
    *lock = ZERO_LOCK_TAKEN;
    if (!zero_examine_open(fd, path, &info))
        return zero_cannot(ZERO_ERR_ENV, path, "examined");
    if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) return ZERO_OK;
    ZERO_FILE_CALL(failed, path, "locked", flock(fd, LOCK_EX | LOCK_NB));
    bool has_locks = !failed || (errno != ENOLCK && errno != ENOSYS && errno != EOPNOTSUPP);
    if (failed && has_locks && errno != EWOULDBLOCK)
        return zero_cannot(ZERO_ERR_ENV, path, "locked");
    if (failed) *lock = has_locks ? ZERO_LOCK_BUSY : ZERO_LOCK_NONE;
    return ZERO_OK;
}

zero_status zero_storage_sign(zero_storage_dir *dir)
{
    zero_storage_file file;
    int failed; /* one that was left by a crash */
    ZERO_SPACE_CALL(failed, dir->path, "locked", unlinkat(dir->fd, ZERO_STORAGE_HOLDER, 0));
    ZERO_FAIL_IF(failed && errno != ENOENT, ZERO_ERR_ENV,
                 "%s/" ZERO_STORAGE_HOLDER ": cannot be replaced: %s", dir->path,
                 strerror(errno));
    ZERO_TRY(zero_storage_create(dir, ZERO_STORAGE_HOLDER, 0, &file));
    dir->is_signed = true;
    /* "node7 123": one line, without a sync, because it is of no use after a crash. */
    char host[HOST] = "", text[ZERO_STORAGE_HOLDER_TEXT];
    if (gethostname(host, sizeof host - 1) != 0 || host[0] == '\0')
        zero_print(host, "localhost");
    int n = zero_print(text, "%s %ld\n", host, (long)getpid());
    zero_status st = zero_storage_write(&file, text, (size_t)n);
    zero_storage_close_file(&file);
    return st;
}

static bool read_holder(const zero_storage_dir *dir, char *text, size_t size)
{
    int fd;
    ssize_t n;
    ZERO_FILE_CALL(fd, dir->path, "examined",
                   openat(dir->fd, ZERO_STORAGE_HOLDER,
                          O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (fd < 0) return false;
    ZERO_FILE_CALL(n, dir->path, "examined", read(fd, text, size - 1));
    ZERO_WATCHED(dir->path, "examined", close(fd));
    if (n <= 0) return false;
    text[n] = '\0';
    return true;
}

void zero_storage_holder(const zero_storage_dir *dir, char text[ZERO_STORAGE_HOLDER_TEXT])
{
    char all[ZERO_STORAGE_HOLDER_TEXT], host[HOST];
    long pid = 0;
    snprintf(text, ZERO_STORAGE_HOLDER_TEXT, "another process");
    if (!read_holder(dir, all, sizeof all)) return;
    if (sscanf(all, "%64s %ld", host, &pid) != 2 || pid <= 0) return;
    snprintf(text, ZERO_STORAGE_HOLDER_TEXT, "process %ld on %s", pid, host);
}
