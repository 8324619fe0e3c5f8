/* whole_file.h - one file that a user names, there completely or not at all.
 *
 * It is written under a temporary name beside its place, ".NAME.PID.tmp", synced and renamed; an
 * older file of its name stays until then. A process that is killed may leave the temporary one.
 * Nothing here is collective. */
#pragma once

#include "io/storage.h"

#define ZERO_WHOLE_FILE_NAME 200 /* bytes of a file's own name, at most */

typedef struct {
    zero_storage_dir dir;
    zero_storage_file file;
    char name[ZERO_WHOLE_FILE_NAME + 1];
    char temporary[ZERO_WHOLE_FILE_NAME + 32];
} zero_whole_file;

/* ZERO_ERR_INVALID if the path cannot name such a file: a device, a link, a directory;
 * ZERO_ERR_ENV or ZERO_ERR_IO if nothing can be written there. */
ZERO_NODISCARD zero_status zero_whole_file_begin(zero_whole_file *file, const char *path);
/* Not buffered. After a failure call _abandon(). */
ZERO_NODISCARD zero_status zero_whole_file_write(zero_whole_file *file, const void *data,
                                                 size_t bytes);
/* The file is there; after a failure nothing is, but for an older file of the same name. */
ZERO_NODISCARD zero_status zero_whole_file_end(zero_whole_file *file);
void zero_whole_file_abandon(
    zero_whole_file *file); /* accepts a zeroed one, and one that ended */

/* Both paths lead to one file that exists, by whatever names and links. */
bool zero_whole_file_is_same(const char *a, const char *b);
