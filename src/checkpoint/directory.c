#include "checkpoint/directory.h"

#include <time.h>

#include "base/clock.h"
#include "checkpoint/list.h"
#include "checkpoint/manifest.h"

/* ---- rank 0 ---- */

static zero_status open_first(const char *path, zero_directory_wish wish,
                              zero_checkpoint_directory *d)
{
    ZERO_TRY(zero_storage_check_length(path, ZERO_STORAGE_PATH - ZERO_CHECKPOINT_NAME));
    const bool must_exist = wish == ZERO_DIRECTORY_MUST_EXIST;
    zero_status st = must_exist ? zero_storage_open(path, &d->dir)
                                : zero_storage_open_or_make(path, &d->dir);
    ZERO_INVALID_IF(st != ZERO_OK, "%s%s", zero_last_error(),
                    must_exist ? ", so there is nothing to resume" : "");
    if (must_exist) ZERO_TRY(zero_storage_sync_parent(&d->dir));
    /* Elsewhere a checkpoint may be given by its path; here it would get checkpoints
     * inside. */
    ZERO_INVALID_IF(zero_storage_has(&d->dir, ZERO_MANIFEST_NAME),
                    "%s is a checkpoint: give the directory that it is in", d->dir.path);
    return ZERO_OK;
}

/* ---- the lock ---- */

#define TURN 0.1 /* seconds between two looks at the lock */

typedef struct {
    const zero_lock_wish *wish;
    double start;
    bool told, waits;
} waiting;

/* Sets `waits` if another process has the lock and there is still time. A wait of a few
 * turns is not worth a message, and the holder may not have signed yet. */
static zero_status wait_a_turn(waiting *w)
{
    const zero_lock_wish *wish = w->wish;
    char holder[ZERO_STORAGE_HOLDER_TEXT] = "another process";
    zero_lock lock;
    ZERO_TRY(wish->take(wish->arg, &lock, holder));
    w->waits = lock == ZERO_LOCK_BUSY;
    if (lock == ZERO_LOCK_NONE)
        zero_listener_tell(&wish->listener,
                           "%s: its file system has no locks, so nothing keeps another run "
                           "from writing there at the same time",
                           wish->place);
    if (!w->waits) return ZERO_OK;
    double waited = zero_clock_seconds() - w->start;
    ZERO_FAIL_IF(
        waited >= wish->patience, ZERO_ERR_ENV,
        "%s: %s %s, and did not end within %.3g s: wait for it, end it, or give another %s",
        wish->place, holder, wish->deed, wish->patience, wish->option);
    if (!w->told && waited > 4 * TURN) {
        zero_listener_tell(&wish->listener, "%s: waiting up to %.3g s for %s, which %s",
                           wish->place, wish->patience, holder, wish->deed);
        w->told = true;
    }
    struct timespec time = {.tv_nsec = (long)(1e9 * TURN)};
    nanosleep(&time, NULL);
    return ZERO_OK;
}

/* The others ask in turns, because one long wait would look like a rank that hangs. */
zero_status zero_await_lock(zero_comm *comm, const zero_lock_wish *wish)
{
    bool is_root = zero_comm_is_root(comm), waits;
    waiting w = {.wish = wish, .start = zero_clock_seconds()};
    do {
        ZERO_TRY(zero_agree_after_files(comm, is_root ? wait_a_turn(&w) : ZERO_OK));
        ZERO_TRY(zero_comm_any(comm, w.waits, &waits));
    } while (waits);
    return ZERO_OK;
}

static zero_status try_lock(void *arg, zero_lock *lock,
                            char holder[ZERO_STORAGE_HOLDER_TEXT])
{
    const zero_storage_dir *dir = arg;
    ZERO_TRY(zero_lock_take(dir->fd, dir->path, lock));
    if (*lock == ZERO_LOCK_BUSY) zero_storage_holder(dir, holder);
    return ZERO_OK;
}

/* ---- all ranks ---- */

/* The probe is a temporary checkpoint, so if a crash leaves it, it is removed like any
 * leftover. Each rank writes a file in it: what a mount cannot do is found now, and not
 * at the first save. */
static zero_status write_part(const zero_storage_dir *probe, int rank)
{
    char name[ZERO_CHECKPOINT_NAME];
    zero_print(name, "rank-%d", rank);
    return zero_storage_put(probe, name, name, strlen(name));
}

static zero_status write_probe(const zero_directory_opening *how,
                               const zero_checkpoint_directory *d, const char *made,
                               const char *probe)
{
    ZERO_AT_END(zero_storage_close) zero_storage_dir inner = {0};
    ZERO_TRY(zero_storage_make(&d->dir, made, &inner));
    if (!zero_storage_is_private(&inner))
        zero_listener_tell(&how->listener,
                           "%s: its file system keeps nothing private: other users may "
                           "read the checkpoints",
                           d->dir.path);
    ZERO_TRY(write_part(&inner, 0));
    ZERO_TRY(zero_storage_sync(&inner));
    ZERO_TRY(zero_storage_rename(&d->dir, made, probe));
    return zero_storage_sync(&d->dir);
}

