/* Two levels: neighbours read each other's memory, nodes exchange messages.
 *
 * Every rank works for its own piece and, as delegate, for the pieces of the same local rank
 * on all other nodes (zero_layout_delegate), so all ranks of a node drive its link together.
 *
 *     reduce-scatter, 2 nodes of 2:     node 0             node 1
 *     piece 0 belongs to rank 0         0: x0 + x1 ...     2: x2 + x3 -> message to 0
 *     piece 2 belongs to rank 2         0: x0 + x1 -> 2    2: ... + (x2 + x3)
 *
 * A delegate adds its node's terms of a piece in fp32, as far as they form complete subtrees
 * of the tree over all ranks: one message where a node's ranks are a block of a power of two,
 * a few otherwise. The owner puts the subtrees together, so the bits are those of p2p. A
 * subtree of one rank travels as it is.
 *
 *     all-gather       each piece goes once to each other node, to the delegate; neighbours
 *                      copy it from there, or find it in the one `out` of their node
 *     broadcast        a chain over the nodes' leaders, and from each to its neighbours
 *
 * Messages are ordered by chunk, round (distance between nodes), local rank and subtree, on
 * all ranks. The first one that has not ended always finds both of its partners waiting for
 * nothing but earlier ones, so nobody waits in a circle. */
#include <stdlib.h>

#include "comm/step.h"

#define ALIGN     64 /* elements */
#define IN_FLIGHT 8  /* chunks received at once, if staging suffices */
#define MIN_DEPTH 2
#define MAX_COVER 64 /* subtrees that cover any range of ranks */

/* READY: my `in` is ready, and I read nothing of `out` any more. WRITTEN: my piece is in my
 * `out`; WRITTEN + 1 + k: so is all that I receive of chunk k. The last phase, one more, says
 * that I have read all I needed. */
enum { READY = 1, WRITTEN = 2 };

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static bool is_staged(const zero_collective_spec *spec, const zero_layout *layout)
{
    return spec->kind == ZERO_REDUCE_SCATTER && layout->n_nodes > 1;
}

static int cover(const zero_layout *layout, int node, zero_tree_term *terms)
{
    int first = layout->first[node];
    return zero_tree_cover(layout->size, first, layout->first[node + 1] - first, terms);
}

/* Subtrees that reach a rank from all other nodes, at most. */
static int count_remote(const zero_layout *layout)
{
    zero_tree_term terms[MAX_COVER];
    int all = 0, least = layout->size;
    for (int node = 0; node < layout->n_nodes; node++) {
        int n = cover(layout, node, terms);
        all += n;
        if (n < least) least = n;
    }
    return all - least;
}

/* Chunks that are received at once, and as many that are sent. */
static int64_t depth(const zero_layout *layout)
{
    return max64(IN_FLIGHT / max64(count_remote(layout), 1), MIN_DEPTH);
}

/* A chunk under way takes a slot for each subtree that arrives and one for what is sent. */
static int64_t largest_staged_chunk(const zero_layout *layout)
{
    int64_t room = (int64_t)(ZERO_COLLECTIVE_STAGING / sizeof(float));
    int64_t share = room / (depth(layout) * (count_remote(layout) + 1)) / ALIGN * ALIGN;
    return max64(share, ALIGN);
}

static int64_t chunk(const zero_collective_spec *spec, const zero_layout *layout)
{
    int64_t most = (int64_t)(ZERO_STEP_CHUNK / zero_type_size(spec->type));
    if (spec->max_chunk > 0) most = spec->max_chunk;
    if (is_staged(spec, layout)) most = min64(most, largest_staged_chunk(layout));
    int64_t whole = (spec->count + ALIGN - 1) / ALIGN * ALIGN;
    return whole > 0 ? min64(most, whole) : most;
}

static size_t staging(const zero_collective_spec *spec, const zero_layout *layout)
{
    if (!is_staged(spec, layout) || spec->count == 0) return 0;
    int64_t len = chunk(spec, layout);
    int64_t chunks = min64(depth(layout), (spec->count + len - 1) / len);
    return (size_t)((chunks * count_remote(layout) + depth(layout)) * len) * sizeof(float);
}

