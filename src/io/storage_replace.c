/* A file that is replaced: readers see the old one or the new one, whole. */
#include <stdio.h>
#include <unistd.h>

#include "io/storage.h"
#include "io/system_call.h"

#define MOST_NAME 48 /* of a file; the temporary one has a longer name */

static zero_status write_whole(const zero_storage_dir *dir, const char *name,
                               const void *data, size_t bytes)
{
    zero_storage_file file;
    ZERO_TRY(zero_storage_create(dir, name, bytes, &file));
    zero_status st = zero_storage_write(&file, data, bytes);
    if (st == ZERO_OK) return zero_storage_finish(&file);
    zero_storage_close_file(&file);
    return st;
}

zero_status zero_storage_replace(const zero_storage_dir *dir, const char *name,
                                 const void *data, size_t bytes)
{
    char temporary[MOST_NAME + 8];
    snprintf(temporary, sizeof temporary, ".tmp-%.*s", MOST_NAME, name);
    int failed = unlinkat(dir->fd, temporary, 0); /* left by a crash */
    if (failed && errno != ENOENT)
        return zero_fail(ZERO_ERR_ENV, "%s/%s: cannot be removed: %s", dir->path, temporary,
                         strerror(errno));
    zero_status st = write_whole(dir, temporary, data, bytes);
    if (st == ZERO_OK) st = zero_storage_rename(dir, temporary, name);
    if (st == ZERO_OK) return zero_storage_sync(dir);
    unlinkat(dir->fd, temporary, 0); /* a failed clean-up is not worth a message */
    return st;
}
