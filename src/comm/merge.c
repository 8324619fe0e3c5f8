#include "comm/merge.h"

#include "comm/local.h"
#include "comm/mpi_error.h"
#include "comm/wait.h"
#include "lists/small.h"

/* ---- one span ---- */

/* n of a span that stands for two that do not adjoin: one ends at block `first`, the next
 * one begins at block `count`. */
#define APART (-1)

/* Appends `upper` to *lower. */
static void append(zero_tree_span *lower, const zero_tree_span *upper)
{
    if (lower->n == APART) return;
    if (upper->n == APART)
        *lower = *upper;
    else if (!zero_tree_span_merge(lower, upper))
        *lower = (zero_tree_span){.blocks = lower->blocks,
                                  .first = lower->first + lower->count,
                                  .count = upper->first,
                                  .n = APART};
}

zero_status zero_merge_check(int n, const zero_tree_span *spans)
{
    for (int i = 0; i < n; i++)
        ZERO_INVALID_IF(spans[i].n == APART,
                        "span %d of %d: on one rank it ends before block %" PRId64
                        ", and on the next one begins at block %" PRId64
                        ", or its tree there is not of %" PRId64
                        " blocks: expected ranks to have adjoining parts of one tree",
                        i, n, spans[i].first, spans[i].count, spans[i].blocks);
    return ZERO_OK;
}

/* ---- all ranks ---- */

/* Both messages are on their way before this rank waits for either of them. */
static zero_status exchange(zero_comm *comm, const zero_operation *what,
                            const zero_small_round *round, int n, zero_tree_span *spans)
{
    zero_tree_span theirs[ZERO_SMALL_SPANS];
    MPI_Request arrives, leaves;
    int bytes = n * (int)sizeof *spans;
    if (round->receives)
        ZERO_TRY(zero_mpi_check(MPI_Irecv(theirs, bytes, MPI_BYTE, round->partner,
                                          ZERO_WAIT_TAG, comm->control, &arrives),
                                "MPI_Irecv of spans"));
    if (round->sends)
        ZERO_TRY(zero_mpi_check(MPI_Isend(spans, bytes, MPI_BYTE, round->partner,
                                          ZERO_WAIT_TAG, comm->control, &leaves),
                                "MPI_Isend of spans"));
    zero_small_add_round(&comm->traffic[ZERO_CONTROL], &comm->layout, comm->rank, round,
                         bytes);
    if (round->receives) ZERO_TRY(zero_wait_message(comm, what, &arrives));
    if (round->sends) ZERO_TRY(zero_wait_request(comm, ZERO_WATCH_WAITING, what, &leaves));
    if (round->receives) {
        /* Changes `theirs`, too. */
        bool is_above = round->partner > comm->rank && !round->is_result;
        for (int i = 0; i < n; i++) {
            if (is_above) {
                append(&spans[i], &theirs[i]);
                continue;
            }
            if (!round->is_result) append(&theirs[i], &spans[i]);
            spans[i] = theirs[i];
        }
    }
    return ZERO_OK;
}

/* Between threads: rank 0's spans become all ranks', and go to the others. */
static void merge_local(int size, void *const *things, const void *arg)
{
    int n = *(const int *)arg;
    zero_tree_span *all = things[0];
    for (int r = 1; r < size; r++)
        for (int i = 0; i < n; i++) append(&all[i], (zero_tree_span *)things[r] + i);
    for (int r = 1; r < size; r++) memcpy(things[r], all, (size_t)n * sizeof *all);
}

/* Merging is exactly associative, so only the order of ranks matters, and no rounding. */
zero_status zero_merge(zero_comm *comm, const zero_operation *what, int n,
                       zero_tree_span *spans)
{
    if (comm->local) { /* as many messages as between ranks in processes of their own */
        zero_small_add_merged(&comm->traffic[ZERO_CONTROL], &comm->layout, comm->rank, n,
                              sizeof *spans);
        return zero_local_meet(comm, merge_local, &n, spans);
    }
    int rounds = zero_small_rounds(comm->size);
    for (int at = 0; at < n; at += ZERO_SMALL_SPANS) {
        int len = n - at < ZERO_SMALL_SPANS ? n - at : ZERO_SMALL_SPANS;
        for (int k = 0; k < rounds; k++) {
            zero_small_round round = zero_small_round_of(comm->size, comm->rank, k);
            if (round.sends || round.receives)
                ZERO_TRY(exchange(comm, what, &round, len, spans + at));
        }
    }
    return ZERO_OK;
}
