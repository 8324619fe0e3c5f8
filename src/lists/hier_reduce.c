/* The two-level reduce-scatter, and the reduce, in which one rank on each node does all the
 * work.
 *
 * staging    [slots][subtrees received][chunk] | [depth][chunk] to send, all in fp32,
 *            with one slot for each chunk in flight
 * bridged    [slots][subtrees received, this node's, the result][chunk] | [depth +
 * 1][sends][chunk] */
#include "lists/hier.h"

#include <stdlib.h>

typedef struct {
    zero_hier w;
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
    int64_t *made_at, *sent; /* [n_places]: steps until the last of a place; owned */
    int64_t posted[ZERO_HIER_IN_FLIGHT]; /* steps until chunk k % depth was in flight */
} reducer;

static int64_t slot_bytes(const reducer *r)
{
    return r->w.s->chunk * (int64_t)sizeof(float);
}

static zero_type type_of(const reducer *r, const zero_tree_term *term)
{
    return term->count == 1 ? r->w.s->spec.type : ZERO_FP32;
}

/* True if that rank gets a sum: each does, or in a reduce the root alone. */
static bool is_owner(const reducer *r, int rank)
{
    return r->w.s->spec.kind != ZERO_REDUCE || rank == r->w.s->spec.root;
}

/* The sum over ranks first .. first+count-1 of this node. */
static int add_local_sum(reducer *r, int first, int count)
{
    int sum = zero_steps_add_sum(r->w.s);
    for (int rank = first; rank < first + count; rank++)
        zero_steps_add_term(r->w.s, sum, (zero_term){rank, 1, r->w.s->spec.type, -1});
    return sum;
}

/* Bridged: the node's devices have left their subtrees after those received. */
static void add_own_subtrees(reducer *r)
{
    for (int t = 0; t < r->n_cover; t++)
        zero_steps_add_term(r->w.s, r->final,
                            (zero_term){r->cover[t].first, r->cover[t].count,
                                        type_of(r, &r->cover[t]),
                                        (r->n_remote + t) * slot_bytes(r)});
}

static void add_sums(reducer *r)
{
    r->n_cover = zero_hier_cover(r->w.layout, r->w.node, r->cover);
    r->n_remote = r->w.layout->subtrees - r->n_cover;
    if (is_owner(r, r->w.s->rank)) {
        /* Adds in the order of ranks: this node's one by one, other nodes' by their
         * subtrees. */
        const zero_layout *layout = r->w.layout;
        int slot = 0;
        r->final = zero_steps_add_sum(r->w.s);
        for (int node = 0; node < layout->n_nodes; node++) {
            zero_tree_term terms[ZERO_TREE_COVER_MAX];
            int n = zero_hier_cover(layout, node, terms);
            r->slot[node] = slot;
            if (node == r->w.node && r->w.bridged) add_own_subtrees(r);
            if (node == r->w.node && !r->w.bridged)
                for (int l = 0; l < r->w.n_local; l++)
                    zero_steps_add_term(
                        r->w.s, r->final,
                        (zero_term){layout->first[node] + l, 1, r->w.s->spec.type, -1});
            for (int t = 0; node != r->w.node && t < n; t++)
                zero_steps_add_term(r->w.s, r->final,
                                    (zero_term){terms[t].first, terms[t].count,
                                                type_of(r, &terms[t]),
                                                slot++ * slot_bytes(r)});
        }
    }
    for (int t = 0; t < r->n_cover; t++)
        if (r->cover[t].count > 1 && !r->w.alone)
            r->partial[t] = add_local_sum(r, r->cover[t].first, r->cover[t].count);
}

/* Slots of a chunk in flight. */
static int64_t slots(const reducer *r)
{
    return r->w.bridged ? r->w.layout->subtrees + 1 : r->n_remote;
}

static int64_t staged_at(const reducer *r, int64_t k)
{
    return k % r->w.depth * slots(r) * slot_bytes(r);
}

static void receive_from(reducer *r, int64_t k, int node)
{
    zero_tree_term terms[ZERO_TREE_COVER_MAX];
    int n = zero_hier_cover(r->w.layout, node, terms);
    for (int t = 0; t < n; t++) {
        int64_t at = staged_at(r, k) + (r->slot[node] + t) * slot_bytes(r);
        zero_steps_receive(r->w.s, k, zero_layout_delegate(r->w.layout, node, r->w.local),
                           (zero_spot){ZERO_STAGING, r->w.s->rank, at});
        zero_steps_last(r->w.s)->type = type_of(r, &terms[t]);
    }
}

/* Chunk k of the owner's piece in the `in` of `rank`. */
static zero_spot piece_of(const reducer *r, int rank, int owner, int64_t k)
{
    return zero_steps_in(r->w.s, rank, zero_steps_piece(r->w.s, owner), k);
}

