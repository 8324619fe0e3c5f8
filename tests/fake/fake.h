/* fake.h - a device without hardware, for tests: the cpu backend, with memory that the host cannot
 * touch and calls that return early.
 *
 *     take      the same pages twice: without access, which is what callers see, and for the
 *               backend alone. Whoever else reads or writes them ends with a segmentation
 *               fault; system calls return EFAULT.
 *     calls     are recorded in three queues: compute, down (fetch) and up (store). They are
 *               executed later, at random moments, in any order that tickets and after() allow.
 *     fetch     fills the host's memory with ones (as floats NaN) until the copy is made.
 *     poll      is called once per recorded call, as by a device's launches, never during
 *               execution.
 *
 * A bad pointer, memory that is not pinned, a copy past an end and a token outside its table are
 * failures; they stay, as backend.h says. sync() waits for calls, not for copies.
 *
 * Environment, read by open():
 *
 *     ZERO_FAKE_ORDER=n    the order's seed, 1 if not given; 0: each call is executed at once
 *     ZERO_FAKE_FAIL=n     call n, from 1, fails when it is executed; fetches and stores count
 *     ZERO_FAKE_STOP=n     after call n the device hangs: no copy ends any more
 *
 * Programs of a build with tests link it (devices.c). */
#pragma once

#include "math/backend.h"

/* Since open(). */
typedef struct {
    int64_t calls;       /* recorded, without copies */
    int64_t copies;      /* fetches and stores */
    int64_t waits;       /* after() with a copy that had not ended */
    int64_t syncs;       /* calls of sync() */
    int64_t drains;      /* calls of sync() that found calls not yet executed */
    int64_t not_ended;   /* calls of ended() that said no */
    int64_t most_queued; /* calls not executed at one time */
    size_t bytes_fetched, bytes_stored;
} zero_fake_counts;

extern const zero_backend zero_backend_fake;

/* `math` is open. */
zero_fake_counts zero_fake_counted(const zero_math *math);
