#include "state/link.h"

#include "base/waiting.h"

void zero_link_keep(zero_link *l, zero_status st)
{
    if (st == ZERO_OK || l->has_failed) return;
    l->has_failed = true;
    l->failure = zero_failure_keep(st);
}

void zero_link_fetch(zero_link *l, void *host, const void *memory, size_t bytes,
                     zero_ticket *ticket)
{
    *ticket = 0;
    if (l->has_failed || bytes == 0) return;
    zero_link_keep(l, l->memory->fetch(l->math, host, memory, bytes, ticket));
    l->bytes_fetched += bytes;
}

void zero_link_store(zero_link *l, void *memory, const void *host, size_t bytes,
                     zero_ticket *ticket)
{
    *ticket = 0;
    if (l->has_failed || bytes == 0) return;
    zero_link_keep(l, l->memory->store(l->math, memory, host, bytes, ticket));
    l->bytes_stored += bytes;
}

zero_call_place zero_link_place(zero_link *l)
{
    zero_call_place place = 0;
    if (!l->has_failed) zero_link_keep(l, l->memory->place(l->math, &place));
    return place;
}

void zero_link_store_since(zero_link *l, zero_call_place place, void *memory,
                           const void *host, size_t bytes, zero_ticket *ticket)
{
    l->memory->since(l->math, place);
    zero_link_store(l, memory, host, bytes, ticket);
    l->memory->since(l->math, 0);
}

bool zero_link_has_ended(zero_link *l, zero_ticket ticket)
{
    bool ended = false;
    if (l->has_failed || ticket == 0) return true;
    zero_link_keep(l, l->memory->ended(l->math, ticket, &ended));
    return ended || l->has_failed;
}

void zero_link_wait(zero_link *l, zero_ticket ticket)
{
    if (zero_link_has_ended(l, ticket)) return;
    zero_waiting w;
    l->waits++;
    zero_waiting_begin(&w, "a copy of the device", "ended", 1.0);
    while (!zero_link_has_ended(l, ticket)) zero_math_poll(l->math);
    zero_waiting_end(&w);
}

void zero_link_after(zero_link *l, zero_ticket ticket)
{
    if (!l->has_failed && ticket != 0) zero_link_keep(l, l->memory->after(l->math, ticket));
}

void zero_link_fetch_now(zero_link *l, void *host, const void *memory, size_t bytes)
{
    zero_ticket ticket;
    zero_link_fetch(l, host, memory, bytes, &ticket);
    zero_link_wait(l, ticket);
}

zero_status zero_link_status(const zero_link *l)
{
    return l->has_failed ? zero_failure_restore(&l->failure) : ZERO_OK;
}

/* ---- for collectives: their copies wait for the calls before a place ---- */

static zero_status place(void *arg, uint64_t *place_of_calls)
{
    *place_of_calls = zero_link_place(arg);
    return ZERO_OK;
}

static void since(void *arg, uint64_t place_of_calls)
{
    zero_link *l = arg;
    l->since = place_of_calls;
}

/* Around all that a collective begins: calls before its place alone are waited for. */
static bool begins(zero_link *l, uint64_t *ticket)
{
    *ticket = 0;
    l->memory->since(l->math, l->since);
    return !l->has_failed;
}

static zero_status has_begun(zero_link *l, zero_status st)
{
    zero_link_keep(l, st);
    l->memory->since(l->math, 0);
    return ZERO_OK;
}

static zero_status fetch(void *arg, void *host, const void *device, size_t bytes,
                         uint64_t *ticket)
{
    if (begins(arg, ticket)) zero_link_fetch(arg, host, device, bytes, ticket);
    return has_begun(arg, ZERO_OK);
}

static zero_status store(void *arg, void *device, const void *host, size_t bytes,
                         uint64_t *ticket)
{
    if (begins(arg, ticket)) zero_link_store(arg, device, host, bytes, ticket);
    return has_begun(arg, ZERO_OK);
}

static zero_status ended(void *arg, uint64_t ticket, bool *answer)
{
    *answer = zero_link_has_ended(arg, ticket);
    return ZERO_OK;
}

/* ---- the same between devices: after a failure nothing is begun, and all has ended
 * ---- */

_Static_assert(sizeof(zero_memory_handle) == sizeof(zero_device_handle),
               "a handle travels as bytes");

static zero_status share(void *arg, void *memory, zero_device_handle *handle)
{
    const zero_link *l = arg;
    zero_memory_handle made;
    ZERO_TRY(l->memory->sharing->share(l->math, memory, &made));
    memcpy(handle, &made, sizeof made);
    return ZERO_OK;
}

static zero_status open_neighbours(void *arg, const zero_device_handle *handle,
                                   void **memory)
{
    const zero_link *l = arg;
    zero_memory_handle made;
    memcpy(&made, handle, sizeof made);
    return l->memory->sharing->open(l->math, &made, memory);
}

static void close_neighbours(void *arg, void *memory)
{
    const zero_link *l = arg;
    l->memory->sharing->close(l->math, memory);
}

static zero_status mark(void *arg, uint64_t *ticket)
{
    zero_link *l = arg;
    return has_begun(l, begins(l, ticket) ? l->memory->sharing->mark(l->math, ticket)
                                          : ZERO_OK);
}

static zero_status copy(void *arg, void *to, const void *from, size_t bytes,
                        uint64_t *ticket)
{
    zero_link *l = arg;
    return has_begun(l, begins(l, ticket)
                            ? l->memory->sharing->copy(l->math, to, from, bytes, ticket)
                            : ZERO_OK);
}

static zero_status sum(void *arg, const zero_device_sum *s, uint64_t *ticket)
{
    zero_link *l = arg;
    const zero_memory_sum of_memory = {s->n, s->terms, s->len, s->type, s->out};
    return has_begun(l, begins(l, ticket)
                            ? l->memory->sharing->sum(l->math, &of_memory, ticket)
                            : ZERO_OK);
}

zero_copier zero_link_copier(zero_link *l)
{
    zero_copier c = {.fetch = fetch,
                     .store = store,
                     .ended = ended,
                     .place = place,
                     .since = since,
                     .arg = l};
    if (!l->memory || !l->memory->sharing) return c;
    c.share = share;
    c.open = open_neighbours;
    c.close = close_neighbours;
    c.mark = mark;
    c.copy = copy;
    c.sum = sum;
    return c;
}
