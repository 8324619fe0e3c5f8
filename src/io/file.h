/* file.h - regular files, opened and read.
 *
 * All reading goes through here, so one mistake has one status and one wording.
 *
 *   - Directories, pipes and devices are refused. Opening a pipe does not wait for a writer.
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
    ZERO_PATH_OF_NOTHING, /* or it cannot be examined */
    ZERO_PATH_OF_FILE,
    ZERO_PATH_OF_DIRECTORY,
    ZERO_PATH_OF_OTHER
} zero_path_kind;
zero_path_kind zero_path_look(const char *path);

/* A file that a user names, by its path; links are followed. */
ZERO_NODISCARD zero_status zero_file_open(const char *path, zero_file *file);
/* A file in a directory; a link is refused. */
ZERO_NODISCARD zero_status zero_file_open_in(const zero_storage_dir *dir, const char *name,
                                             zero_file *file);
void zero_file_close(zero_file *file); /* accepts a zeroed one */

/* Reads `bytes` from offset `at`; a file that ends before is an error. */
ZERO_NODISCARD zero_status zero_file_read(const zero_file *file, uint64_t at, void *data,
                                          size_t bytes);
/* Reads up to `bytes` from offset `at`; *read is 0 at the end of the file, and may be less before
 * it. */
ZERO_NODISCARD zero_status zero_file_read_some(const zero_file *file, uint64_t at,
                                               void *data, size_t bytes, size_t *read);
