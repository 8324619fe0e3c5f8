/* The two-level all-gather and broadcast: one rank's data goes to all.
 *
 * staging    none, but bridged [slots][this rank's piece, pieces received][chunk], with
 *            slots = depth + 1 */
#include "lists/hier.h"

/* All receives and sends of a chunk count the pieces of a slot, so the nodes are looked at
 * once. */
static void start(zero_hier *w)
{
    if (w->bridged) w->pieces = zero_hier_delegated(&w->s->spec, w->layout) + 1;
}

/* ---- bridged: between a device and messages ---- */

static int64_t slot_of(const zero_hier *w, int64_t k)
{
    return k % (w->depth + 1);
}

/* In staging: chunk k of this rank's piece (0), or of the n-th that it receives (1 and
 * more). */
static zero_spot staged_piece(const zero_hier *w, int64_t k, int64_t n)
{
    const zero_steps *s = w->s;
    int64_t bytes = s->chunk * (int64_t)zero_element_size(s->spec.type);
    return zero_steps_staged(s, (slot_of(w, k) * w->pieces + n) * bytes);
}

/* Fetches this rank's piece, one chunk ahead of chunk k, which is sent next. */
static void fetch_ahead(zero_hier *w, int64_t k)
{
    zero_steps *s = w->s;
    int64_t until = zero_min(k + 2, zero_steps_chunks(s));
    for (; w->bridged && w->fetched_chunks < until; w->fetched_chunks++) {
        int64_t c = w->fetched_chunks, slot = slot_of(w, c);
        zero_steps_put(s, ZERO_STEP_FETCH, c, zero_steps_in(s, s->rank, 0, c),
                       staged_piece(w, c, 0))
            ->sent = w->sent[slot];
        w->fetched[slot] = s->n;
    }
}

/* Stores the n-th piece received, once the first `received` steps' receives have ended. */
static void store_piece(zero_hier *w, int64_t k, int64_t n, int piece, int64_t received)
{
    zero_steps *s = w->s;
    zero_steps_put(s, ZERO_STEP_STORE, k, staged_piece(w, k, n),
                   zero_steps_out(s, s->rank, piece, k))
        ->received = received;
}

/* ---- messages ---- */

/* Chunk k of what that rank has for all. */
static zero_spot given(const zero_hier *w, int rank, int64_t k)
{
    return w->before > 0 ? zero_steps_out(w->s, rank, rank, k)
                         : zero_steps_in(w->s, rank, 0, k);
}

/* Receives the n-th piece of chunk k. Bridged: what was in its place has been stored, as a
 * signal that stands before this step has waited for that. */
static void receive_piece(zero_hier *w, int64_t k, int64_t n, int from, int piece)
{
    zero_steps *s = w->s;
    zero_steps_receive(s, k, from,
                       w->bridged ? staged_piece(w, k, n)
                                  : zero_steps_out(s, s->rank, piece, k));
}

/* ---- all-gather ---- */

/* True if this rank receives the piece of local rank l of that node. */
static bool receives(const zero_hier *w, int node, int l)
{
    return l < zero_hier_node_size(w, node) && l % w->n_local == w->local;
}

/* `*n` pieces of chunk k have been received in earlier rounds. */
static void gather_round(zero_hier *w, int64_t k, int i, int64_t *n)
{
    int behind = zero_hier_node_after(w, -i), ahead = zero_hier_node_after(w, i);
    int n_behind = zero_hier_node_size(w, behind);
    for (int l = 0; l < n_behind || l <= w->local; l++) {
        int owner = w->layout->first[behind] + l;
        if (receives(w, behind, l)) receive_piece(w, k, ++*n, owner, owner);
        if (l == w->local) {
            int to = zero_layout_delegate(w->layout, ahead, l);
            zero_steps *s = w->s;
            zero_steps_send(s, k, to,
                            w->bridged ? staged_piece(w, k, 0) : given(w, s->rank, k));
            zero_steps_last(s)->fetched = w->fetched[slot_of(w, k)];
            w->sent[slot_of(w, k)] = s->n;
        }
    }
}

/* Once this rank's part of chunk k has arrived: tells the neighbours, and copies theirs. */
static void finish_chunk(zero_hier *w, int64_t k)
{
    if (w->bridged) {
        /* Bridged: the pieces of chunk k, in the order in which they were received. */
        int64_t n = 0;
        for (int i = 1; i < w->layout->n_nodes; i++) {
            int behind = zero_hier_node_after(w, -i);
            for (int l = 0; l < zero_hier_node_size(w, behind); l++)
                if (receives(w, behind, l))
                    store_piece(w, k, ++n, w->layout->first[behind] + l,
                                w->posted[k % w->depth]);
        }
    }
    zero_steps_signal(w->s, w->before + ZERO_HIER_WRITTEN + 1 + k);
    zero_hier_set_received(w, w->posted[k % w->depth]);
    for (int i = 1; i < w->layout->n_nodes; i++) {
        /* Copies the pieces of round i from the neighbours that received them. */
        zero_steps *s = w->s;
        int behind = zero_hier_node_after(w, -i);
        for (int l = 0; l < zero_hier_node_size(w, behind); l++) {
            int owner = w->layout->first[behind] + l;
            int at = zero_layout_delegate(w->layout, w->node, l);
            if (at == s->rank) continue;
            zero_steps_await(s, at, w->before + ZERO_HIER_WRITTEN + 1 + k, 0);
            zero_steps_copy(s, k, zero_steps_out(w->s, at, owner, k),
                            zero_steps_out(w->s, s->rank, owner, k));
        }
    }
}

