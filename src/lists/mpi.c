/* MPI's own collectives, chunk by chunk: the baseline. MPI adds in an order of its own, so
 * sums have other bits, and sums in 16 bits are rounded at each addition.
 *
 * MPI needs adjoining pieces and distinct buffers, and rounds to the type in which it adds.
 * Chunks that do not span the whole pieces are therefore packed in staging, and so are
 * 16-bit terms of an fp32 sum, which travel as fp32. A sum arrives in staging as well.
 *
 *     staging    packed pieces [pieces][chunk] | the sum of this rank's piece [chunk] */
#include "lists/algorithm.h"

#define MAX_CHUNK ((int64_t)1 << 28) /* elements: MPI counts are ints, and count bytes */

static int64_t chunk(const zero_collective_spec *spec,
                     ZERO_UNUSED const zero_layout *layout)
{
    int64_t most = spec->max_chunk > 0 ? spec->max_chunk : MAX_CHUNK;
    return spec->count > 0 && spec->count < most ? spec->count : most;
}

static bool is_widened(const zero_collective_spec *spec)
{
    return spec->type != spec->result;
}

static bool is_packed(const zero_collective_spec *spec, const zero_layout *layout)
{
    bool has_gaps = !zero_collective_has_root(spec->kind) && layout->size > 1 &&
                    chunk(spec, layout) != spec->stride;
    return has_gaps || is_widened(spec);
}

/* The pieces that adjoin on one rank, before a sum or after a gather. */
static int pieces(const zero_collective_spec *spec, const zero_layout *layout)
{
    return zero_collective_has_root(spec->kind) ? 1 : layout->size;
}

/* Bytes of the packed pieces; the sum begins after them. */
static int64_t packed_bytes(const zero_collective_spec *spec, const zero_layout *layout)
{
    if (!is_packed(spec, layout)) return 0;
    return pieces(spec, layout) * chunk(spec, layout) *
           (int64_t)zero_element_size(spec->result);
}

static size_t staging(const zero_collective_spec *spec, const zero_layout *layout)
{
    if (spec->count == 0 || spec->kind == ZERO_ALL_REDUCE) return 0;
    int64_t sum = zero_collective_sums(spec->kind) ? chunk(spec, layout) : 0;
    return (size_t)(packed_bytes(spec, layout) +
                    sum * (int64_t)zero_element_size(spec->result));
}

static zero_spot packed(const zero_steps *s, int piece, int64_t k)
{
    int64_t len = zero_steps_chunk_len(s, k) * (int64_t)zero_element_size(s->spec.result);
    return zero_steps_staged(s, piece * len);
}

static void call_mpi(zero_steps *s, int64_t k, zero_spot from, zero_spot to)
{
    zero_steps_put(s, ZERO_STEP_MPI, k, from, to)->type = s->spec.result;
}

/* The sum that MPI delivers, and this rank's values to be widened: each a sum of one
 * term. */
enum { ARRIVED, OWN };

static void write_sum(zero_steps *s, int64_t k)
{
    bool packs = is_packed(&s->spec, s->layout);
    for (int r = 0; packs && r < pieces(&s->spec, s->layout); r++) {
        int piece = r;
        zero_spot from = zero_steps_in(s, s->rank, piece, k), to = packed(s, piece, k);
        if (is_widened(&s->spec)) {
            int64_t posted = s->n;
            zero_collective_step *add = zero_steps_put(s, ZERO_STEP_ADD, k, from, to);
            add->type = s->spec.result;
            add->sum = OWN;
            add->received = posted; /* staging is free again */
        } else {
            zero_steps_copy(s, k, from, to);
        }
    }
    int64_t at = packed_bytes(&s->spec, s->layout);
    call_mpi(s, k, packs ? packed(s, 0, k) : zero_steps_in(s, s->rank, 0, k),
             zero_steps_staged(s, at));
    if (s->spec.kind != ZERO_REDUCE || s->rank == s->spec.root) {
        int64_t posted = s->n;
        zero_collective_step *add = zero_steps_put(s, ZERO_STEP_ADD, k, (zero_spot){0},
                                                   zero_steps_out(s, s->rank, 0, k));
        add->type = s->spec.result;
        add->sum = ARRIVED;
        add->staged = at;
        add->received = posted;
    }
}

static void write_all_gather(zero_steps *s, int64_t k)
{
    bool packs = is_packed(&s->spec, s->layout);
    call_mpi(s, k, zero_steps_in(s, s->rank, 0, k),
             packs ? packed(s, 0, k) : zero_steps_out(s, s->rank, 0, k));
    int64_t received = s->n;
    for (int r = 0; packs && r < s->layout->size; r++) {
        zero_steps_copy(s, k, packed(s, r, k), zero_steps_out(s, s->rank, r, k));
        zero_steps_last(s)->received = received;
    }
}

static void write_broadcast(zero_steps *s, int64_t k)
{
    if (s->rank == s->spec.root)
        zero_steps_copy(s, k, zero_steps_in(s, s->rank, 0, k),
                        zero_steps_out(s, s->rank, 0, k));
    call_mpi(s, k, zero_steps_out(s, s->rank, 0, k), zero_steps_out(s, s->rank, 0, k));
}

static void write_steps(zero_steps *steps)
{
    if (steps->spec.kind == ZERO_ALL_REDUCE) {
        /* The array as one, from `in` to `out`; a step's length is that of the whole. */
        int64_t all = steps->layout->size * steps->spec.stride + steps->spec.tail;
        int64_t most = steps->spec.max_chunk > 0 ? steps->spec.max_chunk : MAX_CHUNK;
        for (int64_t at = 0; at < all; at += most) {
            zero_spot in = {ZERO_IN, steps->rank, at}, out = {ZERO_OUT, steps->rank, at};
            call_mpi(steps, 0, in, out);
            zero_steps_last(steps)->len = zero_min(all - at, most);
        }
        return;
    }
    if (zero_collective_sums(steps->spec.kind)) {
        int arrived = zero_steps_add_sum(steps), own = zero_steps_add_sum(steps);
        zero_steps_add_term(steps, arrived,
                            (zero_term){0, steps->layout->size, steps->spec.result, 0});
        zero_steps_add_term(steps, own, (zero_term){steps->rank, 1, steps->spec.type, -1});
    }
    for (int64_t k = 0; k < zero_steps_chunks(steps); k++) switch (steps->spec.kind) {
        case ZERO_REDUCE_SCATTER:
        case ZERO_REDUCE: write_sum(steps, k); break;
        case ZERO_ALL_GATHER: write_all_gather(steps, k); break;
        case ZERO_BROADCAST: write_broadcast(steps, k); break;
        case ZERO_ALL_REDUCE: break;
        }
}

static zero_status check(const zero_collective_spec *spec,
                         ZERO_UNUSED const zero_layout *layout)
{
    bool has_gaps = spec->kind == ZERO_ALL_REDUCE && spec->count != spec->stride;
    ZERO_FAIL_IF(
        !zero_collective_is_plain(spec) || has_gaps, ZERO_ERR_UNSUPPORTED,
        "mpi does sums of fp32, bf16 and fp16, and all-reduces of whole pieces: use p2p");
    return ZERO_OK;
}

const zero_algorithm_table zero_algorithm_mpi = {
    .check = check,
    .chunk = chunk,
    .staging = staging,
    .write = write_steps,
    .posts_mpi_collectives = true,
};
