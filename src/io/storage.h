/* storage.h - directories of files that are there completely, or not at all.
 *
 * Nothing is written in place. A directory is made under a temporary name, its files are
 * created, written, synced and closed; then the directory is synced, renamed, and its parent
 * synced. Everything that writes checkpoints calls this and nothing else.
 *
 *   - Calls that a signal interrupts, and short writes, are gone on with.
 *   - A failed sync is a failed file: the kernel may have dropped what it could not write, so
 *     a second try would succeed without the data.
 *   - Files have mode 0600 and directories 0700, whatever the umask.
 *   - write() and pread(), never a map: a full disk, or a file that shrinks, is an error and
 *     not the end of the process.
 *
 * Errors are ZERO_ERR_ENV where something cannot be written, ZERO_ERR_IO where it cannot be
 * read, and name the path. Nothing here is collective. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "zero/status.h"

#define ZERO_STORAGE_PATH 1024

typedef struct {
    int fd;                       /* owned */
    bool is_open;                 /* a zeroed one is not */
    char path[ZERO_STORAGE_PATH]; /* for messages, and cut there if it is longer */
} zero_storage_dir;

/* A directory by its path, following links: users choose it. ZERO_ERR_INVALID if the path has
 * ZERO_STORAGE_PATH bytes or more. */
ZERO_NODISCARD zero_status zero_storage_open(const char *path, zero_storage_dir *dir);
/* The same, made if there is none, and its name is durable; its parent must be there. */
ZERO_NODISCARD zero_status zero_storage_open_or_make(const char *path,
                                                     zero_storage_dir *dir);
/* A directory within another; no link is followed. */
ZERO_NODISCARD zero_status zero_storage_enter(const zero_storage_dir *parent,
                                              const char *name, zero_storage_dir *dir);
/* A new one: it is an error if the name is taken. */
ZERO_NODISCARD zero_status zero_storage_make(const zero_storage_dir *parent,
                                             const char *name, zero_storage_dir *dir);
void zero_storage_close(zero_storage_dir *dir); /* accepts a zeroed one */

/* Makes the names in the directory durable. */
ZERO_NODISCARD zero_status zero_storage_sync(const zero_storage_dir *dir);
/* Makes the directory's own name durable: what is in it is lost with the power as long as that
 * may be. Also for one that is there already: whoever made it may not have come this far. */
ZERO_NODISCARD zero_status zero_storage_sync_parent(const zero_storage_dir *dir);
/* Renames within a directory; the new name must not be that of a directory with files. */
ZERO_NODISCARD zero_status zero_storage_rename(const zero_storage_dir *dir,
                                               const char *from, const char *to);
/* Removes a directory and the files in it; it is no error if it is not there. */
ZERO_NODISCARD zero_status zero_storage_remove(const zero_storage_dir *dir,
                                               const char *name);
/* Whether there is something of that name. */
bool zero_storage_has(const zero_storage_dir *dir, const char *name);
/* Bytes that may still be written. */
ZERO_NODISCARD zero_status zero_storage_room(const zero_storage_dir *dir, uint64_t *bytes);
/* Until the directory is closed no other process gets this. ZERO_ERR_INVALID if one has it;
 * file systems without locks grant it to everybody. */
ZERO_NODISCARD zero_status zero_storage_lock(const zero_storage_dir *dir);

/* Calls `visit` with each name in the directory, "." and ".." left out, in no order; ends with
 * its first failure. */
ZERO_NODISCARD zero_status zero_storage_list(const zero_storage_dir *dir,
                                             zero_status (*visit)(void *arg,
                                                                  const char *name),
                                             void *arg);

/* ---- files ---- */

typedef struct {
    int fd;
    bool is_open;
    uint64_t at, bytes;                /* writing: offset; reading: the file's length */
    char path[ZERO_STORAGE_PATH + 64]; /* for messages */
} zero_storage_file;

/* A new file, with room for `bytes` reserved where the file system can do that. */
ZERO_NODISCARD zero_status zero_storage_create(const zero_storage_dir *dir,
                                               const char *name, uint64_t bytes,
                                               zero_storage_file *file);
ZERO_NODISCARD zero_status zero_storage_write(zero_storage_file *file, const void *data,
                                              size_t bytes);
/* Syncs and closes. After a failure the file is closed as well, and to be removed. */
ZERO_NODISCARD zero_status zero_storage_finish(zero_storage_file *file);

/* An existing regular file, no link. */
ZERO_NODISCARD zero_status zero_storage_open_file(const zero_storage_dir *dir,
                                                  const char *name,
                                                  zero_storage_file *file);
/* A file that a user names, by its path; links are followed. */
ZERO_NODISCARD zero_status zero_storage_open_path(const char *path,
                                                  zero_storage_file *file);
/* All `bytes` from offset `at`, or ZERO_ERR_IO. */
ZERO_NODISCARD zero_status zero_storage_read(const zero_storage_file *file, uint64_t at,
                                             void *data, size_t bytes);
void zero_storage_close_file(zero_storage_file *file); /* accepts a zeroed one */
