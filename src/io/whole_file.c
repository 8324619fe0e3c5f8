#include "io/whole_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/system_call.h"

/* "a/b/c" is c in a/b. */
static zero_status split(const char *path, char folder[ZERO_STORAGE_PATH],
                         char name[ZERO_WHOLE_FILE_NAME + 1])
{
    const char *slash = strrchr(path, '/'), *own = slash ? slash + 1 : path;
    size_t before = (size_t)(own - path), n = strlen(own);
    bool is_dots = strcmp(own, ".") == 0 || strcmp(own, "..") == 0;
    if (n == 0 || n > ZERO_WHOLE_FILE_NAME || is_dots || before >= ZERO_STORAGE_PATH)
        return zero_fail(
            ZERO_ERR_INVALID,
            "%.200s: expected the path of a file, whose own name has 1 to %d bytes", path,
            ZERO_WHOLE_FILE_NAME);
    memcpy(name, own, n + 1);
    snprintf(folder, ZERO_STORAGE_PATH, "%.*s", (int)before, path);
    if (before == 0) snprintf(folder, ZERO_STORAGE_PATH, ".");
    return ZERO_OK;
}

/* A rename would put a file in the place of a device or of a link. */
static zero_status check_target(const zero_whole_file *f, const char *path)
{
    struct stat info;
    int failed;
    ZERO_FILE_CALL(failed, path, "examined",
                   fstatat(f->dir.fd, f->name, &info, AT_SYMLINK_NOFOLLOW));
    if (failed || S_ISREG(info.st_mode)) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "%.200s: expected a regular file or a new name, found a %s", path,
                     S_ISDIR(info.st_mode)   ? "directory"
                     : S_ISLNK(info.st_mode) ? "symbolic link"
                                             : "device, pipe or socket");
}

zero_status zero_whole_file_begin(zero_whole_file *f, const char *path)
{
    char folder[ZERO_STORAGE_PATH];
    *f = (zero_whole_file){0};
    ZERO_TRY(split(path, folder, f->name));
    ZERO_TRY(zero_storage_open(folder, &f->dir));
    f->dir.is_public = true;
    snprintf(f->temporary, sizeof f->temporary, ".%s.%ld.tmp", f->name, (long)getpid());
    zero_status st = check_target(f, path);
    if (st == ZERO_OK) st = zero_storage_create(&f->dir, f->temporary, 0, &f->file);
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

bool zero_whole_file_is_same(const char *a, const char *b)
{
    struct stat of_a, of_b;
    int has_no_a, has_no_b;
    ZERO_FILE_CALL(has_no_a, a, "examined", stat(a, &of_a));
    ZERO_FILE_CALL(has_no_b, b, "examined", stat(b, &of_b));
    return !has_no_a && !has_no_b && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino;
}