/* Subtree t of the owner's piece, to staging: a subtree of one rank is copied there. */
static void make_subtree(reducer *r, int64_t k, int owner, int t, zero_spot to)
{
    if (r->cover[t].count == 1)
        zero_steps_copy(r->w.s, k, piece_of(r, r->cover[t].first, owner, k), to);
    else
        zero_steps_add(r->w.s,
                       (zero_collective_step){.kind = ZERO_STEP_ADD,
                                              .type = ZERO_FP32,
                                              .sum = r->partial[t],
                                              .len = zero_steps_chunk_len(r->w.s, k),
                                              .from = piece_of(r, r->w.s->rank, owner, k),
                                              .to = to});
}

/* Where partial sum number `number` is staged. */
static zero_spot place_of(const reducer *r, int64_t number)
{
    int64_t before = zero_min(r->w.depth, zero_steps_chunks(r->w.s)) * slots(r);
    return (zero_spot){ZERO_STAGING, r->w.s->rank,
                       (before + number % r->n_places) * slot_bytes(r)};
}

/* Makes subtree t in the next place, once the last send from there has ended. */
static void make_partial(reducer *r, int64_t k, int owner, int t)
{
    int64_t i = r->made % r->n_places;
    make_subtree(r, k, owner, t, place_of(r, r->made++));
    zero_steps_last(r->w.s)->sent = r->sent[i];
    r->made_at[i] = r->w.s->n;
}

/* True if the subtree is sent from staging, and not from the memory of its rank. */
static bool is_made(const reducer *r, int t)
{
    return r->w.bridged || r->cover[t].count > 1;
}

static void send_partial(reducer *r, int64_t k, int owner, int t)
{
    int64_t i = r->sends % r->n_places;
    zero_steps_send(r->w.s, k, owner, place_of(r, r->sends++));
    zero_steps_last(r->w.s)->type = type_of(r, &r->cover[t]);
    if (r->w.bridged) zero_steps_last(r->w.s)->stored = r->made_at[i];
    r->sent[i] = r->w.s->n;
}

/* True if this rank works for local rank l of that node. */
static bool sends_to(const reducer *r, int node, int l)
{
    return l < zero_hier_node_size(&r->w, node) && l % r->w.n_local == r->w.local &&
           is_owner(r, r->w.layout->first[node] + l);
}

/* Round i of chunk k: receives from the node i before this one, sends to the node i
 * after. */
static void reduce_round(reducer *r, int64_t k, int i)
{
    int behind = zero_hier_node_after(&r->w, -i), ahead = zero_hier_node_after(&r->w, i);
    int n_ahead = zero_hier_node_size(&r->w, ahead);
    for (int l = 0; l < n_ahead || l <= r->w.local; l++) {
        if (l == r->w.local && is_owner(r, r->w.s->rank)) receive_from(r, k, behind);
        if (sends_to(r, ahead, l)) {
            int owner = r->w.layout->first[ahead] + l;
            for (int t = 0; t < r->n_cover; t++) {
                if (is_made(r, t) && !r->w.bridged) make_partial(r, k, owner, t);
                if (is_made(r, t))
                    send_partial(r, k, owner, t);
                else
                    zero_steps_send(r->w.s, k, owner,
                                    piece_of(r, r->cover[t].first, owner, k));
            }
        }
    }
}

/* Bridged: the device makes all that chunk k sends in that round. */
static void make_round(reducer *r, int64_t k, int i)
{
    int ahead = zero_hier_node_after(&r->w, i);
    for (int l = 0; l < zero_hier_node_size(&r->w, ahead); l++)
        for (int t = 0; sends_to(r, ahead, l) && t < r->n_cover; t++)
            make_partial(r, k, r->w.layout->first[ahead] + l, t);
}

static int rounds_to(const reducer *r, int node)
{
    int n = r->w.layout->n_nodes;
    return (node - r->w.node + n) % n;
}

/* Bridged: the host adds to the chunk's last slot, once its last store from there has
 * ended. */
static void add_final(reducer *r, int64_t k)
{
    zero_spot result = {ZERO_STAGING, r->w.s->rank,
                        staged_at(r, k) + (slots(r) - 1) * slot_bytes(r)};
    int64_t posted = r->w.alone ? 0 : r->posted[k % r->w.depth];
    zero_steps_add(
        r->w.s,
        (zero_collective_step){
            .kind = ZERO_STEP_ADD,
            .type = r->w.s->spec.result,
            .sum = r->final,
            .len = zero_steps_chunk_len(r->w.s, k),
            .from = piece_of(r, r->w.s->rank, r->w.s->rank, k),
            .to = r->w.bridged ? result : zero_steps_out(r->w.s, r->w.s->rank, 0, k),
            .staged = staged_at(r, k),
            .received = posted,
            .stored = r->w.bridged ? posted : 0});
    if (r->w.bridged)
        zero_steps_add(r->w.s, (zero_collective_step){
                                   .kind = ZERO_STEP_STORE,
                                   .type = r->w.s->spec.result,
                                   .len = zero_steps_chunk_len(r->w.s, k),
                                   .from = result,
                                   .to = zero_steps_out(r->w.s, r->w.s->rank, 0, k)});
}

