/* device_test.h - a fake device with a piece of its memory and as much pinned host memory, and
 * copies that are waited for. */
#pragma once

#include "support/math_test.h"
#include <sys/mman.h>

#include "fake/fake.h"

static const zero_backend *const fake = &zero_backend_fake;

typedef struct {
    zero_math math;
    size_t bytes;
    char *memory; /* the device's; the scratch is before it */
    char *host;   /* pinned */
} device;

static inline char *device_host(size_t bytes)
{
    void *host =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(host != MAP_FAILED);
    return host;
}

/* `bytes` are whole pages. Each order is another one; 0: everything at once. */
static inline device device_open(int order, size_t bytes)
{
    char text[32];
    device d = {.bytes = bytes};
    const size_t scratch = (size_t)zero_math_scratch() * sizeof(float);
    snprintf(text, sizeof text, "%d", order);
    assert_int_equal(setenv("ZERO_FAKE_ORDER", text, 1), 0);
    assert_ok(fake->open(&d.math));
    void *memory = NULL;
    assert_ok(fake->memory->take(&d.math, scratch + bytes, &memory));
    d.math.scratch = memory;
    d.memory = (char *)memory + scratch;
    d.host = device_host(bytes);
    assert_ok(fake->memory->pin(&d.math, d.host, bytes));
    return d;
}

/* Drops what is queued. */
static inline void device_close(device *d)
{
    fake->close(&d->math);
    munmap(d->host, d->bytes);
}

/* Fails if the copy does not end. */
static inline void device_wait(const device *d, zero_ticket ticket)
{
    bool ended = false;
    for (int i = 0; i < 100 && !ended; i++)
        assert_ok(fake->memory->ended(&d->math, ticket, &ended));
    assert_true(ended);
}

static inline zero_ticket device_store(const device *d, size_t at, size_t bytes)
{
    zero_ticket ticket = 0;
    assert_ok(fake->memory->store(&d->math, d->memory + at, d->host + at, bytes, &ticket));
    assert_true(ticket != 0);
    return ticket;
}

static inline zero_ticket device_fetch(const device *d, size_t at, size_t bytes)
{
    zero_ticket ticket = 0;
    assert_ok(fake->memory->fetch(&d->math, d->host + at, d->memory + at, bytes, &ticket));
    assert_true(ticket != 0);
    return ticket;
}

/* Element i of the device's memory, for its calls, or of the host's. */
static inline float *device_floats(const device *d, int64_t i)
{
    return (float *)d->memory + i;
}

static inline float *host_floats(const device *d, int64_t i)
{
    return (float *)d->host + i;
}
