/* device_places.h - where neighbours' arrays lie on their devices, as this process sees
 * them.
 *
 * Ranks lay out their devices' memory differently, so each tells its neighbours where the
 * arrays of a collective are, on a card in a window of the host: before its first signal,
 * as they look only after that. device_window.h makes the window. */
#pragma once

#include <stdatomic.h>

#include "comm/group.h"
#include "comm/signal.h"
#include "lists/copier.h"

/* Bytes from the beginning of a rank's piece to its `in` and `out`. */
typedef struct {
    int64_t in, out;
} zero_device_arrays;

/* A rank's part of the window. */
typedef struct {
    zero_device_handle handle;
    atomic_int has_closed;                   /* its neighbours' pieces */
    zero_device_arrays places[ZERO_SIGNALS]; /* by sequence number */
} zero_device_card;

typedef struct zero_device_window {
    zero_comm *comm;            /* borrowed; NULL: there is no window */
    struct zero_window *window; /* owned */
    zero_device_card *cards;    /* [ranks of the node], in the window */
    const zero_copier *copier;  /* borrowed */
    char *own;                  /* this rank's piece; NULL before it is opened */
    void **neighbour;           /* [comm->size], owned: theirs; NULL on other nodes */
} zero_device_window;

zero_device_card *zero_device_card_of(const zero_device_window *w, int rank);

/* Before this rank's first signal of the collective: its arrays lie here. NULL: it has
 * none. */
void zero_device_window_place(const zero_device_window *w, int64_t sequence, const void *in,
                              const void *out);
/* Where this process sees `in` (or `out`) of the neighbour, which has signalled. */
char *zero_device_window_find(const zero_device_window *w, int rank, int64_t sequence,
                              bool is_in);
