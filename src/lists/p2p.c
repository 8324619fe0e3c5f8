/* The pairwise exchange.
 *
 * In round i = 1 .. size-1 rank r sends to r+i and receives from r-i (mod size), chunk
 * after chunk, so that at any moment each rank sends to one and receives from one. The
 * owner adds all terms of a chunk once all are here, so no partial sum ever travels.
 *
 *     reduce-scatter, 2 ranks, depth 2:      rank 0                 rank 1
 *     chunk 0                                receive <- 1, send     receive <- 0, send
 *     chunk 1                                receive <- 1, send     receive <- 0, send
 *                                            add chunk 0            add chunk 0
 *     chunk 2, in the staging of chunk 0     receive <- 1, send     ...
 *
 * Since steps run in order, a chunk of staging is reused only after its add. Every receive
 * stands one step before the send of its round, on all ranks at the same place in the list:
 * the rank that is furthest behind always finds its partners' steps posted, so ranks cannot
 * wait in a circle as long as two requests may be in flight.
 *
 * In a reduce all ranks but the root send to it, and it receives as in an exchange: size-1
 * streams at once. They send no further ahead than the root has staging for, and their
 * sends end when it receives (steps_run.c), so that a late root is not flooded.
 *
 * An all-reduce is a reduce-scatter of the pieces, each to its place, then an all-gather of
 * them. Its tail goes from each rank to each other one beside the reduce-scatter.
 *
 * A broadcast is a chain from the root upwards (mod size): each rank passes the data on,
 * chunk after chunk, so all links are busy at once and each carries the data once. To one
 * rank only, the root sends it and the others do nothing. */
#include "lists/algorithm.h"

/* Chunks in flight. Links with latency need many bytes; copies within a node are fastest
 * while received data stays in the cache until it is added (bench/results). */
#define MIN_CHUNKS    2 /* one arrives while the other is added */
#define ACROSS_CHUNKS 8
#define INSIDE_CHUNKS 4
#define INSIDE_STAGED ((size_t)128 << 10) /* bytes of a chunk that is staged and added */
#define INSIDE_DIRECT ((size_t)16 << 20)  /* bytes of one that arrives in its place */

static bool is_staged(const zero_collective_spec *spec, const zero_layout *layout)
{
    return zero_collective_sums(spec->kind) && layout->size > 1;
}

/* The chunks of this rank's piece in flight at once. */
static int64_t depth(const zero_layout *layout)
{
    int64_t chunks = layout->n_nodes > 1 ? ACROSS_CHUNKS : INSIDE_CHUNKS;
    return zero_max(chunks / zero_max(layout->size - 1, 1), MIN_CHUNKS);
}

static int64_t chunk(const zero_collective_spec *spec, const zero_layout *layout)
{
    const int64_t least = 4096; /* elements */
    bool staged = is_staged(spec, layout), mirrored = spec->on_device && !spec->direct;
    size_t bytes = staged ? INSIDE_STAGED : INSIDE_DIRECT;
    if (layout->n_nodes > 1 || (staged ? spec->direct : mirrored)) bytes = ZERO_STEP_CHUNK;
    int64_t most = (int64_t)(bytes / zero_element_size(spec->type));
    if (spec->max_chunk > 0) most = spec->max_chunk;
    most = zero_step_message(spec, most, zero_element_size(spec->type));
    if (staged) { /* chunks shrink with the number of ranks that share the staging */
        int64_t room = (int64_t)(ZERO_COLLECTIVE_STAGING / zero_element_size(spec->type));
        most = zero_min(most, zero_step_share(room, depth(layout) * (layout->size - 1)));
    }
    /* A chain fills only after size-1 chunks, so short data goes in small ones. */
    if (spec->kind == ZERO_BROADCAST && spec->max_chunk == 0)
        most =
            zero_min(most, zero_max(zero_step_share(spec->count, 4 * layout->size), least));
    return zero_step_chunk(spec->count, most);
}

/* Bytes of staging for the chunks in flight; the terms of a tail come after them. */
static size_t staged_pieces(const zero_collective_spec *spec, const zero_layout *layout)
{
    int64_t len = chunk(spec, layout);
    int64_t chunks = zero_min(depth(layout), zero_divide_up(spec->count, len));
    return (size_t)(chunks * (layout->size - 1) * len) * zero_element_size(spec->type);
}

