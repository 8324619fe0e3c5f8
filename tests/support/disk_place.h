/* disk_place.h - an empty directory on a disk, for tests of scratch files.
 *
 * It lies in the current directory, which the tests of a build have on a disk; /tmp may be
 * memory. Without a disk the test skips itself. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statfs.h>

#include <dirent.h>
#include <linux/magic.h>

/* `name` ends in XXXXXX, which is replaced. False if the directory cannot be made. */
static inline bool disk_place_make(char *name)
{
    struct statfs fs;
    if (statfs(".", &fs) != 0 || fs.f_type == TMPFS_MAGIC) {
        printf("skipped: the current directory lies in memory\n");
        exit(77);
    }
    return mkdtemp(name) != NULL;
}

/* The number of names in it; -1 if it cannot be read. */
static inline int disk_place_names(const char *name)
{
    int n = 0;
    DIR *dir = opendir(name);
    if (!dir) return -1;
    while (readdir(dir)) n++;
    closedir(dir);
    return n - 2; /* "." and ".." */
}
