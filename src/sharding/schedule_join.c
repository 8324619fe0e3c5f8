/* JOINs and COLLECTs as collectives of the TP group.
 *
 *     a sum       reduce-scatter of count / T floats, then all-gather of these pieces
 *     a gather    all-gather of count floats
 *     a COLLECT   all-gather of count floats; in place of 0: it only waits for all ranks
 *
 *                 joint              joined
 *     messages    own [count]        the same buffer; a gather: own [T][count]
 *     windows     TP_PART [count]    TP_NODE [count], once per node; a gather: [T][count]
 *
 * In a window, a rank adds its piece of all neighbours' `joint` and writes it where it
 * belongs in `joined`, so the all-gather copies nothing within a node.
 *
 * No rank overwrites what a neighbour still reads, although buffers of one JOIN may lie
 * where those of the last one lay:
 *
 *   - `joint` lies in this rank's part, which this rank alone writes. Neighbours read it in
 *     the collective that JOIN begins first, whose wait ends when all have (lists/shm.c,
 *     phase 3). The buffer lives until JOIN_WAIT, so what is written there next is written
 *     after that.
 *   - `joined` is written by collectives alone, and each writes only after all neighbours
 *     have begun the same collective (phase 1). A rank begins a JOIN after the part that
 *     joins, and at most one join is in flight: so the part that read the last JOIN's
 *     `joined` has ended. Within a sum, pieces are written by the reduce-scatter, and the
 *     all-gather adds other nodes'.
 *
 * With partition_activations what KEEP writes lies there, too (writer_kept.c):
 *
 *   - Pieces in TP_PART are like a `joint`: this rank alone writes there, and neighbours
 *     read
 *     them in COLLECT, whose wait ends when all have. The whole output that COLLECT writes
 *       to
 *     TP_NODE is like a `joined`: each rank has begun the COLLECT by then, so no rank still
 *     reads what lay there before. It lives until the BACKWARD that reads it has ended.
 *   - In place, KEEP writes its piece of the whole output in TP_NODE without a collective.
 *     Before: all parts of the FORWARD that KEEP follows name the whole, so from the first
 *       part
 *     on no other buffer lies there. A JOIN of that pass has ended before KEEP (without one
 *       the
 *     unit is refused). Each rank has begun that JOIN, so each has written the first part,
 *       and
 *     none still reads or writes what lay there before.
 *     After: COLLECT ends when all ranks have begun it, hence after their KEEPs. The next
 *       buffer
 *     that lies there is written only after all ranks have begun a later JOIN, whether it
 *       is
 *     that JOIN's result or another whole. They begin it after the BACKWARD that read this
 *       one.
 *
 * Programs follow one another in the same order on all ranks, so this holds from one
 * program to the next as well. Nothing else lies in the TP group's window. */
#include "base/fail.h"
#include "base/grow.h"
#include "sharding/schedule_exchange.h"

zero_algorithm zero_schedule_join_algorithm(const zero_schedule *s)
{
    zero_algorithm algorithm = s->input.collectives;
    if (!zero_algorithm_get(algorithm)->works_in_window) return algorithm;
    bool is_one_node = zero_schedule_tp_layout(s)->n_nodes == 1;
    return is_one_node ? ZERO_ALGORITHM_SHM : ZERO_ALGORITHM_HIER;
}

bool zero_schedule_join_shares(const zero_schedule *s)
{
    return zero_algorithm_needs_window(zero_schedule_join_algorithm(s),
                                       zero_schedule_tp_layout(s));
}

int zero_schedule_add_join(zero_schedule *s, zero_join_exchange form)
{
    for (int k = 0; k < s->n_joins; k++)
        if (s->joins[k].kind == form.kind && s->joins[k].count == form.count &&
            s->joins[k].collects == form.collects)
            return k;
    if (!zero_grow(s->joins, s->n_joins, &s->join_capacity)) {
        s->status =
            zero_fail(ZERO_ERR_NOMEM, "no memory for JOIN %d of a plan", s->n_joins);
        return -1;
    }
    s->joins[s->n_joins] = form;
    return s->n_joins++;
}

/* ---- collectives ---- */

zero_collective_spec zero_join_collective(const zero_schedule *s, int join, int k)
{
    const zero_join_exchange *x = &s->joins[join];
    bool sums = x->kind == ZERO_JOIN_SUM;
    /* A COLLECT in place moves nothing: ranks only wait until all pieces have been
     * written. */
    bool is_in_place = x->collects && x->in == x->out;
    int64_t count = is_in_place ? 0 : sums ? x->count / s->model->share.ranks : x->count;
    zero_collective_spec spec =
        zero_exchange_spec(s, sums && k == 0 ? ZERO_REDUCE_SCATTER : ZERO_ALL_GATHER,
                           zero_schedule_join_algorithm(s), ZERO_FP32, count, join);
    if (zero_schedule_join_shares(s)) {
        /* A sum's pieces, and those kept in place, are gathered where they lie: each a
         * piece's length from the next. */
        bool gathers_sum = sums && spec.kind == ZERO_ALL_GATHER;
        bool is_in_whole = gathers_sum || is_in_place;
        size_t piece = (size_t)(gathers_sum ? spec.count : x->count) * sizeof(float);
        spec.in_apart = is_in_whole ? piece : zero_schedule_apart(s, ZERO_SPACE_TP_PART);
        spec.one_out = spec.kind == ZERO_ALL_GATHER;
    }
    return spec;
}
