/* fake_copier.h - a device for collectives under MPI.
 *
 * Its addresses fault unless the copier uses them. A copy happens some time after it has begun;
 * until then its destination is garbage. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fail.h"
#include "lists/copier.h"
#include "support/tree_oracle.h"

#define FAKE_ADDRESS ((uintptr_t)1 << 62) /* no address of a process has this bit */
#define FAKE_COPIES  64                   /* in flight in each direction, at most */

typedef struct {
    void *to;
    const void *from;
    size_t bytes;
} fake_copy;

enum { FAKE_FETCH, FAKE_STORE };

typedef struct {
    zero_copier copier;
    uint64_t random;
    int64_t begun[2], ended[2];
    fake_copy copies[2][FAKE_COPIES];
    int64_t bytes[2];
    double stuck_until;  /* no copy ends earlier; in seconds of the clock */
    int64_t fails_after; /* calls of the copier from now on; below 0: it never fails */
} fake_device;

/* Between the address that a collective is given and the true one. */
static inline void *fake_address(const void *at)
{
    return (void *)((uintptr_t)at ^ FAKE_ADDRESS);
}

static inline zero_status fake_fault(fake_device *d)
{
    bool fails = d->fails_after == 0;
    if (d->fails_after > 0) d->fails_after--;
    return fails ? zero_fail(ZERO_ERR_ENV, "the device is lost") : ZERO_OK;
}

static inline zero_status fake_begin(fake_device *d, int way, fake_copy c, uint64_t *ticket)
{
    ZERO_TRY(fake_fault(d));
    int64_t number = d->begun[way]++;
    if (number - d->ended[way] >= FAKE_COPIES) abort();
    d->copies[way][number % FAKE_COPIES] = c;
    d->bytes[way] += (int64_t)c.bytes;
    memset(c.to, 0xff, c.bytes); /* NaN, in all types */
    *ticket = (uint64_t)(2 * number + way);
    return ZERO_OK;
}

static inline zero_status fake_fetch(void *arg, void *host, const void *device,
                                     size_t bytes, uint64_t *ticket)
{
    return fake_begin(arg, FAKE_FETCH, (fake_copy){host, fake_address(device), bytes},
                      ticket);
}

static inline zero_status fake_store(void *arg, void *device, const void *host,
                                     size_t bytes, uint64_t *ticket)
{
    return fake_begin(arg, FAKE_STORE, (fake_copy){fake_address(device), host, bytes},
                      ticket);
}

/* Each question may end one copy of the direction: the next in order. */
static inline zero_status fake_ended(void *arg, uint64_t ticket, bool *ended)
{
    fake_device *d = arg;
    int way = (int)(ticket % 2);
    ZERO_TRY(fake_fault(d));
    d->random = oracle_mix(d->random);
    bool stuck = d->stuck_until > 0.0 && zero_clock_seconds() < d->stuck_until;
    if (d->ended[way] < d->begun[way] && d->random % 3 > 0 && !stuck) {
        const fake_copy *c = &d->copies[way][d->ended[way]++ % FAKE_COPIES];
        memcpy(c->to, c->from, c->bytes);
    }
    *ended = d->ended[way] > (int64_t)(ticket / 2);
    return ZERO_OK;
}

/* Release with free(). */
static inline fake_device *fake_device_make(uint64_t random)
{
    fake_device *d = calloc(1, sizeof *d);
    if (!d) abort();
    d->copier = (zero_copier){
        .fetch = fake_fetch, .store = fake_store, .ended = fake_ended, .arg = d};
    d->random = random;
    d->fails_after = -1;
    return d;
}

static inline bool fake_is_idle(const fake_device *d)
{
    return d->begun[0] == d->ended[0] && d->begun[1] == d->ended[1];
}