static zero_status say_no(zero_status st)
{
    if (st != ZERO_ERR_ENV) return st;
    return zero_fail(st, "%s; so no checkpoint can be saved there", zero_last_error());
}

static zero_status begin(const zero_directory_opening *how, zero_checkpoint_directory *d,
                         char probe[ZERO_CHECKPOINT_NAME])
{
    char made[ZERO_CHECKPOINT_NAME];
    /* Those who wait for the lock would not know for whom; the run itself needs no
     * name. */
    if (zero_storage_sign(&d->dir) != ZERO_OK)
        zero_listener_tell(&how->listener, "%s; the run continues without it",
                           zero_last_error());
    ZERO_TRY(zero_checkpoint_clean(&d->dir, &how->listener));
    ZERO_TRY(zero_checkpoint_list(&d->dir, &d->steps, &d->n));
    ZERO_TRY(zero_checkpoint_temporary_name(&d->dir, 0, made));
    ZERO_TRY(zero_checkpoint_temporary_name(&d->dir, 1, probe));
    zero_status st = say_no(write_probe(how, d, made, probe));
    zero_failure failure = zero_failure_keep(st);
    if (st != ZERO_OK) st = zero_checkpoint_clean(&d->dir, &how->listener);
    return zero_failure_restore(&failure);
}

/* A rank that has no descriptors left says so, and not that directories differ. */
static zero_status find_probe(const char *path, const char *probe, int rank,
                              zero_storage_dir *dir)
{
    ZERO_AT_END(zero_storage_close) zero_storage_dir inner = {0};
    zero_status st = zero_storage_open(path, dir);
    ZERO_FAIL_IF(
        st == ZERO_ERR_IO, ZERO_ERR_ENV,
        "%s, and rank 0 has it open: all nodes need the same directory, open to all ranks",
        zero_last_error());
    ZERO_TRY(st);
    ZERO_FAIL_IF(
        !zero_storage_has(dir, probe), ZERO_ERR_ENV,
        "%s is another directory here than on rank 0: all nodes need the same directory",
        path);
    ZERO_TRY(zero_storage_enter(dir, probe, &inner));
    return say_no(write_part(&inner, rank));
}

static zero_status open_all(zero_comm *comm, const char *path,
                            const zero_directory_opening *how, zero_checkpoint_directory *d)
{
    bool is_root = zero_comm_is_root(comm);
    ZERO_TRY(
        zero_agree_after_files(comm, is_root ? open_first(path, how->wish, d) : ZERO_OK));
    ZERO_TRY(zero_await_lock(comm, &(zero_lock_wish){.take = try_lock,
                                                     .arg = &d->dir,
                                                     .place = path,
                                                     .deed = "writes checkpoints there",
                                                     .option = "--checkpoint",
                                                     .patience = how->patience,
                                                     .listener = how->listener}));
    char probe[ZERO_CHECKPOINT_NAME] = "";
    ZERO_TRY(zero_agree_after_files(comm, is_root ? begin(how, d, probe) : ZERO_OK));
    ZERO_TRY(zero_comm_broadcast(comm, 0, probe, sizeof probe));
    zero_status seen = zero_agree_after_files(
        comm, is_root ? ZERO_OK : find_probe(path, probe, comm->rank, &d->dir));
    zero_failure failure = zero_failure_keep(seen);
    zero_status removed = is_root ? zero_storage_remove(&d->dir, probe) : ZERO_OK;
    ZERO_TRY(zero_failure_restore(&failure));
    ZERO_TRY(zero_agree_after_files(comm, removed));
    ZERO_TRY(zero_comm_broadcast(comm, 0, &d->n, sizeof d->n));
    if (d->n == 0) return ZERO_OK;
    size_t bytes = (size_t)d->n * sizeof *d->steps;
    if (!zero_comm_is_root(comm)) d->steps = malloc(bytes);
    zero_status st = zero_allocated(d->steps, "no memory for %d checkpoints", d->n);
    ZERO_TRY(zero_agree(comm, st));
    return zero_comm_broadcast(comm, 0, d->steps, bytes);
}

zero_status zero_checkpoint_directory_open(zero_comm *comm, const char *path,
                                           const zero_directory_opening *how,
                                           zero_checkpoint_directory *d)
{
    *d = (zero_checkpoint_directory){.stuck = -1};
    zero_status st = open_all(comm, path, how, d);
    zero_failure failure = zero_failure_keep(st);
    if (st != ZERO_OK) zero_checkpoint_directory_close(d);
    return zero_failure_restore(&failure);
}

void zero_checkpoint_directory_close(zero_checkpoint_directory *d)
{
    zero_storage_close(&d->dir);
    free(d->steps);
    *d = (zero_checkpoint_directory){.n = 0};
}
