/* file_list.h - the files that FILE, DIR or GLOB stands for.
 *
 * A path that exists is taken as it is; otherwise *, ? and [ make it a pattern. A directory
 * stands for all regular files below it, without hidden files and directories (whose names
 * begin with a dot); links to directories are not followed. The list is sorted by path,
 * byte by byte, so every rank and every machine reads the same order. */
#pragma once

#include "base/fail.h"

typedef struct {
    char **paths; /* [n], owned */
    int64_t n, capacity;
    bool has_directory; /* some were found in a directory: nobody named them */
} zero_files;

/* Lists one file or more. ZERO_ERR_IO if none is found, or a directory cannot be listed.
 * The message names the option and the other words that it takes, as in "self, or ". */
zero_status zero_files_list(const char *option, const char *others, const char *spec,
                            zero_files *files);
void zero_files_destroy(zero_files *files);

/* True if this path leads to one of those files, by whatever names and links. */
bool zero_files_have(const char *spec, const char *path);
/* True if a file that is made at this path, or in a directory at it, would be one of those
 * files. */
bool zero_files_would_have(const char *spec, const char *path);
