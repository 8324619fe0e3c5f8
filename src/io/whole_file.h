/* whole_file.h - one file that a user names, there completely or not at all.
 *
 * It is written under a temporary name beside its place, ".NAME.tmp", synced and renamed;
 * an older file of its name stays until then. The temporary file is locked while it is
 * written, so one process at a time writes a file, and what a killed process left is known
 * as such and replaced. Nothing here is collective. */
#pragma once

#include "io/storage.h"

#define ZERO_WHOLE_FILE_NAME 200 /* bytes of a file's own name, at most */

typedef struct {
    zero_storage_dir dir;
    zero_storage_file file;
    char name[ZERO_WHOLE_FILE_NAME + 1];
    char temporary[ZERO_WHOLE_FILE_NAME + 32];
} zero_whole_file;

typedef enum {
    ZERO_WHOLE_FILE_ALONE, /* ZERO_ERR_ENV if another process writes it */
    /* Another rank of this job may write it at the same time: the last to end wins. */
    ZERO_WHOLE_FILE_BESIDE,
} zero_whole_file_wish;

/* ZERO_ERR_INVALID if the path cannot name such a file: a device, a link, a directory;
 * ZERO_ERR_ENV or ZERO_ERR_IO if nothing can be written there. *lock, which may be NULL, is
 * ZERO_LOCK_BUSY if another process writes the file. */
zero_status zero_whole_file_begin(zero_whole_file *file, const char *path,
                                  zero_whole_file_wish wish, zero_lock *lock);
/* Not buffered. After a failure call _abandon(). */
zero_status zero_whole_file_write(zero_whole_file *file, const void *data, size_t bytes);
/* The file is there; after a failure nothing is, but for an older file of the same name. */
zero_status zero_whole_file_end(zero_whole_file *file);
void zero_whole_file_abandon(
    zero_whole_file *file); /* accepts a zeroed one, and one that ended */

/* The three calls for text[len]. */
zero_status zero_whole_file_put(const char *path, const void *text, size_t len);
