/* storage.h - directories that exist completely or not at all, and the writing of files.
 *
 * Nothing is written in place. A directory is made under a temporary name, its files are
 * created, written, synced and closed; then the directory is synced, renamed, and its
 * parent synced. All code that writes checkpoints calls this and nothing else. file.h
 * reads.
 *
 *   - Interrupted calls are repeated, short writes are continued.
 *   - A failed sync is a failed file: the kernel may have dropped data that it could not
 *     write, so a second try would succeed without them.
 *   - Files have mode 0600 and directories 0700, whatever the umask, but on mounts that
 *     have modes of
 *     their own. In a public directory they have 0644 and 0755, less the umask.
 *   - Names below a directory are never followed if they are links: its owner may be
 *     another user.
 *   - write(), never a map: a full disk is an error and does not end the process.
 *
 * Errors name the path: ZERO_ERR_ENV where something cannot be written or this process has
 * no descriptors left, ZERO_ERR_IO where it cannot be read. Nothing here is collective. */
#pragma once

#include "base/fail.h"

#define ZERO_STORAGE_PATH        1024
#define ZERO_STORAGE_FILE_PATH   (ZERO_STORAGE_PATH + 64)
#define ZERO_STORAGE_HOLDER_TEXT 128

typedef struct {
    int fd;                       /* owned */
    bool is_open;                 /* a zeroed one is not */
    bool is_public;               /* files that are created in it are for all users */
    bool is_signed;               /* it is locked, and its ZERO_STORAGE_HOLDER is ours */
    char path[ZERO_STORAGE_PATH]; /* for messages; longer ones are cut */
} zero_storage_dir;

/* A directory by its path, following links: users choose it. ZERO_ERR_INVALID if the path
 * has ZERO_STORAGE_PATH bytes or more. */
zero_status zero_storage_open(const char *path, zero_storage_dir *dir);
/* The same; a missing one is made, and its name is durable. Its parent must exist. */
zero_status zero_storage_open_or_make(const char *path, zero_storage_dir *dir);
/* A directory within another; no link is followed. */
zero_status zero_storage_enter(const zero_storage_dir *parent, const char *name,
                               zero_storage_dir *dir);
/* A new one: a name that is taken is an error. */
zero_status zero_storage_make(const zero_storage_dir *parent, const char *name,
                              zero_storage_dir *dir);
/* False if others have rights to the directory. */
bool zero_storage_is_private(const zero_storage_dir *dir);
/* False if it belongs to another user, who may change what is in it. */
bool zero_storage_is_own(const zero_storage_dir *dir);
zero_status zero_storage_make_public(const zero_storage_dir *parent, const char *name,
                                     zero_storage_dir *dir);
/* A public one by its path: a missing one is made. Its parent must exist. */
zero_status zero_storage_open_or_make_public(const char *path, zero_storage_dir *dir);
void zero_storage_close(zero_storage_dir *dir); /* accepts a zeroed one */

/* ZERO_ERR_INVALID if a path has more than `most` bytes: cut, it would name another
 * directory. */
zero_status zero_storage_check_length(const char *path, size_t most);

/* "DIR/NAME", for messages. */
void zero_storage_path(const zero_storage_dir *dir, const char *name,
                       char path[ZERO_STORAGE_FILE_PATH]);

/* Makes the names in the directory durable. */
zero_status zero_storage_sync(const zero_storage_dir *dir);
/* Makes the directory's own name durable; until then a loss of power may take it with all
 * it holds. Existing directories need it, too: their maker may have died before. */
zero_status zero_storage_sync_parent(const zero_storage_dir *dir);
/* Renames within a directory; the new name must not be that of a directory with files. */
zero_status zero_storage_rename(const zero_storage_dir *dir, const char *from,
                                const char *to);
/* Removes a directory and the files in it; a missing one is no error. A file that cannot be
 * removed stays, and the directory with it: the others are removed, and the first failure
 * is returned. A link, or anything else that is not a directory, is never followed and
 * stays: ZERO_ERR_ENV. */
zero_status zero_storage_remove(const zero_storage_dir *dir, const char *name);
/* Removes a file, or a link as such; a missing one is no error. */
zero_status zero_storage_remove_file(const zero_storage_dir *dir, const char *name);
/* ZERO_ERR_ENV if that name is a link, or anything else that is not a directory. */
zero_status zero_storage_check_removable(const zero_storage_dir *dir, const char *name);
/* True if that name exists. */
bool zero_storage_has(const zero_storage_dir *dir, const char *name);
/* Bytes that may still be written. */
zero_status zero_storage_room(const zero_storage_dir *dir, uint64_t *bytes);
/* ZERO_ERR_ENV unless the path of a directory that was opened by it still leads there: it
 * may have been moved, or another one may have taken its place. */
zero_status zero_storage_check_place(const zero_storage_dir *dir);

/* ---- locks (storage_lock.c) ---- */

/* While a directory is locked this file in it has host and process id of the holder. */
#define ZERO_STORAGE_HOLDER ".lock"

typedef enum {
    ZERO_LOCK_TAKEN, /* until the descriptor is closed */
    ZERO_LOCK_BUSY,  /* another process has it */
    ZERO_LOCK_NONE,  /* this file system has no locks */
} zero_lock;

/* Takes the lock of an open file or directory, if nobody has it. Never waits. Pipes and
 * devices are everybody's. */
zero_status zero_lock_take(int fd, const char *path, zero_lock *lock);
/* Writes ZERO_STORAGE_HOLDER. The caller has the lock; closing the directory removes the
 * file. */
zero_status zero_storage_sign(zero_storage_dir *dir);
/* Says whose lock it is: "process 123 on node7", or "another process" if that is
 * unknown. */
void zero_storage_holder(const zero_storage_dir *dir, char text[ZERO_STORAGE_HOLDER_TEXT]);

/* Calls `visit` with each name in the directory, except "." and "..", in no order. The
 * first failure ends the walk. */
zero_status zero_storage_list(const zero_storage_dir *dir,
                              zero_status (*visit)(void *arg, const char *name), void *arg);

/* ---- files, written ---- */

typedef struct {
    int fd;
    bool is_open;
    uint64_t at;    /* bytes written so far */
    uint64_t begun; /* of these, on their way to the disk (write_back.h) */
    char path[ZERO_STORAGE_FILE_PATH]; /* for messages */
} zero_storage_file;

/* A new file; space for `bytes` is reserved where the file system can do that. */
zero_status zero_storage_create(const zero_storage_dir *dir, const char *name,
                                uint64_t bytes, zero_storage_file *file);
zero_status zero_storage_write(zero_storage_file *file, const void *data, size_t bytes);
/* The next write begins at this byte; what is left out before it is to be written, too. */
zero_status zero_storage_seek(zero_storage_file *file, uint64_t at);
zero_status zero_storage_sync_file(const zero_storage_file *file);
/* Syncs and closes. After a failure the file is closed, too, and has to be removed. */
zero_status zero_storage_finish(zero_storage_file *file);
void zero_storage_close_file(zero_storage_file *file); /* accepts a zeroed one */
/* A whole file of these bytes: created, written, finished. */
zero_status zero_storage_put(const zero_storage_dir *dir, const char *name,
                             const void *data, size_t bytes);
