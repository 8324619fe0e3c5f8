/* link.h - between the host's memory and a device's.
 *
 * A step waits in OVERFLOW, in LOSS for row losses, and for collectives that are not over;
 * all other copies end on their own. A copy that fails is kept, like a transfer of the
 * scratch file (tier.h), and ends the run at the next vote: a rank that left its program
 * alone would let the others wait for ever. From then on nothing is copied, and every copy
 * has ended. Without a device nothing here is called. */
#pragma once

#include "lists/copier.h"
#include "math/backend.h"

typedef struct {
    const zero_memory *memory; /* NULL: there is no device */
    zero_math *math;           /* borrowed, open */
    uint64_t bytes_fetched, bytes_stored;
    zero_call_place since; /* of the collectives' copies */
    int64_t waits;         /* for copies that had not ended */
    zero_failure failure;  /* the first one */
    bool has_failed;
} zero_link;

/* Begin a copy of `bytes` bytes and set its ticket. Host memory is pinned. */
void zero_link_fetch(zero_link *l, void *host, const void *memory, size_t bytes,
                     zero_ticket *ticket);
void zero_link_store(zero_link *l, void *memory, const void *host, size_t bytes,
                     zero_ticket *ticket);

/* The calls made so far. */
zero_call_place zero_link_place(zero_link *l);
/* A store that waits for the calls before the place alone; 0: for all. */
void zero_link_store_since(zero_link *l, zero_call_place place, void *memory,
                           const void *host, size_t bytes, zero_ticket *ticket);

/* True if nothing is to be waited for. Never blocks. */
bool zero_link_has_ended(zero_link *l, zero_ticket ticket);
/* Waits, and lets collectives progress. */
void zero_link_wait(zero_link *l, zero_ticket ticket);
/* The backend executes later calls and copies only after this copy. */
void zero_link_after(zero_link *l, zero_ticket ticket);

/* Fetches, and waits. */
void zero_link_fetch_now(zero_link *l, void *host, const void *memory, size_t bytes);

/* Keeps a failure of the backend, if it is the first one. */
void zero_link_keep(zero_link *l, zero_status st);
/* The first failure, told again. */
zero_status zero_link_status(const zero_link *l);

/* The copies of collectives, and direct sums if the device's memory can be shared; borrows
 * `l`. */
zero_copier zero_link_copier(zero_link *l);
