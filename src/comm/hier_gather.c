/* The two-level all-gather and broadcast: one rank's data goes to all. */
#include "comm/hier.h"

/* ---- all-gather ---- */

typedef struct {
    zero_hier w;
    int64_t posted[ZERO_HIER_IN_FLIGHT]; /* steps until chunk k % depth was in flight */
} gatherer;

static void gather_round(gatherer *g, int64_t k, int i)
{
    zero_steps *s = g->w.s;
    int behind = zero_hier_node_after(&g->w, -i), ahead = zero_hier_node_after(&g->w, i);
    int n_behind = zero_hier_node_size(&g->w, behind);
    for (int l = 0; l < n_behind || l <= g->w.local; l++) {
        int owner = g->w.layout->first[behind] + l;
        if (l < n_behind && l % g->w.n_local == g->w.local)
            zero_steps_receive(s, k, owner, zero_steps_out(g->w.s, s->rank, owner, k));
        if (l == g->w.local)
            zero_steps_send(s, k, zero_layout_delegate(g->w.layout, ahead, l),
                            zero_steps_in(g->w.s, s->rank, 0, k));
    }
}

/* Copies the pieces of round i from the neighbours that received them. */
static void copy_round(gatherer *g, int64_t k, int i)
{
    zero_steps *s = g->w.s;
    int behind = zero_hier_node_after(&g->w, -i);
    for (int l = 0; l < zero_hier_node_size(&g->w, behind); l++) {
        int owner = g->w.layout->first[behind] + l;
        int at = zero_layout_delegate(g->w.layout, g->w.node, l);
        if (at == s->rank) continue;
        zero_steps_await(s, at, ZERO_HIER_WRITTEN + 1 + k, 0);
        zero_steps_copy(s, k, zero_steps_out(g->w.s, at, owner, k),
                        zero_steps_out(g->w.s, s->rank, owner, k));
    }
}

/* Once this rank's part of chunk k has arrived: tells the neighbours, and copies theirs. */
static void finish_chunk(gatherer *g, int64_t k)
{
    zero_steps_signal(g->w.s, ZERO_HIER_WRITTEN + 1 + k);
    zero_hier_set_received(&g->w, g->posted[k % g->w.depth]);
    for (int i = 1; i < g->w.layout->n_nodes; i++) copy_round(g, k, i);
}

static void copy_own(zero_hier *w)
{
    zero_steps *s = w->s;
    for (int64_t k = 0; k < zero_steps_chunks(s); k++)
        zero_steps_copy(s, k, zero_steps_in(w->s, s->rank, 0, k),
                        zero_steps_out(w->s, s->rank, s->rank, k));
    zero_steps_signal(s, ZERO_HIER_WRITTEN);
}

/* Copies the pieces of this node from their owners; with one_out they are in place already. */
static void copy_neighbours(zero_hier *w)
{
    zero_steps *s = w->s;
    bool one_out = s->spec.one_out;
    for (int i = 1; i < w->n_local; i++) {
        int peer = w->layout->first[w->node] + (w->local + i) % w->n_local;
        zero_steps_await(s, peer, one_out ? ZERO_HIER_WRITTEN : ZERO_HIER_READY, 0);
        for (int64_t k = 0; k < zero_steps_chunks(s); k++)
            zero_steps_copy(s, k,
                            one_out ? zero_steps_out(w->s, peer, peer, k)
                                    : zero_steps_in(w->s, peer, 0, k),
                            zero_steps_out(w->s, s->rank, peer, k));
    }
}

/* Elements that neighbours read here: my piece, and the pieces I received as delegate. */
static int64_t gathered_by_neighbours(const zero_hier *w)
{
    int64_t pieces = 1;
    for (int node = 0; node < w->layout->n_nodes; node++)
        for (int l = 0; node != w->node && l < zero_hier_node_size(w, node); l++)
            pieces += l % w->n_local == w->local;
    return (w->n_local - 1) * pieces * w->s->spec.count;
}

static void finish(zero_hier *w, int64_t phase, int64_t n_read)
{
    zero_steps_signal(w->s, phase);
    zero_steps_await(w->s, ZERO_ALL_NEIGHBOURS, phase, n_read);
}

