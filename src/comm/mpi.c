/* MPI's own collectives, chunk by chunk: the baseline. Their sums have their own order, so
 * their own bits, and 16-bit values are rounded at each addition.
 *
 * MPI wants pieces side by side and no buffer twice. Where chunks do not span the whole
 * pieces they are packed in staging, where a sum arrives as well.
 *
 *     staging    packed pieces [size][chunk] | the sum of the own piece [chunk] */
#include "comm/step.h"

#define MAX_CHUNK ((int64_t)1 << 28) /* elements: MPI counts are ints, and count bytes */

static int64_t chunk(const zero_collective_spec *spec, const zero_layout *layout)
{
    (void)layout;
    int64_t most = spec->max_chunk > 0 ? spec->max_chunk : MAX_CHUNK;
    return spec->count > 0 && spec->count < most ? spec->count : most;
}

static bool is_packed(const zero_collective_spec *spec, const zero_layout *layout)
{
    return spec->kind != ZERO_BROADCAST && layout->size > 1 &&
           chunk(spec, layout) != spec->stride;
}

/* Bytes of the packed pieces: where the sum begins. */
static int64_t packed_bytes(const zero_collective_spec *spec, const zero_layout *layout)
{
    if (!is_packed(spec, layout)) return 0;
    return layout->size * chunk(spec, layout) * (int64_t)zero_type_size(spec->type);
}

static size_t staging(const zero_collective_spec *spec, const zero_layout *layout)
{
    if (spec->count == 0) return 0;
    int64_t sum = spec->kind == ZERO_REDUCE_SCATTER ? chunk(spec, layout) : 0;
    return (size_t)(packed_bytes(spec, layout) + sum * (int64_t)zero_type_size(spec->type));
}

static zero_spot packed(const zero_steps *s, int piece, int64_t k)
{
    int64_t len = zero_steps_chunk_len(s, k) * (int64_t)zero_type_size(s->spec.type);
    return (zero_spot){ZERO_STAGING, s->rank, piece * len};
}

static void native(zero_steps *s, int64_t k, zero_spot from, zero_spot to)
{
    zero_steps_add(s, (zero_step){.kind = ZERO_STEP_NATIVE,
                                  .type = s->spec.type,
                                  .len = zero_steps_chunk_len(s, k),
                                  .from = from,
                                  .to = to});
}

static void write_reduce_scatter(zero_steps *s, int64_t k)
{
    bool packs = is_packed(&s->spec, s->layout);
    for (int r = 0; packs && r < s->layout->size; r++)
        zero_steps_copy(s, k, zero_steps_in(s, s->rank, r, k), packed(s, r, k));
    int64_t at = packed_bytes(&s->spec, s->layout);
    native(s, k, packs ? packed(s, 0, k) : zero_steps_in(s, s->rank, 0, k),
           (zero_spot){ZERO_STAGING, s->rank, at});
    zero_steps_add(s, (zero_step){.kind = ZERO_STEP_ADD,
                                  .type = s->spec.result,
                                  .len = zero_steps_chunk_len(s, k),
                                  .to = zero_steps_out(s, s->rank, 0, k),
                                  .staged = at,
                                  .received = s->n});
}

static void write_all_gather(zero_steps *s, int64_t k)
{
    bool packs = is_packed(&s->spec, s->layout);
    native(s, k, zero_steps_in(s, s->rank, 0, k),
           packs ? packed(s, 0, k) : zero_steps_out(s, s->rank, 0, k));
    int64_t received = s->n;
    for (int r = 0; packs && r < s->layout->size; r++) {
        zero_steps_copy(s, k, packed(s, r, k), zero_steps_out(s, s->rank, r, k));
        if (!s->failed) s->list[s->n - 1].received = received;
    }
}

static void write_broadcast(zero_steps *s, int64_t k)
{
    if (s->rank == s->spec.root)
        zero_steps_copy(s, k, zero_steps_in(s, s->rank, 0, k),
                        zero_steps_out(s, s->rank, 0, k));
    native(s, k, zero_steps_out(s, s->rank, 0, k), zero_steps_out(s, s->rank, 0, k));
}

static void write(zero_steps *steps)
{
    if (steps->spec.kind == ZERO_REDUCE_SCATTER) {
        int sum = zero_steps_add_sum(steps); /* MPI has added; one term is left to place */
        zero_steps_add_term(steps, sum,
                            (zero_term){0, steps->layout->size, steps->spec.type, 0});
    }
    for (int64_t k = 0; k < zero_steps_chunks(steps); k++) switch (steps->spec.kind) {
        case ZERO_REDUCE_SCATTER: write_reduce_scatter(steps, k); break;
        case ZERO_ALL_GATHER: write_all_gather(steps, k); break;
        default: write_broadcast(steps, k); break;
        }
}

const zero_algorithm_table zero_algorithm_mpi = {"mpi", NULL, chunk, staging, write};
