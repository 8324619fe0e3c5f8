/* disk_place.h - an empty directory on a disk, for tests of scratch files.
 *
 * It lies in the current directory, which the tests of a build have on a disk; /tmp may be
 * memory. Without a disk the test skips itself. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
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

/* The pages of a file's first bytes that the page cache holds; -1 if the kernel does not say. */
static inline int disk_place_cached_pages(int fd, size_t bytes)
{
    const size_t page = 4096;
    size_t pages = (bytes + page - 1) / page;
    unsigned char *is_cached = malloc(pages);
    void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
    int n = is_cached && map != MAP_FAILED && mincore(map, bytes, is_cached) == 0 ? 0 : -1;
    for (size_t i = 0; n >= 0 && i < pages; i++) n += is_cached[i] & 1;
    if (map != MAP_FAILED) munmap(map, bytes);
    free(is_cached);
    return n;
}
