/* The two-level reduce-scatter, and the reduce, in which one rank on each node does all the
 * work.
 *
 * staging    [slots][subtrees received][chunk] | [depth][chunk] to send, all in fp32,
 *            with one slot for each chunk in flight
 * bridged    [slots][subtrees received, this node's, the result][chunk] | [depth +
 * 1][sends][chunk] */
#include "lists/hier.h"

static int64_t slot_bytes(const zero_hier *w)
{
    return w->s->chunk * (int64_t)sizeof(float);
}

static zero_type type_of(const zero_hier *w, const zero_tree_term *term)
{
    return term->count == 1 ? w->s->spec.type : ZERO_FP32;
}

/* True if that rank gets a sum: each does, or in a reduce the root alone. */
static bool is_owner(const zero_hier *w, int rank)
{
    return w->s->spec.kind != ZERO_REDUCE || rank == w->s->spec.root;
}

/* The sum over ranks first .. first+count-1 of this node. */
static void add_local(zero_hier *w, int sum, int first, int count)
{
    for (int rank = first; rank < first + count; rank++)
        zero_steps_add_term(w->s, sum, (zero_term){rank, 1, w->s->spec.type, -1});
}

/* Slots of a chunk in flight. */
static int64_t slots(const zero_hier *w)
{
    return w->bridged ? w->layout->subtrees + 1 : w->n_remote;
}

static int64_t staged_at(const zero_hier *w, int64_t k)
{
    return k % w->depth * slots(w) * slot_bytes(w);
}

/* Chunk k of the owner's piece in the `in` of `rank`. */
static zero_spot piece_of(const zero_hier *w, int rank, int owner, int64_t k)
{
    return zero_steps_in(w->s, rank, zero_steps_piece(w->s, owner), k);
}

/* Subtree t of the owner's piece, to staging: a subtree of one rank is copied there. */
static void make_subtree(zero_hier *w, int64_t k, int owner, int t, zero_spot to)
{
    const zero_tree_term *term = &w->cover[t];
    bool is_one = term->count == 1;
    zero_collective_step *step =
        zero_steps_put(w->s, is_one ? ZERO_STEP_COPY : ZERO_STEP_ADD, k,
                       piece_of(w, is_one ? term->first : w->s->rank, owner, k), to);
    step->type = type_of(w, term);
    step->sum = is_one ? 0 : w->partial[t];
}

/* Where partial sum number `number` is staged. */
static zero_spot place_of(const zero_hier *w, int64_t number)
{
    int64_t before = zero_min(w->depth, zero_steps_chunks(w->s)) * slots(w);
    return zero_steps_staged(w->s, (before + number % w->n_places) * slot_bytes(w));
}

/* Makes subtree t in the next place, once the last send from there has ended. */
static void make_partial(zero_hier *w, int64_t k, int owner, int t)
{
    int64_t i = w->made % w->n_places;
    make_subtree(w, k, owner, t, place_of(w, w->made++));
    zero_steps_last(w->s)->sent = w->sent_at[i];
    w->made_at[i] = w->s->n;
}

/* True if the subtree is sent from staging, and not from the memory of its rank. */
static bool is_made(const zero_hier *w, int t)
{
    return w->bridged || w->cover[t].count > 1;
}

/* True if this rank works for local rank l of that node. */
static bool sends_to(const zero_hier *w, int node, int l)
{
    return l < zero_hier_node_size(w, node) && l % w->n_local == w->local &&
           is_owner(w, w->layout->first[node] + l);
}

/* Round i of chunk k: receives from the node i before this one, sends to the node i
 * after. */
