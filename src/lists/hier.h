/* hier.h - shared by the files of the two-level algorithm (hier.c tells how it works). */
#pragma once

#include "lists/step.h"

/* Chunks received at once, if staging suffices; bridged: half as many. */
#define ZERO_HIER_IN_FLIGHT 8

/* These phases are those without a device, or of an all-gather or a broadcast (see below).
 * READY: my `in` is ready, and I read nothing of `out` any more. WRITTEN: my piece is in my
 * `out`. WRITTEN + 1 + k: so is all that I receive of chunk k. The last phase, after those
 * of all chunks: I have read all I needed. */
enum { ZERO_HIER_READY = 1, ZERO_HIER_WRITTEN = 2 };

/* The list that is written, and the place of its rank. */
typedef struct {
    zero_steps *s;
    const zero_layout *layout;
    int node, local, n_local;
    int64_t depth;                       /* chunks in flight at once */
    bool bridged;                        /* zero_hier_is_bridged() */
    bool alone;                          /* shm: one node, no messages */
    int64_t posted[ZERO_HIER_IN_FLIGHT]; /* steps until chunk k % depth was in flight */

    /* ---- sums ---- */
    int n_remote; /* subtrees of the other nodes, which owners receive */
    /* On an owner alone. */
    int *slot;   /* [n_nodes]: the first of them that comes from the node; owned */
    int final;   /* the sum of this rank's piece */
    int n_cover; /* subtrees of this rank's node */
    zero_tree_term cover[ZERO_TREE_COVER_MAX];
    int partial[ZERO_TREE_COVER_MAX]; /* their sums */
    int64_t n_places;                 /* for partial sums to send, used in turn */
    int64_t made, sends;              /* partial sums made, and sent, so far */
    int64_t made_chunks;              /* bridged: all whose partial sums have been made */
    int64_t *made_at, *sent_at; /* [n_places]: steps until the last of a place; owned */

    int64_t before; /* phases of the reduce-scatter before an all-gather; else 0 */

    /* ---- an all-gather and a broadcast, bridged ---- */
    int64_t pieces;         /* of a slot of staging */
    int64_t fetched_chunks; /* so far */
    /* Steps until the last fetch to slot k % (depth + 1), and until the last send from
     * there. */
    int64_t fetched[ZERO_HIER_IN_FLIGHT + 1], sent[ZERO_HIER_IN_FLIGHT + 1];
} zero_hier;

/* The data of devices that reach each other passes through staging on its way to and from
 * other nodes, and nothing else does. Then a chunk in flight of a reduction takes a slot of
 * staging for each subtree of all nodes and one for the result. Sums to send have slots for
 * one chunk more: they are made while the chunk before travels. A chunk of an all-gather
 * takes a slot for this rank's piece and for each that it receives, and so does one chunk
 * more, for copies that have not ended. */
static inline bool zero_hier_is_bridged(const zero_collective_spec *spec,
                                        const zero_layout *layout)
{
    return spec->direct && layout->n_nodes > 1;
}

/* Pieces of other nodes' ranks for which a rank works, at most. */
int64_t zero_hier_delegated(const zero_collective_spec *spec, const zero_layout *layout);
/* Partial sums of a chunk that a rank sends, at most. */
int64_t zero_hier_sums_to_send(const zero_collective_spec *spec, const zero_layout *layout);

/* Pieces for which this rank works: its own, and those of other nodes. */
int64_t zero_hier_works_for(const zero_hier *w);

void zero_hier_write_reduce_scatter(zero_hier *w);
void zero_hier_write_all_gather(zero_hier *w);
void zero_hier_write_reduce(zero_hier *w);
void zero_hier_write_broadcast(zero_hier *w);
void zero_hier_write_all_reduce(zero_hier *w);

/* The maximal subtrees of a node's ranks; returns how many. */
static inline int zero_hier_cover(const zero_layout *layout, int node,
                                  zero_tree_term *terms)
{
    int first = layout->first[node];
    return zero_tree_cover(layout->size, first, layout->first[node + 1] - first, terms);
}

/* The phase of sums in which I have read all I needed. On a device each chunk of `in` has a
 * phase of its own in which it becomes ready. */
static inline int64_t zero_hier_read_phase(const zero_hier *w)
{
    return ZERO_HIER_WRITTEN + zero_steps_portions(w->s) - 1;
}

/* Portion k of `in` is ready. */
static inline void zero_hier_signal_portion(const zero_hier *w, int64_t k)
{
    int64_t portions = zero_steps_portions(w->s);
    zero_steps_signal_in(w->s, ZERO_HIER_READY + k, k,
                         portions > 1 ? 1 : zero_steps_chunks(w->s));
}

static inline int zero_hier_node_after(const zero_hier *w, int rounds)
{
    return (w->node + rounds + w->layout->n_nodes) % w->layout->n_nodes;
}

static inline int zero_hier_node_size(const zero_hier *w, int node)
{
    return w->layout->first[node + 1] - w->layout->first[node];
}

/* Makes the last step wait for the receives among the first `received` steps. */
static inline void zero_hier_set_received(const zero_hier *w, int64_t received)
{
    zero_steps_last(w->s)->received = received;
}
