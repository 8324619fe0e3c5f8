/* Each small message enters, which numbers and compares it, posts a request, and waits for
 * it in the loop that all waits share. */
#include "comm/control.h"

#include "base/clock.h"
#include "base/waiting.h"
#include "comm/check.h"
#include "comm/family.h"
#include "comm/local.h"
#include "comm/merge.h"
#include "comm/mpi_error.h"
#include "comm/thread.h"
#include "comm/wait.h"
#include "lists/small.h"

#define MAX_MESSAGE ((size_t)1 << 30) /* bytes; MPI counts are ints */

/* Counts `bytes` to and from each of the other ranks. */
static void count_exchange(zero_comm *comm, int64_t bytes)
{
    zero_small_add_exchange(&comm->traffic[ZERO_CONTROL], &comm->layout, comm->rank, bytes);
}

/* Every rank enters the same operations in the same order. root: -1 without one. */
static zero_status enter(zero_comm *comm, zero_operation_kind kind, size_t bytes, int root,
                         zero_operation *what)
{
    *what = zero_operation_control(kind, comm->control_sequence, (int64_t)bytes, root);
    what->member = comm->member;
    ZERO_TRY(zero_compare(comm, what));
    zero_thread_lock(comm); /* the thread tells it to others */
    comm->control_sequence++;
    zero_thread_unlock(comm);
    return ZERO_OK;
}

static void count_time(zero_comm *comm, double start)
{
    zero_duration *duration = &comm->duration[ZERO_CONTROL];
    double passed = zero_clock_seconds() - start;
    duration->total += passed;
    duration->exposed += passed;
}

static zero_status finish(zero_comm *comm, const zero_operation *what, MPI_Request *request)
{
    double start = zero_clock_seconds();
    ZERO_TRY(zero_wait_request(comm, ZERO_WATCH_WAITING, what, request));
    count_time(comm, start);
    return ZERO_OK;
}

/* ---- all-reduces ---- */

/* Between threads of one process. Integers: their order does not matter, and sums of hashes
 * wrap around. */
typedef struct {
    MPI_Op op;
    size_t size; /* of an integer */
    int64_t n;
} local_reduction;

static int64_t combined(MPI_Op op, int64_t a, int64_t b)
{
    if (op == MPI_MAX) return zero_max(a, b);
    if (op == MPI_MIN) return zero_min(a, b);
    return op == MPI_BOR ? a | b : (int64_t)((uint64_t)a + (uint64_t)b);
}

static void reduce_local(int size, void *const *things, const void *arg)
{
    const local_reduction *l = arg;
    bool is_int = l->size == sizeof(int);
    for (int64_t i = 0; i < l->n; i++) {
        int64_t sum = is_int ? ((int *)things[0])[i] : ((int64_t *)things[0])[i];
        for (int r = 1; r < size; r++)
            sum = combined(l->op, sum,
                           is_int ? ((int *)things[r])[i] : ((int64_t *)things[r])[i]);
        for (int r = 0; r < size; r++)
            if (is_int)
                ((int *)things[r])[i] = (int)sum;
            else
                ((int64_t *)things[r])[i] = sum;
    }
}

/* Reduces integers data[n] of `size` bytes, an int's or an int64_t's, over the ranks, in
 * place. Integers only: a float reduction of flags would lose NaN, and may cost bits
 * elsewhere. */
static zero_status all_reduce(zero_comm *comm, zero_operation_kind kind, MPI_Op op,
                              size_t size, int64_t n, void *data)
{
    zero_operation what;
    MPI_Request request;
    int64_t most = zero_small_reduced(size);
    ZERO_TRY(enter(comm, kind, (size_t)n * size, -1, &what));
    for (int64_t at = 0; at < n; at += most) {
        int64_t len = zero_min(n - at, most);
        char *part = (char *)data + (size_t)at * size;
        if (comm->local) {
            const local_reduction here = {op, size, len};
            ZERO_TRY(zero_local_meet(comm, reduce_local, &here, part));
        } else {
            ZERO_TRY(zero_mpi(MPI_Iallreduce(MPI_IN_PLACE, part, (int)len,
                                             size == sizeof(int) ? MPI_INT : MPI_INT64_T,
                                             op, comm->control, &request)));
            ZERO_TRY(finish(comm, &what, &request));
        }
        count_exchange(comm, len * (int64_t)size);
    }
    return ZERO_OK;
}

