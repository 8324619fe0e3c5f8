#include "io/whole_file.h"

#include <unistd.h>

#include "base/grow.h"
#include "io/system_call.h"

/* A rename would put a file in the place of a device or of a link. */
static zero_status check_target(const zero_whole_file *f, const char *path)
{
    struct stat info;
    ZERO_INVALID_IF(zero_examine_in(f->dir.fd, f->name, &info) && !S_ISREG(info.st_mode),
                    "%.200s: expected a regular file or a new name, found a %s", path,
                    S_ISDIR(info.st_mode)   ? "directory"
                    : S_ISLNK(info.st_mode) ? "symbolic link"
                                            : "device, pipe or socket");
    return ZERO_OK;
}

/* ---- the temporary name ---- */

#define MOST_ALIKE \
    9 /* names: another user's files stay, and leftovers on a mount without locks */
#define MOST_TURNS \
    9 /* tries of a name, which another process may take or remove at the same time */

typedef enum { OURS, BUSY, IN_THE_WAY, AGAIN } verdict;

/* The name leads to the open file, and not to another one that has taken its place
 * since. */
static bool is_named(const zero_whole_file *f, int fd)
{
    struct stat open, named;
    return zero_examine_open(fd, f->temporary, &open) &&
           zero_examine_in(f->dir.fd, f->temporary, &named) &&
           zero_is_one_file(&open, &named);
}

/* A leftover that nobody writes is removed. */
static verdict examine(const zero_whole_file *f)
{
    struct stat info;
    zero_lock lock;
    int fd;
    ZERO_FILE_CALL(
        fd, f->temporary, "opened",
        openat(f->dir.fd, f->temporary, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (fd < 0) return errno == ENOENT ? AGAIN : IN_THE_WAY;
    verdict v = IN_THE_WAY;
    bool is_own = zero_examine_open(fd, f->temporary, &info) && S_ISREG(info.st_mode) &&
                  info.st_uid == geteuid();
    if (is_own && zero_lock_take(fd, f->temporary, &lock) == ZERO_OK) {
        if (!is_named(f, fd))
            v = AGAIN;
        else if (lock == ZERO_LOCK_BUSY)
            v = BUSY;
        else if (lock == ZERO_LOCK_TAKEN &&
                 zero_storage_remove_file(&f->dir, f->temporary) == ZERO_OK)
            v = AGAIN;
    }
    close(fd);
    return v;
}

static zero_status create(zero_whole_file *f, verdict *v)
{
    zero_lock lock;
    if (zero_storage_has(&f->dir, f->temporary)) {
        *v = examine(f);
        return ZERO_OK;
    }
    *v = AGAIN;
    zero_status st = zero_storage_create(&f->dir, f->temporary, 0, &f->file);
    if (st != ZERO_OK) return zero_storage_has(&f->dir, f->temporary) ? ZERO_OK : st;
    ZERO_TRY(zero_lock_take(f->file.fd, f->file.path, &lock));
    /* Another process may have taken it for a leftover before it was locked. */
    bool is_ours = lock != ZERO_LOCK_BUSY && is_named(f, f->file.fd);
    if (is_ours) *v = OURS;
    if (!is_ours) zero_storage_close_file(&f->file);
    return ZERO_OK;
}

/* ".NAME.tmp" or, beside files that stay, ".NAME.2.tmp" and so on. */
static zero_status take_name(zero_whole_file *f, const char *path,
                             zero_whole_file_wish wish, zero_lock *lock)
{
    for (int i = 1; i <= MOST_ALIKE; i++) {
        char number[8] = "";
        verdict v = AGAIN;
        if (i > 1) zero_print(number, ".%d", i);
        zero_print(f->temporary, ".%s%s.tmp", f->name, number);
        for (int turn = 0; v == AGAIN && turn < MOST_TURNS; turn++) ZERO_TRY(create(f, &v));
        if (v == OURS) return ZERO_OK;
        if (v == IN_THE_WAY || wish == ZERO_WHOLE_FILE_BESIDE) continue;
        *lock = ZERO_LOCK_BUSY;
        return zero_fail(ZERO_ERR_ENV, "%.200s: another process writes this file", path);
    }
    return zero_fail(ZERO_ERR_ENV,
                     "%.200s: cannot be written: %s/.%s.tmp and others like it are in the "
                     "way: remove them",
                     path, f->dir.path, f->name);
}

/* ---- the file ---- */

zero_status zero_whole_file_begin(zero_whole_file *f, const char *path,
                                  zero_whole_file_wish wish, zero_lock *lock)
{
    char folder[ZERO_STORAGE_PATH];
    zero_lock ignored;
    *f = (zero_whole_file){0};
    lock = lock ? lock : &ignored;
    *lock = ZERO_LOCK_TAKEN;
    /* "a/b/c" is c in a/b. */
    const char *slash = strrchr(path, '/'), *own = slash ? slash + 1 : path;
    size_t before = (size_t)(own - path), n = strlen(own);
    bool is_dots = zero_same_text(own, ".") || zero_same_text(own, "..");
    ZERO_INVALID_IF(n == 0 || n > ZERO_WHOLE_FILE_NAME || is_dots ||
                        before >= ZERO_STORAGE_PATH,
                    "%.200s: expected the path of a file, whose own name has 1 to %d bytes",
                    path, ZERO_WHOLE_FILE_NAME);
    memcpy(f->name, own, n + 1);
    if (before > 1) before--; /* without its slash */
    snprintf(folder, ZERO_STORAGE_PATH, "%.*s", (int)before, path);
    if (before == 0) snprintf(folder, ZERO_STORAGE_PATH, ".");
    ZERO_TRY(zero_storage_open(folder, &f->dir));
    f->dir.is_public = true;
    zero_status st = check_target(f, path);
    if (st == ZERO_OK) st = take_name(f, path, wish, lock);
    if (st != ZERO_OK) zero_whole_file_abandon(f);
    return st;
}

zero_status zero_whole_file_write(zero_whole_file *f, const void *data, size_t bytes)
{
    return zero_storage_write(&f->file, data, bytes);
}

static void remove_temporary(const zero_whole_file *f)
{
    ZERO_WATCHED_FOR(ZERO_FILE_PATIENCE, f->dir.path, "cleared",
                     unlinkat(f->dir.fd, f->temporary, 0));
}

zero_status zero_whole_file_end(zero_whole_file *f)
{
    zero_status st = zero_storage_finish(&f->file);
    if (st == ZERO_OK) st = zero_storage_rename(&f->dir, f->temporary, f->name);
    if (st == ZERO_OK) st = zero_storage_sync(&f->dir);
    if (st != ZERO_OK) remove_temporary(f);
    zero_storage_close(&f->dir);
    return st;
}

void zero_whole_file_abandon(zero_whole_file *f)
{
    if (f->file.is_open) remove_temporary(f);
    zero_storage_close_file(&f->file);
    zero_storage_close(&f->dir);
}

zero_status zero_whole_file_put(const char *path, const void *text, size_t len)
{
    ZERO_AT_END(zero_whole_file_abandon) zero_whole_file f = {0};
    ZERO_TRY(zero_whole_file_begin(&f, path, ZERO_WHOLE_FILE_ALONE, NULL));
    ZERO_TRY(zero_whole_file_write(&f, text, len));
    return zero_whole_file_end(&f);
}
