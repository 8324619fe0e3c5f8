#include "lists/peers.h"

#include "lists/algorithm.h"

static int64_t size_of(const zero_steps *steps, const zero_collective_step *step)
{
    return step->len * (int64_t)zero_element_size(steps->spec.type);
}

static void count_read(const zero_steps *steps, const zero_collective_step *step,
                       zero_peer_bytes *bytes)
{
    if (step->from.place != ZERO_STAGING && step->from.rank != steps->rank)
        bytes->read[step->from.rank] += size_of(steps, step);
}

void zero_steps_count_peers(const zero_steps *steps, const zero_collective_step *step,
                            zero_peer_bytes *bytes)
{
    int64_t n = step->len * (int64_t)zero_element_size(step->type);
    if (steps->layout->size > ZERO_MOST_PEERS) return;
    switch (step->kind) {
    case ZERO_STEP_SEND:
        bytes->sent[step->peer] += n;
        count_read(steps, step, bytes);
        break;
    case ZERO_STEP_ADD: /* the terms that lie in neighbours' memory */
        for (int64_t t = 0; t < steps->sums[step->sum].n; t++) {
            const zero_term *term = &steps->sums[step->sum].terms[t];
            if (term->staged < 0 && term->first != steps->rank)
                bytes->read[term->first] += size_of(steps, step);
        }
        break;
    case ZERO_STEP_COPY: count_read(steps, step, bytes); break;
    case ZERO_STEP_MPI: {
        /* Counts as if MPI sent directly to each rank. */
        const zero_collective_spec *spec = &steps->spec;
        bool is_root = steps->rank == spec->root;
        for (int peer = 0; peer < steps->layout->size; peer++) {
            bool sends = peer != steps->rank;
            if (spec->kind == ZERO_REDUCE) sends = !is_root && peer == spec->root;
            if (spec->kind == ZERO_BROADCAST) sends = sends && is_root;
            if (sends) bytes->sent[peer] += n;
        }
    } break;
    case ZERO_STEP_RECEIVE: /* its sender counts it */
    case ZERO_STEP_AWAIT:   /* its readers count it */
    case ZERO_STEP_SIGNAL:
    case ZERO_STEP_FETCH:
    case ZERO_STEP_STORE:
    case ZERO_STEP_MARK: break;
    }
}

/* All chunks take the same steps, whose bytes are proportional to the chunk's length. So
 * the steps of one chunk of one element tell all, as in zero_collective_traffic(). */
zero_status zero_collective_peers(const zero_collective_spec *spec,
                                  const zero_layout *layout, int rank, int64_t times,
                                  zero_peer_bytes *bytes)
{
    zero_steps steps;
    zero_peer_bytes unit = {0};
    zero_collective_spec one = *spec;
    ZERO_TRY(zero_collective_check(spec, layout));
    if (spec->count == 0 || layout->size > ZERO_MOST_PEERS) return ZERO_OK;
    one.count = one.max_chunk = 1;
    ZERO_TRY(zero_steps_init(&steps, &one, layout, rank));
    for (int64_t i = 0; i < steps.n; i++)
        zero_steps_count_peers(&steps, &steps.list[i], &unit);
    zero_steps_destroy(&steps);
    for (int peer = 0; peer < layout->size; peer++) {
        bytes->sent[peer] += times * spec->count * unit.sent[peer];
        bytes->read[peer] += times * spec->count * unit.read[peer];
    }
    return ZERO_OK;
}

void zero_peers_add(int n, int64_t *matrix, int rank, const zero_peer_bytes *bytes)
{
    for (int peer = 0; peer < n; peer++) {
        matrix[(int64_t)rank * n + peer] += bytes->sent[peer];
        matrix[(int64_t)peer * n + rank] += bytes->read[peer];
    }
}