static zero_status check(const zero_collective_spec *spec, const zero_layout *layout)
{
    if (!layout->in_blocks)
        return zero_fail(ZERO_ERR_UNSUPPORTED,
                         "hier needs the ranks of each node to be neighbours: start with "
                         "mpirun --map-by slot (srun -m block), or use p2p or auto");
    if (zero_layout_largest_node(layout) == 1 || spec->count == 0) return ZERO_OK;
    bool reads_in = spec->kind != ZERO_BROADCAST;
    bool reads_out = spec->kind != ZERO_REDUCE_SCATTER;
    if ((!reads_in || spec->in_apart > 0) &&
        (!reads_out || spec->out_apart > 0 || spec->one_out))
        return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID, "a two-level %s needs its buffers in a window",
                     zero_collective_kind_name(spec->kind));
}

/* ---- who and where ---- */

typedef struct {
    zero_steps *s;
    const zero_layout *layout;
    int node, local, n_local;
    int64_t depth;
} writer;

static int node_after(const writer *w, int rounds)
{
    return (w->node + rounds + w->layout->n_nodes) % w->layout->n_nodes;
}

static int node_size(const writer *w, int node)
{
    return w->layout->first[node + 1] - w->layout->first[node];
}

static zero_spot in(const writer *w, int rank, int piece, int64_t k)
{
    return (zero_spot){ZERO_IN, rank, zero_steps_chunk_at(w->s, piece, k)};
}

static zero_spot out(const writer *w, int rank, int piece, int64_t k)
{
    return (zero_spot){ZERO_OUT, rank, zero_steps_chunk_at(w->s, piece, k)};
}

static void set_received(writer *w, int64_t received)
{
    if (!w->s->failed) w->s->list[w->s->n - 1].received = received;
}

/* ---- reduce-scatter ----
 *
 * staging    [slots][subtrees received][chunk] | [depth][chunk] to send, all in fp32,
 *            with as many slots as chunks are under way at once */

typedef struct {
    writer w;
    int n_remote;
    int *slot;   /* [n_nodes]: of the node's first subtree among those received; owned */
    int final;   /* the sum of the own piece */
    int n_cover; /* the own node's subtrees, and their sums */
    zero_tree_term cover[MAX_COVER];
    int partial[MAX_COVER];
    int64_t sends;             /* partial sums so far */
    int64_t sent[IN_FLIGHT];   /* steps until the last send from a slot */
    int64_t posted[IN_FLIGHT]; /* steps until chunk k % depth was under way */
} reducer;

static int64_t slot_bytes(const reducer *r)
{
    return r->w.s->chunk * (int64_t)sizeof(float);
}

static zero_type type_of(const reducer *r, const zero_tree_term *term)
{
    return term->count == 1 ? r->w.s->spec->type : ZERO_FP32;
}

/* The sum of what ranks first .. first+count-1 of this node have. */
static int add_local_sum(reducer *r, int first, int count)
{
    int sum = zero_steps_add_sum(r->w.s);
    for (int rank = first; rank < first + count; rank++)
        zero_steps_add_term(r->w.s, sum, (zero_term){rank, 1, r->w.s->spec->type, -1});
    return sum;
}

/* In the order of ranks: own neighbours one by one, others by their subtrees. */
static void add_final_sum(reducer *r)
{
    const zero_layout *layout = r->w.layout;
    int slot = 0;
    r->final = zero_steps_add_sum(r->w.s);
    for (int node = 0; node < layout->n_nodes; node++) {
        zero_tree_term terms[MAX_COVER];
        int n = cover(layout, node, terms);
        r->slot[node] = slot;
        if (node == r->w.node)
            for (int l = 0; l < r->w.n_local; l++)
                zero_steps_add_term(
                    r->w.s, r->final,
                    (zero_term){layout->first[node] + l, 1, r->w.s->spec->type, -1});
        for (int t = 0; node != r->w.node && t < n; t++)
            zero_steps_add_term(r->w.s, r->final,
                                (zero_term){terms[t].first, terms[t].count,
                                            type_of(r, &terms[t]), slot++ * slot_bytes(r)});
    }
    r->n_remote = slot;
}