static size_t staging(const zero_collective_spec *spec, const zero_layout *layout)
{
    if (!is_staged(spec, layout)) return 0;
    return staged_pieces(spec, layout) +
           (size_t)((layout->size - 1) * spec->tail) * zero_element_size(spec->type);
}

/* ---- reduce-scatter, reduce and all-reduce ---- */

/* Bytes of staging before the term that round `round` brings, that of rank - round. */
static int64_t staged_in_round(const zero_steps *s, int round)
{
    return (round - 1) * s->chunk * (int64_t)zero_element_size(s->spec.type);
}

static int64_t staged_at(const zero_steps *s, int64_t k)
{
    return k % depth(s->layout) * staged_in_round(s, s->layout->size);
}

/* The terms of all ranks; those received lie `bytes` apart, by round. */
static int add_terms(zero_steps *s, int64_t bytes)
{
    int size = s->layout->size, sum = zero_steps_add_sum(s);
    for (int r = 0; r < size; r++) {
        int64_t staged = r == s->rank ? -1 : ((s->rank - r + size) % size - 1) * bytes;
        zero_steps_add_term(s, sum, (zero_term){r, 1, s->spec.type, staged});
    }
    return sum;
}

static void write_owner(zero_steps *s)
{
    int64_t chunks = zero_steps_chunks(s), late = depth(s->layout) - 1;
    int64_t exchanged[ACROSS_CHUNKS]; /* steps until chunk k % depth was in flight */
    int size = s->layout->size, own = zero_steps_piece(s, s->rank);
    int sum = add_terms(s, staged_in_round(s, 2)), to = zero_steps_result(s, s->rank);
    for (int64_t k = 0; k < chunks + late; k++) {
        if (k < chunks) {
            for (int round = 1; round < size; round++) {
                int from = (s->rank - round + size) % size;
                int next = (s->rank + round) % size;
                int64_t at = staged_at(s, k) + staged_in_round(s, round);
                zero_steps_receive(s, k, from, zero_steps_staged(s, at));
                if (s->spec.kind == ZERO_REDUCE) continue; /* the root sends nothing */
                zero_steps_send(s, k, next, zero_steps_in(s, s->rank, next, k));
            }
            exchanged[k % (late + 1)] = s->n;
        }
        if (k < late) continue;
        int64_t done = k - late;
        zero_collective_step *add =
            zero_steps_put(s, ZERO_STEP_ADD, done, zero_steps_in(s, s->rank, own, done),
                           zero_steps_out(s, s->rank, to, done));
        add->type = s->spec.result;
        add->sum = sum;
        add->staged = staged_at(s, done);
        add->received = exchanged[done % (late + 1)];
    }
}

static void write_reduce(zero_steps *s)
{
    if (s->rank == s->spec.root)
        write_owner(s);
    else {
        int64_t most = depth(s->layout), sent[ACROSS_CHUNKS] = {0};
        for (int64_t k = 0; k < zero_steps_chunks(s); k++) {
            zero_steps_send(s, k, s->spec.root, zero_steps_in(s, s->rank, 0, k));
            zero_steps_last(s)->sent = sent[k % most];
            sent[k % most] = s->n;
        }
    }
}

