/* file.h - regular files, opened and read.
 *
 * All reading goes through here, so one mistake has one status and one wording.
 *
 *   - Directories, pipes and devices are refused, and pointers of Git LFS. Opening a pipe
 *     does not
 *     wait for a writer.
 *   - pread(), never a map: a file that shrinks is an error and does not end the process.
 *   - Interrupted calls are repeated, short reads are continued.
 *
 * Errors are ZERO_ERR_IO and name the path. Nothing here is collective. */
#pragma once

#include "io/storage.h"

typedef struct {
    int fd; /* owned */
    bool is_open;
    uint64_t bytes;                    /* its length when it was opened */
    char path[ZERO_STORAGE_FILE_PATH]; /* for messages; longer ones are cut */
} zero_file;

/* What a path leads to; links are followed. */
typedef enum {
    ZERO_PATH_OF_NOTHING, /* or this user cannot see it */
    ZERO_PATH_OF_FILE,
    ZERO_PATH_OF_DIRECTORY,
    ZERO_PATH_OF_OTHER /* or the disk does not say: opening it tells why */
} zero_path_kind;
zero_path_kind zero_path_look(const char *path);

/* A file that a user names, by its path; links are followed. */
zero_status zero_file_open(const char *path, zero_file *file);
/* A file in a directory; a link is refused. */
zero_status zero_file_open_in(const zero_storage_dir *dir, const char *name,
                              zero_file *file);
void zero_file_close(zero_file *file); /* accepts a zeroed one */

/* The device and the inode number of the file: equal in all processes that open it on one
 * machine. */
zero_status zero_file_place(const zero_file *file, uint64_t place[2]);

/* Both paths lead to one file, by whatever names and links; it need not exist yet. */
bool zero_file_is_same(const char *a, const char *b);

/* A descriptor with these flags for a file that a user names, to be written at its end; it
 * is made if it is missing. -1: errno says why. A link is followed only if nobody else can
 * have made it: otherwise another user could lead us to any of our files, and errno is
 * ELOOP. */
int zero_file_open_to_append(const char *path, int flags);
#define ZERO_FILE_IS_LINK \
    "it is a link in a directory that other users can change: name the file itself"

/* Reads `bytes` from offset `at`; a file that ends before is an error. */
zero_status zero_file_read(const zero_file *file, uint64_t at, void *data, size_t bytes);
/* Reads up to `bytes` from offset `at`; *read is 0 at the end of the file, and may be less
 * before it. */
zero_status zero_file_read_some(const zero_file *file, uint64_t at, void *data,
                                size_t bytes, size_t *read);
/* Lets the kernel read these bytes ahead, while the caller does other things. */
void zero_file_expect(const zero_file *file, uint64_t at, uint64_t bytes);
