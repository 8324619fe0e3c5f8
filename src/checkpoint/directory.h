/* directory.h - a directory of checkpoints, opened by all ranks before they save.
 *
 *     rank 0                                every other rank
 *     opens or makes it
 *     takes its lock, or waits for it       waits, too
 *     removes leftovers of crashed runs
 *     makes a probe: a directory with a file,
 *     synced and renamed
 *                                           opens the same path, finds the probe and writes
 *                                             a file
 *                                           in it
 *     removes the probe
 *     tells which steps are there
 *
 * A rank that does not find the probe sees another directory of that name, on another
 * machine, and shards would be scattered. A file system that cannot write, sync or rename
 * takes no checkpoint. That is found before hours are spent on training. */
#pragma once

#include "checkpoint/await_lock.h"

typedef struct {
    zero_storage_dir dir; /* open on all ranks; rank 0 holds its lock */
    int64_t *steps;       /* [n] published, ascending, on all ranks; owned */
    int n;
    int64_t stuck; /* zero_checkpoint_prune()'s */
} zero_checkpoint_directory;

typedef enum {
    ZERO_DIRECTORY_MAY_BE_NEW, /* made if it is missing; its parent must exist */
    ZERO_DIRECTORY_MUST_EXIST, /* for resuming: a mistyped name is not made */
} zero_directory_wish;

typedef struct {
    zero_directory_wish wish;
    double patience; /* seconds to wait for another process's lock: ZERO_LOCK_PATIENCE */
    /* Rank 0 tells that it waits for the lock, what could not be removed or written, and
     * what the file system cannot do. */
    zero_listener listener;
} zero_directory_opening;

/* Collective, one verdict: ZERO_ERR_INVALID if the path is too long, cannot be opened or
 * made, or is itself a checkpoint; ZERO_ERR_ENV if it stays locked by another process,
 * which is named, if it cannot be written, or a rank sees another directory or cannot open
 * it; ZERO_ERR_IO if it cannot be listed. */
ZERO_NODISCARD zero_status zero_checkpoint_directory_open(zero_comm *comm, const char *path,
                                                          const zero_directory_opening *how,
                                                          zero_checkpoint_directory *d);
/* Accepts a zeroed one. */
void zero_checkpoint_directory_close(zero_checkpoint_directory *d);