static void add_sums(reducer *r)
{
    add_final_sum(r);
    r->n_cover = cover(r->w.layout, r->w.node, r->cover);
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
    zero_tree_term terms[MAX_COVER];
    int n = cover(r->w.layout, node, terms);
    for (int t = 0; t < n; t++) {
        int64_t at = staged_at(r, k) + (r->slot[node] + t) * slot_bytes(r);
        zero_steps_receive(r->w.s, k, zero_layout_delegate(r->w.layout, node, r->w.local),
                           (zero_spot){ZERO_STAGING, r->w.s->rank, at});
        if (!r->w.s->failed) r->w.s->list[r->w.s->n - 1].type = type_of(r, &terms[t]);
    }
}

/* The sum of subtree t, to the next slot that its last send has left. */
static zero_spot add_partial(reducer *r, int64_t k, int owner, int t)
{
    int64_t i = r->sends % r->w.depth;
    int64_t slots = min64(r->w.depth, zero_steps_chunks(r->w.s));
    int64_t at = (slots * r->n_remote + i) * slot_bytes(r);
    zero_spot slot = {ZERO_STAGING, r->w.s->rank, at};
    zero_steps_add(r->w.s, (zero_step){.kind = ZERO_STEP_ADD,
                                       .type = ZERO_FP32,
                                       .sum = r->partial[t],
                                       .len = zero_steps_chunk_len(r->w.s, k),
                                       .from = in(&r->w, r->w.s->rank, owner, k),
                                       .to = slot,
                                       .sent = r->sent[i]});
    return slot;
}

static void send_to(reducer *r, int64_t k, int owner)
{
    for (int t = 0; t < r->n_cover; t++) {
        bool is_sum = r->cover[t].count > 1;
        zero_spot from =
            is_sum ? add_partial(r, k, owner, t) : in(&r->w, r->cover[t].first, owner, k);
        zero_steps_send(r->w.s, k, owner, from);
        if (!is_sum) continue;
        if (!r->w.s->failed) r->w.s->list[r->w.s->n - 1].type = ZERO_FP32;
        r->sent[r->sends++ % r->w.depth] = r->w.s->n;
    }
}

/* Round i of chunk k: with the node i behind, and the node i ahead. */
static void reduce_round(reducer *r, int64_t k, int i)
{
    int behind = node_after(&r->w, -i), ahead = node_after(&r->w, i);
    int n_ahead = node_size(&r->w, ahead);
    for (int l = 0; l < n_ahead || l <= r->w.local; l++) {
        if (l == r->w.local) receive_from(r, k, behind);
        if (l < n_ahead && l % r->w.n_local == r->w.local)
            send_to(r, k, r->w.layout->first[ahead] + l);
    }
}

static void add_final(reducer *r, int64_t k)
{
    zero_steps_add(r->w.s, (zero_step){.kind = ZERO_STEP_ADD,
                                       .type = r->w.s->spec->result,
                                       .sum = r->final,
                                       .len = zero_steps_chunk_len(r->w.s, k),
                                       .from = in(&r->w, r->w.s->rank, r->w.s->rank, k),
                                       .to = out(&r->w, r->w.s->rank, 0, k),
                                       .staged = staged_at(r, k),
                                       .received = r->posted[k % r->w.depth]});
}

/* Elements of my `in` that neighbours read: all pieces but those that I am delegate of. */
static int64_t read_by_neighbours(const reducer *r)
{
    int64_t others = 0;
    for (int node = 0; node < r->w.layout->n_nodes; node++)
        for (int l = 0; l < node_size(&r->w, node); l++)
            others += l % r->w.n_local != r->w.local;
    return others * r->w.s->spec->count;
}

static void write_reduction(reducer *r)
{
    zero_steps *s = r->w.s;
    int64_t chunks = zero_steps_chunks(s), late = r->w.depth - 1;
    add_sums(r);
    zero_steps_signal(s, READY);
    zero_steps_await(s, ZERO_ALL_NEIGHBOURS, READY, 0);
    for (int64_t k = 0; k < chunks + late; k++) {
        for (int i = 1; k < chunks && i < r->w.layout->n_nodes; i++) reduce_round(r, k, i);
        if (k < chunks) r->posted[k % r->w.depth] = s->n;
        if (k >= late) add_final(r, k - late);
    }
    zero_steps_signal(s, WRITTEN);
    if (!s->failed) s->list[s->n - 1].sent = s->n; /* messages leave neighbours' memory */
    zero_steps_await(s, ZERO_ALL_NEIGHBOURS, WRITTEN, read_by_neighbours(r));
}