/* The slow links come first; neighbours' pieces are copied while those are busy. */
void zero_hier_write_all_gather(const zero_hier *w)
{
    zero_steps *s = w->s;
    gatherer g = {.w = *w};
    int64_t chunks = zero_steps_chunks(s), late = w->depth - 1;
    zero_steps_signal_in(s, ZERO_HIER_READY, 0, chunks);
    if (s->spec.one_out) zero_steps_await(s, ZERO_ALL_NEIGHBOURS, ZERO_HIER_READY, 0);
    for (int64_t k = 0; k < chunks + late; k++) {
        for (int i = 1; k < chunks && i < w->layout->n_nodes; i++) gather_round(&g, k, i);
        if (k < chunks) g.posted[k % w->depth] = s->n;
        if (k == late) copy_own(&g.w);
        if (k == late) copy_neighbours(&g.w);
        if (k >= late && w->layout->n_nodes > 1) finish_chunk(&g, k - late);
    }
    finish(&g.w, ZERO_HIER_WRITTEN + chunks + 1, gathered_by_neighbours(w));
}

/* ---- broadcast ---- */

static int leader(const zero_hier *w, int node)
{
    int root = w->s->spec.root;
    return node == w->layout->node_of[root] ? root : w->layout->first[node];
}

/* Sends chunk k on, and lets neighbours read it, once the first `received` steps' receives have
 * ended. */
static void pass_on(zero_hier *w, int64_t k, int64_t received)
{
    int next = leader(w, zero_hier_node_after(w, 1));
    if (next != w->s->spec.root) {
        zero_steps_send(w->s, k, next, zero_steps_out(w->s, w->s->rank, 0, k));
        zero_hier_set_received(w, received);
    }
    zero_steps_signal(w->s, ZERO_HIER_WRITTEN + 1 + k);
    zero_hier_set_received(w, received);
}

static void write_root(zero_hier *w)
{
    for (int64_t k = 0; k < zero_steps_chunks(w->s); k++) {
        zero_steps_copy(w->s, k, zero_steps_in(w->s, w->s->rank, 0, k),
                        zero_steps_out(w->s, w->s->rank, 0, k));
        pass_on(w, k, 0);
    }
}

static void write_leader(zero_hier *w)
{
    int64_t chunks = zero_steps_chunks(w->s), late = w->depth - 1,
            posted[ZERO_HIER_IN_FLIGHT];
    int before = leader(w, zero_hier_node_after(w, -1));
    for (int64_t k = 0; k < chunks + late; k++) {
        if (k < chunks) {
            zero_steps_receive(w->s, k, before, zero_steps_out(w->s, w->s->rank, 0, k));
            posted[k % w->depth] = w->s->n;
        }
        if (k >= late) pass_on(w, k - late, posted[(k - late) % w->depth]);
    }
}

static void write_follower(zero_hier *w, int from)
{
    for (int64_t k = 0; k < zero_steps_chunks(w->s); k++) {
        zero_steps_await(w->s, from, ZERO_HIER_WRITTEN + 1 + k, 0);
        zero_steps_copy(w->s, k, zero_steps_out(w->s, from, 0, k),
                        zero_steps_out(w->s, w->s->rank, 0, k));
    }
}

void zero_hier_write_broadcast(const zero_hier *from)
{
    zero_hier w = *from;
    zero_steps *s = w.s;
    int64_t chunks = zero_steps_chunks(s);
    int first = leader(&w, w.node);
    zero_steps_signal(s, ZERO_HIER_READY);
    if (s->rank == first && s->spec.one_out)
        zero_steps_await(s, ZERO_ALL_NEIGHBOURS, ZERO_HIER_READY, 0);
    if (s->rank == s->spec.root)
        write_root(&w);
    else if (s->rank == first)
        write_leader(&w);
    else
        write_follower(&w, first);
    finish(&w, ZERO_HIER_WRITTEN + chunks + 1,
           s->rank == first ? (w.n_local - 1) * s->spec.count : 0);
}
