/* directory.h - a directory of checkpoints, opened by all ranks before they save.
 *
 *     rank 0                                every other rank
 *     opens or makes it, takes its lock
 *     removes leftovers of crashed runs
 *     makes a probe
 *                                           opens the same path and looks for the probe
 *     removes the probe
 *     tells which steps are there
 *
 * A rank that does not find the probe sees another directory of that name, on another machine, and
 * shards would be scattered. That is found before hours are spent on training. */
#pragma once

#include "comm/comm.h"
#include "io/storage.h"

typedef struct {
    zero_storage_dir dir; /* open on all ranks; rank 0 holds its lock */
    int64_t *steps;       /* [n] published, ascending, on all ranks; owned */
    int n;
} zero_checkpoint_directory;

typedef enum {
    ZERO_DIRECTORY_MAY_BE_NEW, /* made if it is missing; its parent must exist */
    ZERO_DIRECTORY_MUST_EXIST, /* for resuming: a mistyped name is not made */
} zero_directory_wish;

/* Collective, one verdict: ZERO_ERR_INVALID if the path is too long, cannot be opened or made, is
 * itself a checkpoint, or is locked by another process; ZERO_ERR_ENV if it cannot be written, or
 * a rank sees another directory; ZERO_ERR_IO if it cannot be listed. */
ZERO_NODISCARD zero_status zero_checkpoint_directory_open(zero_comm *comm, const char *path,
                                                          zero_directory_wish wish,
                                                          zero_checkpoint_directory *d);
/* Accepts a zeroed one. */
void zero_checkpoint_directory_close(zero_checkpoint_directory *d);
