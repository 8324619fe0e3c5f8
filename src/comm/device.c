#include "comm/device.h"

#include <sched.h>

#include "base/clock.h"
#include "comm/control.h"
#include "comm/window.h"

/* ---- copies ---- */

/* What begins now waits for what was computed before the collective began, not for what the
 * device was given since. */
zero_status zero_device_begin(zero_collective *op, const zero_collective_step *step,
                              void *to, const void *from)
{
    const zero_copier *c = op->copier;
    zero_device_tickets *copies =
        step->kind == ZERO_STEP_FETCH ? &op->fetches : &op->stores;
    size_t bytes = (size_t)step->len * zero_element_size(step->type);
    if (c->since) c->since(c->arg, op->place);
    int64_t i = copies->begun++ % ZERO_COLLECTIVE_COPIES;
    copies->step[i] = op->next_step;
    uint64_t *ticket = &copies->ticket[i];
    if (step->kind == ZERO_STEP_FETCH) return c->fetch(c->arg, to, from, bytes, ticket);
    if (step->kind == ZERO_STEP_STORE) return c->store(c->arg, to, from, bytes, ticket);
    if (step->kind == ZERO_STEP_MARK) return c->mark(c->arg, ticket);
    if (step->kind == ZERO_STEP_COPY) return c->copy(c->arg, to, from, bytes, ticket);
    zero_device_sum sum = {.n = (int)op->steps.sums[step->sum].n,
                           .terms = op->terms,
                           .len = step->len,
                           .type = step->type,
                           .out = to};
    return c->sum(c->arg, &sum, ticket);
}

/* Copies of one direction end in their order: after the first that has not ended, the later
 * ones need not be asked for. */
static zero_status reap(const zero_copier *c, zero_device_tickets *copies)
{
    bool ended = true;
    while (ended && copies->ended < copies->begun) {
        uint64_t ticket = copies->ticket[copies->ended % ZERO_COLLECTIVE_COPIES];
        ZERO_TRY(c->ended(c->arg, ticket, &ended));
        copies->ended += ended;
    }
    return ZERO_OK;
}

zero_status zero_device_copy_reap(zero_collective *op)
{
    ZERO_TRY(reap(op->copier, &op->fetches));
    return reap(op->copier, &op->stores);
}

/* ---- memory that neighbours reach ---- */

#define PATIENCE 1.0 /* seconds: to close memory takes microseconds */

static zero_device_card *card_of(const zero_device_window *w, int rank)
{
    return &w->cards[w->comm->layout.local_of[rank]];
}

static int64_t offset(const zero_device_window *w, const void *at)
{
    return at ? (const char *)at - w->own : 0;
}

void zero_device_window_place(const zero_device_window *w, int64_t sequence, const void *in,
                              const void *out)
{
    card_of(w, w->comm->rank)->places[sequence % ZERO_SIGNALS] =
        (zero_device_arrays){offset(w, in), offset(w, out)};
}

char *zero_device_window_find(const zero_device_window *w, int rank, int64_t sequence,
                              bool is_in)
{
    const zero_device_arrays *p = &card_of(w, rank)->places[sequence % ZERO_SIGNALS];
    return (char *)w->neighbour[rank] + (is_in ? p->in : p->out);
}

static bool is_neighbour(const zero_device_window *w, int rank)
{
    const int *node_of = w->comm->layout.node_of;
    return rank != w->comm->rank && node_of[rank] == node_of[w->comm->rank];
}

zero_status zero_device_window_init(zero_device_window *w, zero_comm *comm)
{
    const size_t bytes = sizeof(zero_device_card);
    *w = (zero_device_window){.comm = comm};
    zero_status st = zero_new(&w->neighbour, comm->size, "ranks' devices");
    if (st == ZERO_OK) st = zero_new(&w->window, 1, "a window of devices");
    st = zero_agree(comm, st);
    if (st == ZERO_OK) st = zero_window_init(w->window, comm, 1, &bytes);
    if (st == ZERO_OK)
        w->cards = (zero_device_card *)(void *)zero_window_array(w->window, 0);
    else
        zero_device_window_destroy(w);
    return st;
}

/* The agreement makes every rank's handle visible to all. */
zero_status zero_device_window_open(zero_device_window *w, const zero_copier *copier,
                                    void *memory)
{
    zero_status st = ZERO_OK;
    w->copier = copier;
    w->own = memory;
    ZERO_TRY(zero_agree(
        w->comm, copier->share(copier->arg, memory, &card_of(w, w->comm->rank)->handle)));
    for (int r = 0; st == ZERO_OK && r < w->comm->size; r++)
        if (is_neighbour(w, r))
            st = copier->open(copier->arg, &card_of(w, r)->handle, &w->neighbour[r]);
    return zero_agree(w->comm, st);
}

void zero_device_window_destroy(zero_device_window *w)
{
    for (int r = 0; w->own && r < w->comm->size; r++)
        if (w->neighbour[r]) w->copier->close(w->copier->arg, w->neighbour[r]);
    if (w->own) {
        atomic_store(&card_of(w, w->comm->rank)->has_closed, 1);
        /* A device's memory may be given back only when nobody has it open any more. */
        const double start = zero_clock_seconds();
        for (int r = 0; r < w->comm->size; r++)
            while (is_neighbour(w, r) && !atomic_load(&card_of(w, r)->has_closed) &&
                   zero_clock_seconds() - start < PATIENCE)
                sched_yield();
    }
    if (w->window) zero_window_destroy(w->window);
    free(w->window);
    free(w->neighbour);
    *w = (zero_device_window){0};
}