static void write_reduce_scatter(const writer *w)
{
    reducer r = {.w = *w, .slot = malloc((size_t)w->layout->n_nodes * sizeof *r.slot)};
    if (r.slot)
        write_reduction(&r);
    else
        w->s->failed = true;
    free(r.slot);
}

/* ---- all-gather ---- */

typedef struct {
    writer w;
    int64_t posted[IN_FLIGHT]; /* steps until chunk k % depth was under way */
} gatherer;

static void gather_round(gatherer *g, int64_t k, int i)
{
    zero_steps *s = g->w.s;
    int behind = node_after(&g->w, -i), ahead = node_after(&g->w, i);
    int n_behind = node_size(&g->w, behind);
    for (int l = 0; l < n_behind || l <= g->w.local; l++) {
        int owner = g->w.layout->first[behind] + l;
        if (l < n_behind && l % g->w.n_local == g->w.local)
            zero_steps_receive(s, k, owner, out(&g->w, s->rank, owner, k));
        if (l == g->w.local)
            zero_steps_send(s, k, zero_layout_delegate(g->w.layout, ahead, l),
                            in(&g->w, s->rank, 0, k));
    }
}

/* What came in round i, from the neighbours that received it. */
static void copy_round(gatherer *g, int64_t k, int i)
{
    zero_steps *s = g->w.s;
    int behind = node_after(&g->w, -i);
    for (int l = 0; l < node_size(&g->w, behind); l++) {
        int owner = g->w.layout->first[behind] + l;
        int at = zero_layout_delegate(g->w.layout, g->w.node, l);
        if (at == s->rank) continue;
        zero_steps_await(s, at, WRITTEN + 1 + k, 0);
        zero_steps_copy(s, k, out(&g->w, at, owner, k), out(&g->w, s->rank, owner, k));
    }
}

/* Chunk k has been under way long enough: tell the neighbours, and copy what they have. */
static void finish_chunk(gatherer *g, int64_t k)
{
    zero_steps_signal(g->w.s, WRITTEN + 1 + k);
    set_received(&g->w, g->posted[k % g->w.depth]);
    for (int i = 1; i < g->w.layout->n_nodes; i++) copy_round(g, k, i);
}

static void copy_own(writer *w)
{
    zero_steps *s = w->s;
    for (int64_t k = 0; k < zero_steps_chunks(s); k++)
        zero_steps_copy(s, k, in(w, s->rank, 0, k), out(w, s->rank, s->rank, k));
    zero_steps_signal(s, WRITTEN);
}

/* The pieces of this node, each from its owner. With one_out they are where they are to be. */
static void copy_neighbours(writer *w)
{
    zero_steps *s = w->s;
    bool one_out = s->spec->one_out;
    for (int i = 1; i < w->n_local; i++) {
        int peer = w->layout->first[w->node] + (w->local + i) % w->n_local;
        zero_steps_await(s, peer, one_out ? WRITTEN : READY, 0);
        for (int64_t k = 0; k < zero_steps_chunks(s); k++)
            zero_steps_copy(s, k, one_out ? out(w, peer, peer, k) : in(w, peer, 0, k),
                            out(w, s->rank, peer, k));
    }
}

/* Elements that neighbours read here: my piece, and what I have received for them. */
static int64_t gathered_by_neighbours(const writer *w)
{
    int64_t pieces = 1;
    for (int node = 0; node < w->layout->n_nodes; node++)
        for (int l = 0; node != w->node && l < node_size(w, node); l++)
            pieces += l % w->n_local == w->local;
    return (w->n_local - 1) * pieces * w->s->spec->count;
}

static void finish(writer *w, int64_t phase, int64_t read)
{
    zero_steps_signal(w->s, phase);
    zero_steps_await(w->s, ZERO_ALL_NEIGHBOURS, phase, read);
}

