/* text_files.h - which files FILE, DIR or GLOB stands for.
 *
 * A path that exists is taken as it is; otherwise *, ? and [ make it a pattern. A directory
 * stands for all regular files below it; those whose own or whose directory's name begins
 * with a dot are left out, and links to directories are not followed. The list is sorted by
 * path, byte by byte, so that every rank and every machine reads the same order. */
#pragma once

#include <stdint.h>

#include "zero/status.h"

typedef struct {
    char **paths; /* [n], owned */
    int64_t n, room;
} zero_files;

/* At least one file. ZERO_ERR_IO if nothing is there, matches, or can be listed. */
ZERO_NODISCARD zero_status zero_files_list(const char *spec, zero_files *files);
void zero_files_destroy(zero_files *files);
