#include "checkpoint/directory.h"

#include <stdlib.h>

#include "base/fail.h"
#include "checkpoint/list.h"
#include "checkpoint/manifest.h"

/* The temporary name of a step that is not being saved now. A probe left by a crash is removed
 * like any leftover. */
#define PROBE ".tmp-step-00000000"

/* ---- rank 0 ---- */

static zero_status open_or_make(const char *path, zero_directory_wish wish,
                                zero_storage_dir *dir)
{
    bool must_exist = wish == ZERO_DIRECTORY_MUST_EXIST;
    zero_status st =
        must_exist ? zero_storage_open(path, dir) : zero_storage_open_or_make(path, dir);
    if (st == ZERO_OK) return must_exist ? zero_storage_sync_parent(dir) : ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID, "%s%s", zero_last_error(),
                     must_exist ? ", so there is nothing to resume" : "");
}

/* Elsewhere a checkpoint may be given by its path; here it would get checkpoints inside. */
static zero_status refuse_checkpoint(const zero_storage_dir *dir)
{
    if (!zero_storage_has(dir, ZERO_MANIFEST_NAME)) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "%s is a checkpoint: give the directory that it is in", dir->path);
}

static zero_status make_probe(const zero_storage_dir *dir)
{
    zero_storage_dir probe;
    ZERO_TRY(zero_storage_make(dir, PROBE, &probe));
    zero_storage_close(&probe);
    return ZERO_OK;
}

static zero_status open_first(const char *path, zero_directory_wish wish,
                              zero_checkpoint_directory *d)
{
    ZERO_TRY(zero_storage_check_length(path, ZERO_STORAGE_PATH - ZERO_CHECKPOINT_NAME));
    ZERO_TRY(open_or_make(path, wish, &d->dir));
    ZERO_TRY(refuse_checkpoint(&d->dir));
    ZERO_TRY(zero_storage_lock(&d->dir));
    ZERO_TRY(zero_checkpoint_clean(&d->dir));
    ZERO_TRY(zero_checkpoint_list(&d->dir, &d->steps, &d->n));
    return make_probe(&d->dir);
}

/* ---- all ranks ---- */

static zero_status find_probe(const char *path, zero_storage_dir *dir)
{
    if (zero_storage_open(path, dir) == ZERO_OK && zero_storage_has(dir, PROBE))
        return ZERO_OK;
    return zero_fail(ZERO_ERR_ENV,
                     "%s is another directory here than on rank 0, or missing: all nodes "
                     "need the same directory",
                     path);
}

static zero_status tell_steps(zero_comm *comm, zero_checkpoint_directory *d)
{
    zero_status st = ZERO_OK;
    ZERO_TRY(zero_comm_broadcast(comm, 0, &d->n, sizeof d->n));
    if (d->n == 0) return ZERO_OK;
    size_t bytes = (size_t)d->n * sizeof *d->steps;
    if (!zero_comm_is_root(comm)) d->steps = malloc(bytes);
    if (!d->steps) st = zero_fail(ZERO_ERR_NOMEM, "no memory for %d checkpoints", d->n);
    ZERO_TRY(zero_agree(comm, st));
    return zero_comm_broadcast(comm, 0, d->steps, bytes);
}

static zero_status open_all(zero_comm *comm, const char *path, zero_directory_wish wish,
                            zero_checkpoint_directory *d)
{
    bool is_root = zero_comm_is_root(comm);
    ZERO_TRY(zero_agree_after_files(comm, is_root ? open_first(path, wish, d) : ZERO_OK));
    zero_status seen =
        zero_agree_after_files(comm, is_root ? ZERO_OK : find_probe(path, &d->dir));
    zero_failure failure = zero_failure_keep(seen);
    zero_status removed = is_root ? zero_storage_remove(&d->dir, PROBE) : ZERO_OK;
    ZERO_TRY(zero_failure_restore(&failure));
    ZERO_TRY(zero_agree_after_files(comm, removed));
    return tell_steps(comm, d);
}

zero_status zero_checkpoint_directory_open(zero_comm *comm, const char *path,
                                           zero_directory_wish wish,
                                           zero_checkpoint_directory *d)
{
    *d = (zero_checkpoint_directory){.n = 0};
    zero_status st = open_all(comm, path, wish, d);
    if (st != ZERO_OK) zero_checkpoint_directory_close(d);
    return st;
}

void zero_checkpoint_directory_close(zero_checkpoint_directory *d)
{
    zero_storage_close(&d->dir);
    free(d->steps);
    *d = (zero_checkpoint_directory){.n = 0};
}
