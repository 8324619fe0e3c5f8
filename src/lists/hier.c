/* Two levels: neighbours read each other's memory, nodes exchange messages. `shm` is the
 * same on one node, where a rank reads data where its neighbour computed it:
 *
 *     reduce-scatter   one pass: the owner adds its piece of all neighbours' `in`
 *     reduce           the root does so, and the others wait only for the root
 *     all-gather       copies the neighbours' pieces, or nothing if the pieces adjoin
 *                      already: then `out` is the window itself, and the gathered array a
 *                      pointer
 *
 * Every rank works for its own piece and, as delegate, for the pieces of the same local
 * rank on all other nodes (zero_layout_delegate), so all ranks of a node drive its link
 * together.
 *
 *     reduce-scatter, 2 nodes of 2:     node 0             node 1
 *     piece 0 belongs to rank 0         0: x0 + x1 ...     2: x2 + x3 -> message to 0
 *     piece 2 belongs to rank 2         0: x0 + x1 -> 2    2: ... + (x2 + x3)
 *
 * A delegate adds its node's terms of a piece in fp32, as far as they form complete
 * subtrees of the tree over all ranks: one message if a node's ranks are a block of a power
 * of two, a few otherwise. The owner adds up the subtrees, so the bits are those of p2p. A
 * subtree of one rank travels unchanged.
 *
 *     reduce           the same for the root's piece alone: the root and its delegates read
 *     all-gather       each piece goes once to each other node, to the delegate; neighbours
 *                      copy it from there, or find it in the one `out` of their node
 *     broadcast        a chain over the nodes' leaders, and from each to its neighbours
 *     all-reduce       a reduce-scatter, each piece to its place, then an all-gather
 *
 * Messages are ordered by chunk, round (distance between nodes), local rank and subtree, on
 * all ranks. Both partners of the first message that has not ended wait for earlier
 * messages only, so ranks cannot wait in a circle. Sums on a device also await each chunk
 * of their neighbours' `in`; a neighbour signals it after messages of earlier chunks only.
 *
 * Where the devices of a node reach each other, the lists are those of the host's memory,
 * but messages begin and end in staging (bridged, hier.h). A delegate's device writes its
 * sums there, the host adds those of all nodes, and the result is stored: once per owner.
 * Each piece of an all-gather is fetched once by its owner and stored once on each other
 * node, by the delegate, from which neighbours copy it device to device. Copies wait for
 * slots and for earlier messages of their list only. */
#include "lists/hier.h"

#include "lists/algorithm.h"

#define MIN_DEPTH 2

static bool is_staged(const zero_collective_spec *spec, const zero_layout *layout)
{
    return layout->n_nodes > 1 && (zero_collective_sums(spec->kind) || spec->direct);
}

/* Subtrees that a rank receives from all other nodes together, at most. */
static int count_remote(const zero_layout *layout)
{
    return layout->subtrees - layout->fewest_subtrees;
}

/* Chunks in flight at once, in each direction. */
static int64_t depth(const zero_collective_spec *spec, const zero_layout *layout)
{
    int64_t most = ZERO_HIER_IN_FLIGHT / (zero_hier_is_bridged(spec, layout) ? 2 : 1);
    if (spec->algorithm == ZERO_ALGORITHM_SHM) return 1;
    return zero_max(most / zero_max(count_remote(layout), 1), MIN_DEPTH);
}

int64_t zero_hier_delegated(const zero_collective_spec *spec, const zero_layout *layout)
{
    int64_t least = layout->largest;
    if (zero_collective_has_root(spec->kind)) return 1;
    for (int k = 0; k < layout->n_nodes; k++)
        least = zero_min(least, layout->first[k + 1] - layout->first[k]);
    return (layout->n_nodes - 1) * zero_divide_up(layout->largest, least);
}

int64_t zero_hier_works_for(const zero_hier *w)
{
    int64_t pieces = 1;
    for (int node = 0; node < w->layout->n_nodes; node++)
        for (int l = 0; node != w->node && l < zero_hier_node_size(w, node); l++)
            pieces += l % w->n_local == w->local;
    return pieces;
}

int64_t zero_hier_sums_to_send(const zero_collective_spec *spec, const zero_layout *layout)
{
    return zero_hier_delegated(spec, layout) * layout->most_subtrees;
}

/* Slots of staging, of a chunk each, for `chunks` chunks in flight. On the host a chunk
 * takes one for each subtree that arrives and one for the sum to send. */
static int64_t count_slots(const zero_collective_spec *spec, const zero_layout *layout,
                           int64_t chunks)
{
    if (!zero_hier_is_bridged(spec, layout))
        return chunks * count_remote(layout) + depth(spec, layout);
    if (zero_collective_sums(spec->kind))
        return chunks * (layout->subtrees + 1) +
               (depth(spec, layout) + 1) * zero_hier_sums_to_send(spec, layout);
    return (depth(spec, layout) + 1) * (zero_hier_delegated(spec, layout) + 1);
}

/* Bytes of a value that travels: partial sums are fp32. */
static size_t largest_value(const zero_collective_spec *spec)
{
    return zero_element_size(zero_collective_sums(spec->kind) ? ZERO_FP32 : spec->type);
}

