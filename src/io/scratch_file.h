/* scratch_file.h - a file without a name on a disk: memory of a slower tier.
 *
 * Nothing of it outlives the process, however that ends: the file never has a name
 * (O_TMPFILE), or loses it at once where the file system cannot do that. All its space is
 * reserved when it is opened, so that a full disk is an error before the first step. It is
 * never synced: it is no checkpoint.
 *
 * It is read and written around the page cache (O_DIRECT) where the file system can do
 * that. Elsewhere pages are dropped after each transfer: they would count as memory of the
 * job.
 *
 * Errors are ZERO_ERR_ENV and name the directory. Nothing here is collective. */
#pragma once

#include "base/fail.h"

/* Addresses, offsets and lengths of transfers are multiples of this many bytes. */
#define ZERO_SCRATCH_ALIGN 4096

#define ZERO_SCRATCH_PATH 1088

typedef struct {
    int fd; /* owned */
    bool is_open;
    bool is_direct;   /* false: through the page cache */
    bool had_no_name; /* false: it had one for a moment */
    unsigned
        memory_align; /* bytes that O_DIRECT wants of addresses; 0: the kernel does not */
    unsigned offset_align; /* say, or the file system has none; the same of offsets */
    uint64_t bytes;        /* all of them are reserved */
    char directory[ZERO_SCRATCH_PATH]; /* for messages; longer ones are cut */
} zero_scratch_file;

/* Makes a file of `bytes` bytes, a multiple of ZERO_SCRATCH_ALIGN, in an existing
 * directory. ZERO_ERR_INVALID if the directory lies in memory (tmpfs), or `bytes` is 0, no
 * such multiple or above 2^62. ZERO_ERR_ENV if it cannot be written, or there is too little
 * space. */
zero_status zero_scratch_file_open(const char *directory, uint64_t bytes,
                                   zero_scratch_file *file);
void zero_scratch_file_close(zero_scratch_file *file); /* accepts a zeroed one */

/* Any thread may call these. A transfer beyond the file's end is ZERO_ERR_INVALID. */
zero_status zero_scratch_file_read(const zero_scratch_file *file, uint64_t at, void *data,
                                   size_t bytes);
zero_status zero_scratch_file_write(const zero_scratch_file *file, uint64_t at,
                                    const void *data, size_t bytes);
