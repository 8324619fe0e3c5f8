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

#include "base/listener.h"
#include "comm/comm.h"
#include "io/storage.h"

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
zero_status zero_checkpoint_directory_open(zero_comm *comm, const char *path,
                                           const zero_directory_opening *how,
                                           zero_checkpoint_directory *d);
/* Accepts a zeroed one. */
void zero_checkpoint_directory_close(zero_checkpoint_directory *d);

/* ---- all ranks wait while another process has a lock that rank 0 wants ----
 *
 * A run that was killed may hold its locks a little longer: its launcher has died, and its
 * ranks have not. */

#define ZERO_LOCK_PATIENCE 30.0 /* seconds, at most */

/* Tries to take it, on rank 0 alone; if it is busy, may say who has it. */
typedef zero_status zero_lock_taker(void *arg, zero_lock *lock,
                                    char holder[ZERO_STORAGE_HOLDER_TEXT]);

typedef struct {
    zero_lock_taker *take;
    void *arg;
    const char *place;      /* what is locked, for messages: "--metrics FILE" */
    const char *deed;       /* what the holder does: "writes it" */
    const char *option;     /* names the place, so another one may be given: "--metrics" */
    double patience;        /* seconds */
    zero_listener listener; /* of rank 0: it waits, or there are no locks */
} zero_lock_wish;

/* Collective, one verdict: ZERO_ERR_ENV if another process has the lock all that time. A
 * file system without locks grants them to all. */
zero_status zero_await_lock(zero_comm *comm, const zero_lock_wish *wish);
