/* device.h - what a collective does on a device, and memory of devices that the ranks of a
 * node reach in each other's processes.
 *
 * A collective begins copies to and from its mirrors, or direct sums, copies and marks,
 * which count as stores.
 *
 * Each rank may share one piece of its device's memory, in which `in` and `out` of its
 * collectives lie. A neighbour opens that piece by its handle, and sees it at an address of
 * its own. Ranks lay out their devices' memory differently, so each tells its neighbours
 * where the arrays of a collective are, on a card in a window of the host: before its first
 * signal, as they look only after that. */
#pragma once

#include "comm/group.h"
#include "comm/signal.h"

/* Begins a FETCH, STORE or MARK step, or a direct COPY or ADD of op->terms; its direction
 * has a free slot. The device's address is its own. */
zero_status zero_device_begin(zero_collective *op, const zero_collective_step *step,
                              void *to, const void *from);

/* Takes note of the copies that have ended. Never waits. */
zero_status zero_device_copy_reap(zero_collective *op);

/* True if the direction has a free slot. */
static inline bool zero_device_copy_fits(const zero_device_tickets *copies)
{
    return copies->begun - copies->ended < ZERO_COLLECTIVE_COPIES;
}

/* True if all copies that the first `until` steps began have ended. */
static inline bool zero_device_copy_ended(const zero_device_tickets *copies, int64_t until)
{
    return copies->ended == copies->begun ||
           copies->step[copies->ended % ZERO_COLLECTIVE_COPIES] >= until;
}

/* Copies in flight. */
static inline int64_t zero_device_copy_left(const zero_collective *op)
{
    return op->fetches.begun - op->fetches.ended + op->stores.begun - op->stores.ended;
}

/* ---- memory that neighbours reach ---- */

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

/* Collective over the group, one verdict: that of zero_window_init(), or ZERO_ERR_NOMEM.
 * The struct stays where it is: copiers name it. */
zero_status zero_device_window_init(zero_device_window *w, zero_comm *comm);

/* Shares this rank's piece and opens its neighbours'. Collective over the group, one
 * verdict: what the copier's share() or open() fails with. Borrows the copier. */
zero_status zero_device_window_open(zero_device_window *w, const zero_copier *copier,
                                    void *memory);

/* Closes the neighbours' pieces, and waits a moment until they have closed this rank's,
 * which may be given back then. A neighbour that has died does not keep anyone. Accepts a
 * zeroed window. */
void zero_device_window_destroy(zero_device_window *w);

/* Before this rank's first signal of the collective: its arrays lie here. NULL: it has
 * none. */
void zero_device_window_place(const zero_device_window *w, int64_t sequence, const void *in,
                              const void *out);
/* Where this process sees `in` (or `out`) of the neighbour, which has signalled. */
char *zero_device_window_find(const zero_device_window *w, int rank, int64_t sequence,
                              bool is_in);
