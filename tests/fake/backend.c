/* backend.c - how the fake device is opened and closed, and its memory's table. */
#include "fake/fake.h"

#include <stdlib.h>

#include "base/quantity.h"
#include "fake/device.h"
#include "math/cpu.h"

/* A whole number, not negative, from the environment; *number is left as it is without one. */
static zero_status read_variable(const char *name, int64_t *number)
{
    const char *text = getenv(name);
    if (!text) return ZERO_OK;
    int64_t read;
    if (!zero_quantity_whole(text, &read) || read < 0)
        return zero_fail(ZERO_ERR_INVALID, "%s='%s': it needs a whole number from 0", name,
                         text);
    *number = read;
    return ZERO_OK;
}

zero_status zero_fake_open(zero_math *math)
{
    int64_t order = 1, failing = 0, stopping = 0;
    math->state[0] = NULL;
    ZERO_TRY(read_variable("ZERO_FAKE_ORDER", &order));
    ZERO_TRY(read_variable("ZERO_FAKE_FAIL", &failing));
    ZERO_TRY(read_variable("ZERO_FAKE_STOP", &stopping));
    zero_fake *f = calloc(1, sizeof *f);
    if (!f)
        return zero_fail(ZERO_ERR_NOMEM,
                         "no memory for the queues of the fake device: "
                         "%zu bytes",
                         sizeof *f);
    math->state[0] = f;
    f->order = (uint64_t)order;
    f->failing = failing;
    f->stopping = stopping;
    return zero_backend_cpu.open(&f->math);
}

/* Drops what is queued, which may wait for a copy that never ends. */
void zero_fake_close(zero_math *math)
{
    zero_fake *f = zero_fake_of(math);
    if (!f) return;
    zero_fake_release(f);
    free(f);
    math->state[0] = NULL;
}

zero_fake_counts zero_fake_counted(const zero_math *math)
{
    return zero_fake_of(math)->counts;
}

const zero_memory zero_fake_memory = {
    .take = zero_fake_take,
    .give_back = zero_fake_give_back,
    .pin = zero_fake_pin,
    .unpin = zero_fake_unpin,
    .fetch = zero_fake_fetch,
    .store = zero_fake_store,
    .ended = zero_fake_ended,
    .after = zero_fake_after,
    .place = zero_fake_place,
    .since = zero_fake_since,
};
