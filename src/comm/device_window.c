#include "comm/device_window.h"

#include <sched.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/grow.h"
#include "comm/control.h"
#include "comm/window.h"

#define PATIENCE 1.0 /* seconds: to close memory takes microseconds */

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

static zero_status open_neighbours(zero_device_window *w)
{
    const zero_copier *c = w->copier;
    for (int r = 0; r < w->comm->size; r++)
        if (is_neighbour(w, r))
            ZERO_TRY(c->open(c->arg, &zero_device_card_of(w, r)->handle, &w->neighbour[r]));
    return ZERO_OK;
}

/* The agreement makes every rank's handle visible to all. */
zero_status zero_device_window_open(zero_device_window *w, const zero_copier *copier,
                                    void *memory)
{
    w->copier = copier;
    w->own = memory;
    ZERO_TRY(
        zero_agree(w->comm, copier->share(copier->arg, memory,
                                          &zero_device_card_of(w, w->comm->rank)->handle)));
    return zero_agree(w->comm, open_neighbours(w));
}

void zero_device_window_destroy(zero_device_window *w)
{
    for (int r = 0; w->own && r < w->comm->size; r++)
        if (w->neighbour[r]) w->copier->close(w->copier->arg, w->neighbour[r]);
    if (w->own) {
        atomic_store(&zero_device_card_of(w, w->comm->rank)->has_closed, 1);
        /* A device's memory may be given back only when nobody has it open any more. */
        const double start = zero_clock_seconds();
        for (int r = 0; r < w->comm->size; r++)
            while (is_neighbour(w, r) &&
                   !atomic_load(&zero_device_card_of(w, r)->has_closed) &&
                   zero_clock_seconds() - start < PATIENCE)
                sched_yield();
    }
    if (w->window) zero_window_destroy(w->window);
    free(w->window);
    free(w->neighbour);
    *w = (zero_device_window){0};
}
