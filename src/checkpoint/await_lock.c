#include "checkpoint/await_lock.h"

#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/fail.h"
#include "comm/control.h"

#define TURN 0.1 /* seconds between two looks at the lock */

typedef struct {
    const zero_lock_wish *wish;
    double start;
    bool told, waits;
} waiting;

/* Sets `waits` if another process has the lock and there is still time. A wait of a few
 * turns is not worth a message, and the holder may not have signed yet. */
static zero_status try_lock(waiting *w)
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
    if (waited >= wish->patience)
        return zero_fail(ZERO_ERR_ENV,
                         "%s: %s %s, and did not end within %.3g s: wait for it, end it, "
                         "or give another %s",
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
        ZERO_TRY(zero_agree_after_files(comm, is_root ? try_lock(&w) : ZERO_OK));
        ZERO_TRY(zero_comm_any(comm, w.waits, &waits));
    } while (waits);
    return ZERO_OK;
}