static int64_t chunk(const zero_collective_spec *spec, const zero_layout *layout)
{
    bool stays = spec->direct && layout->n_nodes == 1; /* on devices */
    size_t bytes = stays ? ZERO_DIRECT_CHUNK : ZERO_STEP_CHUNK;
    int64_t most = (int64_t)(bytes / zero_element_size(spec->type));
    if (spec->max_chunk > 0) most = spec->max_chunk;
    if (spec->algorithm == ZERO_ALGORITHM_HIER)
        most = zero_step_message(spec, most, largest_value(spec));
    if (is_staged(spec, layout)) {
        int64_t room = (int64_t)(ZERO_COLLECTIVE_STAGING / largest_value(spec));
        int64_t slots = count_slots(spec, layout, depth(spec, layout));
        most = zero_min(most, zero_step_share(room, slots));
    }
    return zero_step_chunk(spec->count, most);
}

static size_t staging(const zero_collective_spec *spec, const zero_layout *layout)
{
    if (!is_staged(spec, layout) || spec->count == 0) return 0;
    int64_t len = chunk(spec, layout);
    int64_t chunks = zero_min(depth(spec, layout), zero_divide_up(spec->count, len));
    return (size_t)(count_slots(spec, layout, chunks) * len) * largest_value(spec);
}

/* Partial sums are fp32, and there is no room for a tail. */
static zero_status check_sum(const zero_collective_spec *spec)
{
    bool tree = zero_reduction_is_tree(spec->reduction, (zero_number)spec->type);
    bool one_out = spec->kind == ZERO_ALL_REDUCE && spec->one_out;
    ZERO_FAIL_IF(!(!zero_collective_sums(spec->kind) || tree) || spec->tail != 0 || one_out,
                 ZERO_ERR_UNSUPPORTED,
                 "%s does sums and means of fp32, bf16 and fp16, and all-reduces without a "
                 "tail to an 'out' of each rank: use p2p",
                 zero_algorithm_name(spec->algorithm));
    return ZERO_OK;
}

static zero_status check_shm(const zero_collective_spec *spec, const zero_layout *layout)
{
    ZERO_FAIL_IF(
        layout->n_nodes > 1, ZERO_ERR_UNSUPPORTED,
        "shm works within one node, and %d ranks are on %d nodes: use hier, p2p or auto",
        layout->size, layout->n_nodes);
    ZERO_TRY(check_sum(spec));
    bool reads_out = spec->kind == ZERO_BROADCAST || spec->kind == ZERO_ALL_REDUCE;
    size_t apart = reads_out ? spec->out_apart : spec->in_apart;
    if (spec->kind == ZERO_ALL_REDUCE && spec->in_apart == 0) apart = 0;
    bool reads = layout->size > 1 && spec->count > 0;
    ZERO_INVALID_IF(reads && apart == 0 && !(spec->one_out && reads_out),
                    "a %s through shared memory needs its '%s' in a window",
                    zero_collective_kind_name(spec->kind), reads_out ? "out" : "in");
    return ZERO_OK;
}

static zero_status check(const zero_collective_spec *spec, const zero_layout *layout)
{
    ZERO_FAIL_IF(!layout->in_blocks, ZERO_ERR_UNSUPPORTED,
                 "hier needs the ranks of each node to be neighbours: start with mpirun "
                 "--map-by slot (srun -m block), or use p2p or auto");
    if (zero_layout_largest_node(layout) == 1 || spec->count == 0) return ZERO_OK;
    ZERO_TRY(check_sum(spec));
    bool reads_in = spec->kind != ZERO_BROADCAST;
    bool reads_out = !zero_collective_sums(spec->kind) || spec->kind == ZERO_ALL_REDUCE;
    ZERO_INVALID_IF(!((!reads_in || spec->in_apart > 0) &&
                      (!reads_out || spec->out_apart > 0 || spec->one_out)),
                    "a two-level %s needs its buffers in a window",
                    zero_collective_kind_name(spec->kind));
    return ZERO_OK;
}

static void write_steps(zero_steps *steps)
{
    const zero_layout *layout = steps->layout;
    int node = layout->node_of[steps->rank];
    zero_hier w = {.s = steps,
                   .layout = layout,
                   .node = node,
                   .local = steps->rank - layout->first[node],
                   .n_local = layout->first[node + 1] - layout->first[node],
                   .depth = depth(&steps->spec, layout),
                   .bridged = zero_hier_is_bridged(&steps->spec, layout),
                   .alone = steps->spec.algorithm == ZERO_ALGORITHM_SHM};
    switch (steps->spec.kind) {
    case ZERO_REDUCE_SCATTER: zero_hier_write_reduce_scatter(&w); break;
    case ZERO_ALL_GATHER: zero_hier_write_all_gather(&w); break;
    case ZERO_REDUCE: zero_hier_write_reduce(&w); break;
    case ZERO_BROADCAST: zero_hier_write_broadcast(&w); break;
    case ZERO_ALL_REDUCE: zero_hier_write_all_reduce(&w); break;
    }
}

#define TABLE(check_layout) \
    { \
        .check = check_layout, .chunk = chunk, .staging = staging, .write = write_steps, \
        .works_in_window = true, .adds_along_tree = true, .bounds_staging = true \
    }

const zero_algorithm_table zero_algorithm_hier = TABLE(check);
const zero_algorithm_table zero_algorithm_shm = TABLE(check_shm);