static void write_all_reduce(zero_steps *s)
{
    int64_t at = (int64_t)staged_pieces(&s->spec, s->layout);
    int64_t bytes = s->spec.tail * (int64_t)zero_element_size(s->spec.type);
    /* The tail goes to and from all ranks. */
    int size = s->layout->size;
    for (int round = 1; s->spec.tail > 0 && round < size; round++) {
        zero_steps_receive(s, 0, (s->rank - round + size) % size,
                           zero_steps_staged(s, at + (round - 1) * bytes));
        zero_steps_last(s)->len = s->spec.tail;
        zero_steps_send(s, 0, (s->rank + round) % size, zero_steps_in(s, s->rank, size, 0));
        zero_steps_last(s)->len = s->spec.tail;
    }
    const int64_t exchanged = s->n;
    write_owner(s);
    /* Each rank sends its sums, and receives those of the others in as few messages as
     * can be, where `out` may be `in`: once this rank's terms have left. */
    int64_t most = (int64_t)(INSIDE_DIRECT / zero_element_size(s->spec.type));
    int64_t len = s->layout->n_nodes > 1 || s->spec.max_chunk > 0 ? s->chunk : most;
    len = zero_step_message(&s->spec, len, zero_element_size(s->spec.type));
    int64_t sent = s->n;
    for (int64_t begin = 0; begin < s->spec.count; begin += len)
        for (int round = 1; round < size; round++) {
            int from = (s->rank - round + size) % size, to = (s->rank + round) % size;
            zero_spot theirs = zero_steps_out(s, s->rank, from, 0);
            zero_spot own = zero_steps_out(s, s->rank, s->rank, 0);
            theirs.at += begin;
            own.at += begin;
            zero_steps_receive(s, 0, from, theirs);
            zero_steps_last(s)->len = zero_min(s->spec.count - begin, len);
            zero_steps_last(s)->sent = sent;
            zero_steps_send(s, 0, to, own);
            zero_steps_last(s)->len = zero_min(s->spec.count - begin, len);
        }
    if (s->spec.tail == 0) return;
    const int sum = add_terms(s, bytes);
    zero_collective_step *add =
        zero_steps_put(s, ZERO_STEP_ADD, 0, zero_steps_in(s, s->rank, size, 0),
                       zero_steps_out(s, s->rank, size, 0));
    add->len = s->spec.tail;
    add->sum = sum;
    add->staged = at;
    add->received = add->sent = exchanged;
}

/* ---- all-gather and broadcast ---- */

static void write_all_gather(zero_steps *s)
{
    int size = s->layout->size;
    for (int64_t k = 0; k < zero_steps_chunks(s); k++) {
        for (int round = 1; round < size; round++) {
            int from = (s->rank - round + size) % size, to = (s->rank + round) % size;
            zero_steps_receive(s, k, from, zero_steps_out(s, s->rank, from, k));
            zero_steps_send(s, k, to, zero_steps_in(s, s->rank, 0, k));
        }
        zero_steps_copy(s, k, zero_steps_in(s, s->rank, 0, k),
                        zero_steps_out(s, s->rank, s->rank, k));
    }
}

static void write_broadcast(zero_steps *s)
{
    int size = s->layout->size, next = (s->rank + 1) % size, only = s->spec.only - 1;
    if (only >= 0) {
        for (int64_t k = 0; k < zero_steps_chunks(s); k++)
            if (s->rank == s->spec.root)
                zero_steps_send(s, k, only, zero_steps_in(s, s->rank, 0, k));
            else if (s->rank == only)
                zero_steps_receive(s, k, s->spec.root, zero_steps_out(s, s->rank, 0, k));
    } else if (s->rank == s->spec.root)
        for (int64_t k = 0; k < zero_steps_chunks(s); k++) {
            if (s->layout->size > 1)
                zero_steps_send(s, k, next, zero_steps_in(s, s->rank, 0, k));
            zero_steps_copy(s, k, zero_steps_in(s, s->rank, 0, k),
                            zero_steps_out(s, s->rank, 0, k));
        }
    else {
        int before = (s->rank - 1 + size) % size;
        int64_t chunks = zero_steps_chunks(s), late = depth(s->layout) - 1;
        int64_t posted[ACROSS_CHUNKS];
        for (int64_t k = 0; k < chunks + late; k++) {
            if (k < chunks) {
                zero_steps_receive(s, k, before, zero_steps_out(s, s->rank, 0, k));
                posted[k % (late + 1)] = s->n;
            }
            if (k < late || next == s->spec.root) continue;
            zero_steps_send(s, k - late, next, zero_steps_out(s, s->rank, 0, k - late));
            zero_steps_last(s)->received = posted[(k - late) % (late + 1)];
        }
    }
}

static void write_steps(zero_steps *steps)
{
    switch (steps->spec.kind) {
    case ZERO_REDUCE_SCATTER: write_owner(steps); break;
    case ZERO_ALL_GATHER: write_all_gather(steps); break;
    case ZERO_REDUCE: write_reduce(steps); break;
    case ZERO_BROADCAST: write_broadcast(steps); break;
    case ZERO_ALL_REDUCE: write_all_reduce(steps); break;
    }
}

const zero_algorithm_table zero_algorithm_p2p = {
    .chunk = chunk,
    .staging = staging,
    .write = write_steps,
    .adds_along_tree = true,
    .bounds_staging = true,
    .stages_on_root_only = true,
};