static void reduce_round(zero_hier *w, int64_t k, int i)
{
    int behind = zero_hier_node_after(w, -i), ahead = zero_hier_node_after(w, i);
    int n_ahead = zero_hier_node_size(w, ahead);
    for (int l = 0; l < n_ahead || l <= w->local; l++) {
        if (l == w->local && is_owner(w, w->s->rank)) {
            zero_tree_term terms[ZERO_TREE_COVER_MAX];
            int n = zero_hier_cover(w->layout, behind, terms);
            for (int t = 0; t < n; t++) {
                int64_t at = staged_at(w, k) + (w->slot[behind] + t) * slot_bytes(w);
                zero_steps_receive(w->s, k,
                                   zero_layout_delegate(w->layout, behind, w->local),
                                   zero_steps_staged(w->s, at));
                zero_steps_last(w->s)->type = type_of(w, &terms[t]);
            }
        }
        if (sends_to(w, ahead, l)) {
            int owner = w->layout->first[ahead] + l;
            for (int t = 0; t < w->n_cover; t++) {
                if (is_made(w, t) && !w->bridged) make_partial(w, k, owner, t);
                if (is_made(w, t)) {
                    int64_t place = w->sends % w->n_places;
                    zero_steps_send(w->s, k, owner, place_of(w, w->sends++));
                    zero_steps_last(w->s)->type = type_of(w, &w->cover[t]);
                    if (w->bridged) zero_steps_last(w->s)->stored = w->made_at[place];
                    w->sent_at[place] = w->s->n;
                } else
                    zero_steps_send(w->s, k, owner,
                                    piece_of(w, w->cover[t].first, owner, k));
            }
        }
    }
}

/* Bridged: the device makes all that chunk k sends in that round. */
static void make_round(zero_hier *w, int64_t k, int i)
{
    int ahead = zero_hier_node_after(w, i);
    for (int l = 0; l < zero_hier_node_size(w, ahead); l++)
        for (int t = 0; sends_to(w, ahead, l) && t < w->n_cover; t++)
            make_partial(w, k, w->layout->first[ahead] + l, t);
}

/* Bridged: the host adds to the chunk's last slot, once its last store from there has
 * ended. */
static void add_final(zero_hier *w, int64_t k)
{
    zero_steps *s = w->s;
    zero_spot out = zero_steps_out(s, s->rank, zero_steps_result(s, s->rank), k);
    zero_spot result =
        zero_steps_staged(s, staged_at(w, k) + (slots(w) - 1) * slot_bytes(w));
    int64_t posted = w->alone ? 0 : w->posted[k % w->depth];
    zero_collective_step *add = zero_steps_put(
        s, ZERO_STEP_ADD, k, piece_of(w, s->rank, s->rank, k), w->bridged ? result : out);
    add->type = s->spec.result;
    add->sum = w->final;
    add->staged = staged_at(w, k);
    add->received = posted;
    add->stored = w->bridged ? posted : 0;
    if (w->bridged)
        zero_steps_put(s, ZERO_STEP_STORE, k, result, out)->type = s->spec.result;
}

static void each_round(zero_hier *w, int64_t k, void (*one)(zero_hier *, int64_t, int))
{
    int first = 1, last = w->layout->n_nodes - 1;
    if (!is_owner(w, w->s->rank)) /* sends to the root, and to nobody else */
        first = last =
            (w->layout->node_of[w->s->spec.root] - w->node + w->layout->n_nodes) %
            w->layout->n_nodes;
    for (int i = first; i <= last; i++) one(w, k, i);
}