zero_status zero_comm_any(zero_comm *comm, bool mine, bool *any)
{
    int all = mine;
    ZERO_TRY(all_reduce(comm, ZERO_OPERATION_VOTE, MPI_MAX, sizeof all, 1, &all));
    *any = all != 0;
    return ZERO_OK;
}

/* The largest of -x is minus the least x. */
zero_status zero_comm_vote(zero_comm *comm, int64_t mine, int64_t common, int64_t *most,
                           bool *same)
{
    int64_t all[ZERO_VOTE_WORDS] = {mine, common, -common};
    assert(common >= 0);
    ZERO_TRY(all_reduce(comm, ZERO_OPERATION_VOTE, MPI_MAX, sizeof all[0], ZERO_VOTE_WORDS,
                        all));
    *most = all[0];
    *same = all[1] == -all[2];
    return ZERO_OK;
}

zero_status zero_comm_most(zero_comm *comm, int64_t mine, int64_t *most)
{
    int64_t all = mine;
    ZERO_TRY(all_reduce(comm, ZERO_OPERATION_MOST, MPI_MAX, sizeof all, 1, &all));
    *most = all;
    return ZERO_OK;
}

zero_status zero_comm_sum(zero_comm *comm, int64_t n, int64_t *words)
{
    return all_reduce(comm, ZERO_OPERATION_SUM, MPI_SUM, sizeof *words, n, words);
}

zero_status zero_comm_or(zero_comm *comm, int64_t n, uint64_t *words)
{
    return all_reduce(comm, ZERO_OPERATION_WORDS, MPI_BOR, sizeof *words, n, words);
}

/* ---- spans ---- */

zero_status zero_comm_merge_spans(zero_comm *comm, int n, zero_tree_span *spans)
{
    zero_operation what;
    assert(n >= 0);
    ZERO_TRY(enter(comm, ZERO_OPERATION_SPANS, (size_t)n * sizeof *spans, -1, &what));
    double start = zero_clock_seconds();
    ZERO_TRY(zero_merge(comm, &what, n, spans));
    count_time(comm, start);
    return zero_merge_check(n, spans);
}

/* ---- agreement ---- */

typedef struct {
    bool is_shared; /* every rank failed */
    zero_failure failure;
} verdict;

zero_status zero_agree(zero_comm *comm, zero_status mine)
{
    if (comm->size == 1 || mine == ZERO_ERR_STALLED) return mine;
    int first = mine == ZERO_OK ? comm->size : comm->rank, failed = mine != ZERO_OK;
    ZERO_TRY(all_reduce(comm, ZERO_OPERATION_AGREEMENT, MPI_MIN, sizeof first, 1, &first));
    if (first == comm->size) return ZERO_OK;

    /* If every rank failed, the text names none. */
    ZERO_TRY(
        all_reduce(comm, ZERO_OPERATION_AGREEMENT, MPI_SUM, sizeof failed, 1, &failed));
    verdict v = {.is_shared = failed == comm->size};
    if (comm->rank == first) v.failure = zero_failure_keep(mine);
    ZERO_TRY(zero_comm_broadcast(comm, first, &v, sizeof v));
    /* Fails here as rank `first` failed there. A failure that several ranks do not share
     * names the rank it came from, once. */
    const zero_failure *theirs = &v.failure;
    zero_status st = zero_failure_restore(theirs);
    if (v.is_shared || theirs->is_agreed) return st;
    zero_failure named = zero_failure_keep(
        zero_fail_at(theirs->file, theirs->line, st, "rank %d: %s",
                     zero_member_rank(&comm->member, first), theirs->text));
    named.is_agreed = true;
    return zero_failure_restore(&named);
}

zero_status zero_agree_after_files(zero_comm *comm, zero_status mine)
{
    zero_family_whole(comm)->patience = ZERO_FILE_PATIENCE;
    zero_status st = zero_agree(comm, mine);
    zero_family_whole(comm)->patience = 1.0;
    return st;
}

/* ---- other messages ---- */

typedef struct {
    int n;
    const double *mine;
    double *all;
} local_gather;