/* The slow links come first: neighbours are copied when those are busy. */
static void write_all_gather(const writer *w)
{
    zero_steps *s = w->s;
    gatherer g = {.w = *w};
    int64_t chunks = zero_steps_chunks(s), late = w->depth - 1;
    zero_steps_signal(s, READY);
    if (s->spec->one_out) zero_steps_await(s, ZERO_ALL_NEIGHBOURS, READY, 0);
    for (int64_t k = 0; k < chunks + late; k++) {
        for (int i = 1; k < chunks && i < w->layout->n_nodes; i++) gather_round(&g, k, i);
        if (k < chunks) g.posted[k % w->depth] = s->n;
        if (k == late) copy_own(&g.w);
        if (k == late) copy_neighbours(&g.w);
        if (k >= late && w->layout->n_nodes > 1) finish_chunk(&g, k - late);
    }
    finish(&g.w, WRITTEN + chunks + 1, gathered_by_neighbours(w));
}

/* ---- broadcast ---- */

static int leader(const writer *w, int node)
{
    int root = w->s->spec->root;
    return node == w->layout->node_of[root] ? root : w->layout->first[node];
}

/* Chunk k is here, or will be when `received` is: on it goes, and neighbours may read it. */
static void pass_on(writer *w, int64_t k, int64_t received)
{
    int next = leader(w, node_after(w, 1));
    if (next != w->s->spec->root) {
        zero_steps_send(w->s, k, next, out(w, w->s->rank, 0, k));
        set_received(w, received);
    }
    zero_steps_signal(w->s, WRITTEN + 1 + k);
    set_received(w, received);
}

static void write_root(writer *w)
{
    for (int64_t k = 0; k < zero_steps_chunks(w->s); k++) {
        zero_steps_copy(w->s, k, in(w, w->s->rank, 0, k), out(w, w->s->rank, 0, k));
        pass_on(w, k, 0);
    }
}

static void write_leader(writer *w)
{
    int64_t chunks = zero_steps_chunks(w->s), late = w->depth - 1, posted[IN_FLIGHT];
    int before = leader(w, node_after(w, -1));
    for (int64_t k = 0; k < chunks + late; k++) {
        if (k < chunks) {
            zero_steps_receive(w->s, k, before, out(w, w->s->rank, 0, k));
            posted[k % w->depth] = w->s->n;
        }
        if (k >= late) pass_on(w, k - late, posted[(k - late) % w->depth]);
    }
}

static void write_follower(writer *w, int from)
{
    for (int64_t k = 0; k < zero_steps_chunks(w->s); k++) {
        zero_steps_await(w->s, from, WRITTEN + 1 + k, 0);
        zero_steps_copy(w->s, k, out(w, from, 0, k), out(w, w->s->rank, 0, k));
    }
}

static void write_broadcast(const writer *from)
{
    writer w = *from;
    zero_steps *s = w.s;
    int64_t chunks = zero_steps_chunks(s);
    int first = leader(&w, w.node);
    zero_steps_signal(s, READY);
    if (s->rank == first && s->spec->one_out)
        zero_steps_await(s, ZERO_ALL_NEIGHBOURS, READY, 0);
    if (s->rank == s->spec->root)
        write_root(&w);
    else if (s->rank == first)
        write_leader(&w);
    else
        write_follower(&w, first);
    finish(&w, WRITTEN + chunks + 1,
           s->rank == first ? (w.n_local - 1) * s->spec->count : 0);
}

static void write(zero_steps *steps)
{
    const zero_layout *layout = steps->layout;
    int node = layout->node_of[steps->rank];
    writer w = {.s = steps,
                .layout = layout,
                .node = node,
                .local = steps->rank - layout->first[node],
                .n_local = layout->first[node + 1] - layout->first[node],
                .depth = depth(layout)};
    switch (steps->spec->kind) {
    case ZERO_REDUCE_SCATTER: write_reduce_scatter(&w); break;
    case ZERO_ALL_GATHER: write_all_gather(&w); break;
    default: write_broadcast(&w); break;
    }
}

const zero_algorithm_table zero_algorithm_hier = {"hier", check, chunk, staging, write};
