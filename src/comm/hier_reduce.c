/* The two-level reduce-scatter, and the reduce, in which one rank on each node does all the work.
 *
 * staging    [slots][subtrees received][chunk] | [depth][chunk] to send, all in fp32,
 *            with one slot for each chunk in flight */
#include "comm/hier.h"

#include <stdlib.h>

typedef struct {
    zero_hier w;
    int n_remote; /* subtrees of the other nodes, which owners receive */
    /* On an owner alone. */
    int *slot;   /* [n_nodes]: the first of them that comes from the node; owned */
    int final;   /* the sum of this rank's piece */
    int n_cover; /* subtrees of this rank's node */
    zero_tree_term cover[ZERO_TREE_COVER_MAX];
    int partial[ZERO_TREE_COVER_MAX];    /* their sums */
    int64_t sends;                       /* partial sums sent so far */
    int64_t sent[ZERO_HIER_IN_FLIGHT];   /* steps until the last send from a slot */
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

/* Adds in the order of ranks: this node's one by one, other nodes' by their subtrees. */
static void add_final_sum(reducer *r)
{
    const zero_layout *layout = r->w.layout;
    int slot = 0;
    r->final = zero_steps_add_sum(r->w.s);
    for (int node = 0; node < layout->n_nodes; node++) {
        zero_tree_term terms[ZERO_TREE_COVER_MAX];
        int n = zero_hier_cover(layout, node, terms);
        r->slot[node] = slot;
        if (node == r->w.node)
            for (int l = 0; l < r->w.n_local; l++)
                zero_steps_add_term(
                    r->w.s, r->final,
                    (zero_term){layout->first[node] + l, 1, r->w.s->spec.type, -1});
        for (int t = 0; node != r->w.node && t < n; t++)
            zero_steps_add_term(r->w.s, r->final,
                                (zero_term){terms[t].first, terms[t].count,
                                            type_of(r, &terms[t]), slot++ * slot_bytes(r)});
    }
}

static void add_sums(reducer *r)
{
    r->n_cover = zero_hier_cover(r->w.layout, r->w.node, r->cover);
    r->n_remote = r->w.layout->subtrees - r->n_cover;
    if (is_owner(r, r->w.s->rank)) add_final_sum(r);
    for (int t = 0; t < r->n_cover; t++)
        if (r->cover[t].count > 1)
            r->partial[t] = add_local_sum(r, r->cover[t].first, r->cover[t].count);
}

static int64_t staged_at(const reducer *r, int64_t k)
{
    return k % r->w.depth * r->n_remote * slot_bytes(r);
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

/* Adds subtree t into the next slot, once the last send from there has ended. */
static zero_spot add_partial(reducer *r, int64_t k, int owner, int t)
{
    int64_t i = r->sends % r->w.depth;
    int64_t slots = zero_min(r->w.depth, zero_steps_chunks(r->w.s));
    int64_t at = (slots * r->n_remote + i) * slot_bytes(r);
    zero_spot slot = {ZERO_STAGING, r->w.s->rank, at};
    zero_steps_add(r->w.s,
                   (zero_collective_step){.kind = ZERO_STEP_ADD,
                                          .type = ZERO_FP32,
                                          .sum = r->partial[t],
                                          .len = zero_steps_chunk_len(r->w.s, k),
                                          .from = piece_of(r, r->w.s->rank, owner, k),
                                          .to = slot,
                                          .sent = r->sent[i]});
    return slot;
}

static void send_to(reducer *r, int64_t k, int owner)
{
    for (int t = 0; t < r->n_cover; t++) {
        bool is_sum = r->cover[t].count > 1;
        zero_spot from =
            is_sum ? add_partial(r, k, owner, t) : piece_of(r, r->cover[t].first, owner, k);
        zero_steps_send(r->w.s, k, owner, from);
        if (!is_sum) continue;
        zero_steps_last(r->w.s)->type = ZERO_FP32;
        r->sent[r->sends++ % r->w.depth] = r->w.s->n;
    }
}

/* Round i of chunk k: receives from the node i before this one, sends to the node i after. */
static void reduce_round(reducer *r, int64_t k, int i)
{
    int behind = zero_hier_node_after(&r->w, -i), ahead = zero_hier_node_after(&r->w, i);
    int n_ahead = zero_hier_node_size(&r->w, ahead);
    for (int l = 0; l < n_ahead || l <= r->w.local; l++) {
        int owner = r->w.layout->first[ahead] + l;
        if (l == r->w.local && is_owner(r, r->w.s->rank)) receive_from(r, k, behind);
        if (l < n_ahead && l % r->w.n_local == r->w.local && is_owner(r, owner))
            send_to(r, k, owner);
    }
}

static int rounds_to(const reducer *r, int node)
{
    int n = r->w.layout->n_nodes;
    return (node - r->w.node + n) % n;
}

static void add_final(reducer *r, int64_t k)
{
    zero_steps_add(
        r->w.s, (zero_collective_step){.kind = ZERO_STEP_ADD,
                                       .type = r->w.s->spec.result,
                                       .sum = r->final,
                                       .len = zero_steps_chunk_len(r->w.s, k),
                                       .from = piece_of(r, r->w.s->rank, r->w.s->rank, k),
                                       .to = zero_steps_out(r->w.s, r->w.s->rank, 0, k),
                                       .staged = staged_at(r, k),
                                       .received = r->posted[k % r->w.depth]});
}

/* Elements of my `in` that neighbours read: all pieces but those that I am the delegate for. */
static int64_t read_by_neighbours(const reducer *r)
{
    int64_t others = 0;
    for (int node = 0; node < r->w.layout->n_nodes; node++)
        for (int l = 0; l < zero_hier_node_size(&r->w, node); l++)
            others += l % r->w.n_local != r->w.local;
    return others * r->w.s->spec.count;
}

static void become_ready(reducer *r, int64_t k)
{
    zero_hier_signal_portion(&r->w, k);
    zero_steps_await(r->w.s, ZERO_ALL_NEIGHBOURS, ZERO_HIER_READY + k, 0);
}

static void reduce_chunk(reducer *r, int64_t k)
{
    int first = 1, last = r->w.layout->n_nodes - 1;
    if (!is_owner(r, r->w.s->rank)) /* sends to the root, and to nobody else */
        first = last = rounds_to(r, r->w.layout->node_of[r->w.s->spec.root]);
    for (int i = first; i <= last; i++) reduce_round(r, k, i);
}

/* Ends with the signal that neighbours' `in` has been read. */
static void write_reduction(reducer *r)
{
    zero_steps *s = r->w.s;
    int64_t chunks = zero_steps_chunks(s), late = r->w.depth - 1;
    add_sums(r);
    for (int64_t k = 0; k < chunks + late; k++) {
        if (k < zero_steps_portions(s)) become_ready(r, k);
        if (k < chunks) reduce_chunk(r, k);
        if (k < chunks) r->posted[k % r->w.depth] = s->n;
        if (k >= late && is_owner(r, s->rank)) add_final(r, k - late);
    }
    zero_steps_signal(s, zero_hier_read_phase(&r->w));
    zero_steps_last(s)->sent = s->n; /* messages leave neighbours' memory */
}

static void with_slots(const zero_hier *w, void (*write_steps)(reducer *))
{
    reducer r = {.w = *w, .slot = malloc((size_t)w->layout->n_nodes * sizeof *r.slot)};
    if (r.slot)
        write_steps(&r);
    else
        w->s->failed = true;
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
    if (w->s->rank == root) {
        with_slots(w, write_reduction);
        return;
    }
    if (w->s->rank == reader) {
        write_reduction(&(reducer){.w = *w});
        return;
    }
    for (int64_t k = 0; k < zero_steps_portions(w->s); k++) zero_hier_signal_portion(w, k);
    zero_steps_await(w->s, reader, zero_hier_read_phase(w), w->s->spec.count);
}