static void gather_local(int size, void *const *things, ZERO_UNUSED const void *arg)
{
    for (int r = 0; r < size; r++)
        for (int q = 0; q < size; q++) {
            const local_gather *from = things[q];
            memcpy(((const local_gather *)things[r])->all + (int64_t)q * from->n,
                   from->mine, (size_t)from->n * sizeof *from->mine);
        }
}

zero_status zero_comm_all_gather_doubles(zero_comm *comm, int n, const double *mine,
                                         double *all)
{
    zero_operation what;
    size_t bytes = (size_t)n * sizeof *mine;
    local_gather here = {n, mine, all};
    MPI_Request request;
    ZERO_TRY(enter(comm, ZERO_OPERATION_NUMBERS, bytes, -1, &what));
    if (comm->local) {
        ZERO_TRY(zero_local_meet(comm, gather_local, NULL, &here));
    } else {
        ZERO_TRY(zero_mpi_check(MPI_Iallgather(mine, n, MPI_DOUBLE, all, n, MPI_DOUBLE,
                                               comm->control, &request),
                                "MPI_Iallgather of doubles"));
        ZERO_TRY(finish(comm, &what, &request));
    }
    count_exchange(comm, (int64_t)bytes);
    return ZERO_OK;
}

typedef struct {
    int root;
    size_t len;
} local_broadcast;

static void broadcast_local(int size, void *const *things, const void *arg)
{
    const local_broadcast *b = arg;
    for (int r = 0; r < size; r++)
        if (r != b->root) memcpy(things[r], things[b->root], b->len);
}

zero_status zero_comm_broadcast(zero_comm *comm, int root, void *data, size_t bytes)
{
    zero_operation what;
    MPI_Request request;
    ZERO_TRY(enter(comm, ZERO_OPERATION_MESSAGE, bytes, root, &what));
    for (size_t at = 0; at < bytes; at += MAX_MESSAGE) {
        size_t len = zero_min_size(bytes - at, MAX_MESSAGE);
        char *part = (char *)data + at;
        if (comm->local) {
            const local_broadcast here = {root, len};
            ZERO_TRY(zero_local_meet(comm, broadcast_local, &here, part));
        } else {
            ZERO_TRY(zero_mpi(
                MPI_Ibcast(part, (int)len, MPI_BYTE, root, comm->control, &request)));
            ZERO_TRY(finish(comm, &what, &request));
        }
        zero_traffic *t = &comm->traffic[ZERO_CONTROL];
        bool is_root = comm->rank == root;
        for (int r = 0; is_root && r < comm->size; r++)
            if (r != root)
                zero_traffic_count(t, zero_reach_of(&comm->layout, r, root), 1, 0,
                                   (int64_t)len);
        if (!is_root)
            zero_traffic_count(t, zero_reach_of(&comm->layout, comm->rank, root), 0, 1,
                               (int64_t)len);
    }
    return ZERO_OK;
}

zero_status zero_comm_compare_with_root(zero_comm *comm, uint64_t mine, bool *same)
{
    uint64_t first = mine;
    ZERO_TRY(zero_comm_broadcast(comm, 0, &first, sizeof first));
    *same = mine == first;
    return ZERO_OK;
}

static zero_status barrier(zero_comm *comm, zero_operation_kind kind)
{
    zero_operation what;
    MPI_Request request;
    ZERO_TRY(enter(comm, kind, 0, -1, &what));
    if (comm->local) {
        ZERO_TRY(zero_local_meet(comm, NULL, NULL, NULL));
    } else {
        ZERO_TRY(zero_mpi(MPI_Ibarrier(comm->control, &request)));
        ZERO_TRY(finish(comm, &what, &request));
    }
    count_exchange(comm, 0);
    return ZERO_OK;
}

zero_status zero_comm_barrier(zero_comm *comm)
{
    return barrier(comm, ZERO_OPERATION_BARRIER);
}

zero_status zero_comm_barrier_after_files(zero_comm *comm)
{
    zero_family_whole(comm)->patience = ZERO_FILE_PATIENCE;
    zero_status st = zero_comm_barrier(comm);
    zero_family_whole(comm)->patience = 1.0;
    return st;
}

zero_status zero_comm_finish(zero_comm *comm)
{
    return barrier(comm, ZERO_OPERATION_END);
}