/* Elements of my `in` that neighbours read: all pieces but those that I am the delegate
 * for. */
static int64_t read_by_neighbours(const reducer *r)
{
    int64_t others = 0;
    for (int node = 0; node < r->w.layout->n_nodes; node++)
        for (int l = 0; l < zero_hier_node_size(&r->w, node); l++)
            others += l % r->w.n_local != r->w.local;
    return others * r->w.s->spec.count;
}

static void each_round(reducer *r, int64_t k, void (*one)(reducer *, int64_t, int))
{
    int first = 1, last = r->w.layout->n_nodes - 1;
    if (!is_owner(r, r->w.s->rank)) /* sends to the root, and to nobody else */
        first = last = rounds_to(r, r->w.layout->node_of[r->w.s->spec.root]);
    for (int i = first; i <= last; i++) one(r, k, i);
}

/* Bridged: the device is one chunk ahead of the messages. */
static void reduce_chunk(reducer *r, int64_t k)
{
    int64_t ahead = r->w.bridged ? zero_min(k + 2, zero_steps_chunks(r->w.s)) : 0;
    while (r->made_chunks < ahead) each_round(r, r->made_chunks++, make_round);
    each_round(r, k, reduce_round);
    if (r->w.bridged && is_owner(r, r->w.s->rank)) {
        /* Bridged: this node's part of chunk k of this rank's piece, after the subtrees
         * received. */
        for (int t = 0; t < r->n_cover; t++)
            make_subtree(r, k, r->w.s->rank, t,
                         (zero_spot){ZERO_STAGING, r->w.s->rank,
                                     staged_at(r, k) + (r->n_remote + t) * slot_bytes(r)});
    }
    r->posted[k % r->w.depth] = r->w.s->n;
}

/* Ends with the signal that neighbours' `in` has been read. */
static void write_reduction(reducer *r)
{
    zero_steps *s = r->w.s;
    int64_t chunks = zero_steps_chunks(s), late = r->w.depth - 1;
    add_sums(r);
    for (int64_t k = 0; k < chunks + late; k++) {
        if (k < zero_steps_portions(s)) {
            /* On its node, the root of a reduce tells nobody: it alone reads. */
            if (!r->w.alone || s->spec.kind != ZERO_REDUCE)
                zero_hier_signal_portion(&r->w, k);
            zero_steps_await(r->w.s, ZERO_ALL_NEIGHBOURS, ZERO_HIER_READY + k, 0);
        }
        if (k < chunks) reduce_chunk(r, k);
        if (k >= late && is_owner(r, s->rank)) add_final(r, k - late);
    }
    zero_steps_signal(s, zero_hier_read_phase(&r->w));
    if (!r->w.alone)
        zero_steps_last(s)->sent = s->n; /* messages leave neighbours' memory */
}

/* A plan for a million ranks does this for each owner's reduce, so the one array that grows
 * with the nodes is taken by owners alone, and not cleared. */
static void with_slots(const zero_hier *w, void (*write_steps)(reducer *))
{
    reducer r = {.w = *w, .n_places = w->depth};
    if (w->bridged)
        r.n_places = (w->depth + 1) * zero_hier_sums_to_send(&w->s->spec, w->layout);
    bool owns = is_owner(&r, w->s->rank);
    if (owns) r.slot = malloc((size_t)w->layout->n_nodes * sizeof *r.slot);
    r.made_at = calloc((size_t)r.n_places, sizeof *r.made_at);
    r.sent = calloc((size_t)r.n_places, sizeof *r.sent);
    if ((r.slot || !owns) && r.made_at && r.sent)
        write_steps(&r);
    else
        w->s->failed = true;
    free(r.sent);
    free(r.made_at);
    free(r.slot);
}

static void write_reduce_scatter(reducer *r)
{
    write_reduction(r);
    zero_steps_await(r->w.s, ZERO_ALL_NEIGHBOURS, zero_hier_read_phase(&r->w),
                     read_by_neighbours(r));
}

void zero_hier_write_reduce_scatter(const zero_hier *w)
{
    with_slots(w, write_reduce_scatter);
}

/* The root, or its delegate, waits for all ranks of its node; they wait for it alone. */
void zero_hier_write_reduce(const zero_hier *w)
{
    int root = w->s->spec.root;
    int reader = zero_layout_delegate(w->layout, w->node, w->layout->local_of[root]);
    if (w->s->rank == root || w->s->rank == reader) {
        with_slots(w, write_reduction);
        return;
    }
    for (int64_t k = 0; k < zero_steps_portions(w->s); k++) zero_hier_signal_portion(w, k);
    zero_steps_await(w->s, reader, zero_hier_read_phase(w), w->s->spec.count);
}