static void finish(zero_hier *w, int64_t phase, int64_t n_read)
{
    zero_steps_signal(w->s, phase);
    zero_steps_await(w->s, ZERO_ALL_NEIGHBOURS, phase, n_read);
}

/* The slow links come first; neighbours' pieces are copied while those are busy. */
void zero_hier_write_all_gather(zero_hier *w)
{
    zero_steps *s = w->s;
    start(w);
    int64_t chunks = zero_steps_chunks(s), late = w->depth - 1;
    zero_steps_signal_in(s, w->before + ZERO_HIER_READY, 0, chunks);
    if (s->spec.one_out) zero_steps_await(s, ZERO_ALL_NEIGHBOURS, ZERO_HIER_READY, 0);
    for (int64_t k = 0; k < chunks + late; k++) {
        if (k < chunks) {
            int64_t n = 0;
            fetch_ahead(w, k);
            for (int i = 1; i < w->layout->n_nodes; i++) gather_round(w, k, i, &n);
            w->posted[k % w->depth] = w->s->n;
        }
        if (k == late) {
            for (int64_t chunk = 0; chunk < zero_steps_chunks(s); chunk++)
                zero_steps_copy(s, chunk, given(w, s->rank, chunk),
                                zero_steps_out(w->s, s->rank, s->rank, chunk));
            if (!w->alone || s->spec.one_out)
                zero_steps_signal(s, w->before + ZERO_HIER_WRITTEN);
        }
        if (k == late) {
            /* Copies the pieces of this node from their owners; with one_out they are in
             * place already. */
            bool one_out = s->spec.one_out;
            for (int i = 1; i < w->n_local; i++) {
                int peer = w->layout->first[w->node] + (w->local + i) % w->n_local;
                zero_steps_await(
                    s, peer, w->before + (one_out ? ZERO_HIER_WRITTEN : ZERO_HIER_READY),
                    0);
                for (int64_t chunk = 0; chunk < zero_steps_chunks(s); chunk++)
                    zero_steps_copy(s, chunk,
                                    one_out ? zero_steps_out(w->s, peer, peer, chunk)
                                            : given(w, peer, chunk),
                                    zero_steps_out(w->s, s->rank, peer, chunk));
            }
        }
        if (k >= late && w->layout->n_nodes > 1) finish_chunk(w, k - late);
    }
    finish(w, w->before + ZERO_HIER_WRITTEN + chunks + 1,
           (w->n_local - 1) * zero_hier_works_for(w) * s->spec.count);
}

/* ---- broadcast ---- */

static int leader(const zero_hier *w, int node)
{
    int root = w->s->spec.root;
    return node == w->layout->node_of[root] ? root : w->layout->first[node];
}

/* Sends chunk k on from there, and lets neighbours read it, once the first `received`
 * steps' receives have ended. */
static void pass_on(zero_hier *w, int64_t k, zero_spot from, int64_t received)
{
    int next = leader(w, zero_hier_node_after(w, 1));
    if (next != w->s->spec.root) {
        zero_steps_send(w->s, k, next, from);
        zero_hier_set_received(w, received);
        zero_steps_last(w->s)->fetched = w->fetched[slot_of(w, k)];
        w->sent[slot_of(w, k)] = w->s->n;
    }
    if (w->bridged && w->s->rank != w->s->spec.root) store_piece(w, k, 1, 0, received);
    if (w->alone && k + 1 < zero_steps_chunks(w->s))
        return; /* neighbours read all at once */
    zero_steps_signal(w->s, ZERO_HIER_WRITTEN + 1 + k);
    zero_hier_set_received(w, received);
}

void zero_hier_write_broadcast(zero_hier *w)
{
    zero_steps *s = w->s;
    start(w);
    int64_t chunks = zero_steps_chunks(s);
    int first = leader(w, w->node);
    zero_steps_signal(s, ZERO_HIER_READY);
    if (s->rank == first && s->spec.one_out)
        zero_steps_await(s, ZERO_ALL_NEIGHBOURS, ZERO_HIER_READY, 0);
    if (s->rank == s->spec.root)
        for (int64_t k = 0; k < zero_steps_chunks(s); k++) {
            zero_spot out = zero_steps_out(s, s->rank, 0, k);
            fetch_ahead(w, k);
            zero_steps_copy(s, k, zero_steps_in(s, s->rank, 0, k), out);
            pass_on(w, k, w->bridged ? staged_piece(w, k, 0) : out, 0);
        }
    else if (s->rank == first) {
        int64_t late = w->depth - 1;
        int before = leader(w, zero_hier_node_after(w, -1));
        for (int64_t k = 0; k < chunks + late; k++) {
            if (k < chunks) {
                receive_piece(w, k, 1, before, 0);
                if (w->bridged) /* it is sent on from there */
                    zero_steps_last(w->s)->sent = w->sent[slot_of(w, k)];
                w->posted[k % w->depth] = w->s->n;
            }
            if (k < late) continue;
            int64_t done = k - late;
            pass_on(w, done,
                    w->bridged ? staged_piece(w, done, 1)
                               : zero_steps_out(w->s, w->s->rank, 0, done),
                    w->posted[done % w->depth]);
        }
    } else
        for (int64_t k = 0; k < zero_steps_chunks(w->s); k++) {
            if (!w->alone || k == 0)
                zero_steps_await(w->s, first,
                                 ZERO_HIER_WRITTEN + (w->alone ? chunks : 1 + k), 0);
            zero_steps_copy(w->s, k, zero_steps_out(w->s, first, 0, k),
                            zero_steps_out(w->s, w->s->rank, 0, k));
        }
    finish(w, ZERO_HIER_WRITTEN + chunks + 1,
           s->rank == first ? (w->n_local - 1) * s->spec.count : 0);
}
