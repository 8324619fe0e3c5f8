/* await_lock.h - all ranks wait while another process has a lock that rank 0 wants.
 *
 * A run that was killed may hold its locks a little longer: its launcher has died, and its
 * ranks have not. */
#pragma once

#include "base/listener.h"
#include "comm/comm.h"
#include "io/storage.h"

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
ZERO_NODISCARD zero_status zero_await_lock(zero_comm *comm, const zero_lock_wish *wish);