/* Ends with the signal that neighbours' `in` has been read. */
static void write_reduction(zero_hier *w)
{
    zero_steps *s = w->s;
    int64_t chunks = zero_steps_chunks(s), late = w->depth - 1;
    w->n_cover = zero_hier_cover(w->layout, w->node, w->cover);
    w->n_remote = w->layout->subtrees - w->n_cover;
    if (is_owner(w, w->s->rank)) {
        /* Adds in the order of ranks: this node's one by one, other nodes' by their
         * subtrees. */
        const zero_layout *layout = w->layout;
        int slot = 0;
        w->final = zero_steps_add_sum(w->s);
        for (int node = 0; node < layout->n_nodes; node++) {
            zero_tree_term terms[ZERO_TREE_COVER_MAX];
            int n = zero_hier_cover(layout, node, terms);
            w->slot[node] = slot;
            /* Bridged: this node's devices have left their subtrees after those
             * received. */
            bool is_staged = node != w->node || w->bridged;
            if (!is_staged) add_local(w, w->final, layout->first[node], w->n_local);
            for (int t = 0; is_staged && t < n; t++) {
                /* The sum over a subtree, which lies in a slot of staging. */
                zero_steps_add_term(
                    w->s, w->final,
                    (zero_term){terms[t].first, terms[t].count, type_of(w, &terms[t]),
                                (node == w->node ? w->n_remote + t : slot++) *
                                    slot_bytes(w)});
            }
        }
    }
    for (int t = 0; t < w->n_cover; t++)
        if (w->cover[t].count > 1 && !w->alone) {
            w->partial[t] = zero_steps_add_sum(w->s);
            add_local(w, w->partial[t], w->cover[t].first, w->cover[t].count);
        }
    for (int64_t k = 0; k < chunks + late; k++) {
        if (k < zero_steps_portions(s)) {
            /* On its node, the root of a reduce tells nobody: it alone reads. */
            if (!w->alone || s->spec.kind != ZERO_REDUCE) zero_hier_signal_portion(w, k);
            zero_steps_await(w->s, ZERO_ALL_NEIGHBOURS, ZERO_HIER_READY + k, 0);
        }
        if (k < chunks) {
            /* Bridged: the device is one chunk ahead of the messages. */
            int64_t ahead = w->bridged ? zero_min(k + 2, zero_steps_chunks(w->s)) : 0;
            while (w->made_chunks < ahead) each_round(w, w->made_chunks++, make_round);
            each_round(w, k, reduce_round);
            if (w->bridged && is_owner(w, w->s->rank)) {
                /* Bridged: this node's part of chunk k of this rank's piece, after the
                 * subtrees received. */
                for (int t = 0; t < w->n_cover; t++)
                    make_subtree(
                        w, k, w->s->rank, t,
                        zero_steps_staged(w->s, staged_at(w, k) +
                                                    (w->n_remote + t) * slot_bytes(w)));
            }
            w->posted[k % w->depth] = w->s->n;
        }
        if (k >= late && is_owner(w, s->rank)) add_final(w, k - late);
    }
    zero_steps_signal(s, zero_hier_read_phase(w));
    if (!w->alone) zero_steps_last(s)->sent = s->n; /* messages leave neighbours' memory */
}

/* A plan for a million ranks does this for each owner's reduce, so the one array that grows
 * with the nodes is taken by owners alone, and not cleared. */
static void with_slots(zero_hier *w, void (*write_steps)(zero_hier *))
{
    bool owns = is_owner(w, w->s->rank);
    w->n_places = w->depth;
    if (w->bridged)
        w->n_places = (w->depth + 1) * zero_hier_sums_to_send(&w->s->spec, w->layout);
    if (owns) w->slot = malloc((size_t)w->layout->n_nodes * sizeof *w->slot);
    w->made_at = calloc((size_t)w->n_places, sizeof *w->made_at);
    w->sent_at = calloc((size_t)w->n_places, sizeof *w->sent_at);
    if ((w->slot || !owns) && w->made_at && w->sent_at)
        write_steps(w);
    else
        w->s->failed = true;
    zero_free(w->sent_at, w->made_at, w->slot);
}

static void write_reduce_scatter(zero_hier *w)
{
    write_reduction(w);
    /* Neighbours read all pieces here but those that this rank works for. */
    zero_steps_await(w->s, ZERO_ALL_NEIGHBOURS, zero_hier_read_phase(w),
                     (w->layout->size - zero_hier_works_for(w)) * w->s->spec.count);
}

void zero_hier_write_reduce_scatter(zero_hier *w)
{
    with_slots(w, write_reduce_scatter);
}

/* What the neighbours read is this rank's piece of `out`, once it is there. */
void zero_hier_write_all_reduce(zero_hier *w)
{
    with_slots(w, write_reduce_scatter);
    w->before = zero_hier_read_phase(w);
    zero_hier_write_all_gather(w);
}

/* The root, or its delegate, waits for all ranks of its node; they wait for it alone. */
void zero_hier_write_reduce(zero_hier *w)
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
