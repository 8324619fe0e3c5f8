/* Through the node's window: a rank reads data where its neighbour computed it.
 *
 *     phase 1   my `in` is ready, and I read nothing of `out` any more
 *     phase 2   the data that I write for neighbours is there (only one_out and broadcast)
 *     phase 3   I have read all I needed: neighbours may have their buffers back
 *
 * Sums on a device have one phase 1 for each chunk, since `in` arrives chunk by chunk: the
 * others follow, each as much later.
 *
 * A reduce-scatter is one pass: the owner adds its piece of all neighbours' `in`. In a
 * reduce the root does so, and the others wait only for the root. An all-gather copies the
 * neighbours' pieces, or nothing if the pieces adjoin already: then `out` is the window
 * itself and the gathered array a pointer. */
#include "base/fail.h"
#include "lists/algorithm.h"

enum { READY = 1, WRITTEN = 2, DONE = 3 };

/* Chunks keep polls short: one chunk of arithmetic at a time. What a device adds is only
 * queued. */
static int64_t chunk(const zero_collective_spec *spec, const zero_layout *layout)
{
    (void)layout;
    size_t bytes = spec->direct ? ZERO_DIRECT_CHUNK : ZERO_STEP_CHUNK;
    int64_t most = (int64_t)(bytes / zero_type_size(spec->type));
    if (spec->max_chunk > 0) most = spec->max_chunk;
    return zero_step_chunk(spec->count, most);
}

static size_t staging(const zero_collective_spec *spec, const zero_layout *layout)
{
    (void)spec;
    (void)layout;
    return 0;
}

static zero_status check(const zero_collective_spec *spec, const zero_layout *layout)
{
    if (layout->n_nodes > 1)
        return zero_fail(ZERO_ERR_UNSUPPORTED,
                         "shm works within one node, and %d ranks are on %d nodes: use "
                         "hier, p2p or auto",
                         layout->size, layout->n_nodes);
    bool reads_out = spec->kind == ZERO_BROADCAST;
    size_t apart = reads_out ? spec->out_apart : spec->in_apart;
    bool reads = layout->size > 1 && spec->count > 0;
    if (reads && apart == 0 && !(spec->one_out && reads_out))
        return zero_fail(ZERO_ERR_INVALID,
                         "a %s through shared memory needs its '%s' in a window",
                         zero_collective_kind_name(spec->kind), reads_out ? "out" : "in");
    return ZERO_OK;
}

/* The phases before WRITTEN and DONE that only sums on a device have. */
static int64_t done_phase(const zero_steps *s)
{
    bool sums = zero_collective_sums(s->spec.kind);
    return DONE + (sums ? zero_steps_portions(s) - 1 : 0);
}

static void finish(zero_steps *s, int64_t n_read)
{
    zero_steps_signal(s, done_phase(s));
    zero_steps_await(s, ZERO_ALL_NEIGHBOURS, done_phase(s), n_read);
}

/* Portion k of `in` is ready. */
static void signal_portion(zero_steps *s, int64_t k)
{
    int64_t portions = zero_steps_portions(s);
    zero_steps_signal_in(s, READY + k, k, portions > 1 ? 1 : zero_steps_chunks(s));
}

/* The root of a reduce tells nobody that its `in` is ready: it alone reads. */
static void add_neighbours(zero_steps *s)
{
    int64_t portions = zero_steps_portions(s), chunks = zero_steps_chunks(s);
    int sum = zero_steps_add_sum(s);
    for (int r = 0; r < s->layout->size; r++)
        zero_steps_add_term(s, sum, (zero_term){r, 1, s->spec.type, -1});
    for (int64_t k = 0; k < zero_max(portions, chunks); k++) {
        if (k < portions && s->spec.kind != ZERO_REDUCE) signal_portion(s, k);
        if (k < portions) zero_steps_await(s, ZERO_ALL_NEIGHBOURS, READY + k, 0);
        if (k < chunks) {
            int own = zero_steps_piece(s, s->rank);
            zero_steps_add(s,
                           (zero_collective_step){.kind = ZERO_STEP_ADD,
                                                  .type = s->spec.result,
                                                  .sum = sum,
                                                  .len = zero_steps_chunk_len(s, k),
                                                  .from = zero_steps_in(s, s->rank, own, k),
                                                  .to = zero_steps_out(s, s->rank, 0, k)});
        }
    }
}

static void write_reduce_scatter(zero_steps *s)
{
    add_neighbours(s);
    finish(s, (s->layout->size - 1) * s->spec.count);
}

static void write_reduce(zero_steps *s)
{
    if (s->rank == s->spec.root) {
        add_neighbours(s);
        zero_steps_signal(s, done_phase(s));
    } else {
        for (int64_t k = 0; k < zero_steps_portions(s); k++) signal_portion(s, k);
        zero_steps_await(s, s->spec.root, done_phase(s), s->spec.count);
    }
}

static void write_all_gather(zero_steps *s)
{
    int size = s->layout->size;
    zero_steps_signal_in(s, READY, 0, zero_steps_chunks(s));
    if (s->spec.one_out) zero_steps_await(s, ZERO_ALL_NEIGHBOURS, READY, 0);
    for (int64_t k = 0; k < zero_steps_chunks(s); k++)
        zero_steps_copy(s, k, zero_steps_in(s, s->rank, 0, k),
                        zero_steps_out(s, s->rank, s->rank, k));
    if (s->spec.one_out) zero_steps_signal(s, WRITTEN);
    for (int i = 1; i < size; i++) {
        /* Reads a piece where the neighbour wrote it; with one_out that is its place
         * already. */
        int peer = (s->rank + i) % size;
        bool one_out = s->spec.one_out;
        zero_steps_await(s, peer, one_out ? WRITTEN : READY, 0);
        for (int64_t k = 0; k < zero_steps_chunks(s); k++)
            zero_steps_copy(s, k,
                            one_out ? zero_steps_out(s, peer, peer, k)
                                    : zero_steps_in(s, peer, 0, k),
                            zero_steps_out(s, s->rank, peer, k));
    }
    finish(s, (size - 1) * s->spec.count);
}

static void write_broadcast(zero_steps *s)
{
    int root = s->spec.root;
    zero_steps_signal(s, READY);
    if (s->rank == root) {
        if (s->spec.one_out) zero_steps_await(s, ZERO_ALL_NEIGHBOURS, READY, 0);
        for (int64_t k = 0; k < zero_steps_chunks(s); k++)
            zero_steps_copy(s, k, zero_steps_in(s, root, 0, k),
                            zero_steps_out(s, root, 0, k));
        zero_steps_signal(s, WRITTEN);
    } else {
        zero_steps_await(s, root, WRITTEN, 0);
        for (int64_t k = 0; k < zero_steps_chunks(s); k++)
            zero_steps_copy(s, k, zero_steps_out(s, root, 0, k),
                            zero_steps_out(s, s->rank, 0, k));
    }
    finish(s, s->rank == root ? (s->layout->size - 1) * s->spec.count : 0);
}

static void write_steps(zero_steps *steps)
{
    switch (steps->spec.kind) {
    case ZERO_REDUCE_SCATTER: write_reduce_scatter(steps); break;
    case ZERO_ALL_GATHER: write_all_gather(steps); break;
    case ZERO_REDUCE: write_reduce(steps); break;
    case ZERO_BROADCAST: write_broadcast(steps); break;
    }
}

const zero_algorithm_table zero_algorithm_shm = {
    .check = check,
    .chunk = chunk,
    .staging = staging,
    .write = write_steps,
    .works_in_window = true,
    .adds_along_tree = true,
    .bounds_staging = true,
};
