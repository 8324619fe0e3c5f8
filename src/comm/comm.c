#include "comm/comm.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "comm/check.h"
#include "comm/progress.h"
#include "comm/wait.h"
#include "comm/watch.h"
#include "comm/window.h"

#define MAX_MESSAGE ((size_t)1 << 30) /* bytes; MPI counts are ints */

zero_status zero_comm_check(int mpi_code, const char *what)
{
    if (mpi_code == MPI_SUCCESS) return ZERO_OK;
    char text[MPI_MAX_ERROR_STRING] = "";
    int len = 0;
    if (MPI_Error_string(mpi_code, text, &len) != MPI_SUCCESS)
        snprintf(text, sizeof text, "no description");
    return zero_fail(ZERO_ERR_MPI, "%s failed: %s (MPI error %d)", what, text, mpi_code);
}

static zero_status find_tag_limit(int *limit)
{
    int *highest = NULL, found = 0;
    ZERO_TRY(
        zero_comm_check(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &highest, &found),
                        "MPI_Comm_get_attr"));
    *limit = found ? *highest : 32767; /* what the standard promises at least */
    return ZERO_OK;
}

static zero_status allocate_ids(int n, int **ids)
{
    *ids = malloc((size_t)n * sizeof **ids);
    return *ids ? ZERO_OK : zero_fail(ZERO_ERR_NOMEM, "no memory for %d ranks", n);
}

/* Every rank learns its node's lowest rank, and so which ranks share a node. */
static zero_status find_nodes(zero_comm *comm)
{
    int lowest = comm->rank, *ids = NULL;
    ZERO_TRY(zero_comm_check(MPI_Comm_split_type(comm->mpi, MPI_COMM_TYPE_SHARED,
                                                 comm->rank, MPI_INFO_NULL, &comm->node),
                             "MPI_Comm_split_type"));
    ZERO_TRY(zero_comm_check(MPI_Comm_set_errhandler(comm->node, MPI_ERRORS_RETURN),
                             "MPI_Comm_set_errhandler"));
    ZERO_TRY(zero_comm_check(MPI_Bcast(&lowest, 1, MPI_INT, 0, comm->node), "MPI_Bcast"));
    ZERO_TRY(allocate_ids(comm->size, &ids));
    zero_status st = zero_comm_check(
        MPI_Allgather(&lowest, 1, MPI_INT, ids, 1, MPI_INT, comm->mpi), "MPI_Allgather");
    if (st == ZERO_OK) st = zero_layout_init(&comm->layout, comm->size, ids);
    free(ids);
    return st;
}

static zero_status describe(MPI_Comm mpi, const char *name, zero_comm *comm)
{
    *comm = (zero_comm){.mpi = mpi, .control = MPI_COMM_NULL, .node = MPI_COMM_NULL};
    ZERO_TRY(zero_comm_check(MPI_Comm_set_errhandler(mpi, MPI_ERRORS_RETURN),
                             "MPI_Comm_set_errhandler"));
    ZERO_TRY(zero_comm_check(MPI_Comm_dup(mpi, &comm->control), "MPI_Comm_dup"));
    ZERO_TRY(zero_comm_check(MPI_Comm_set_name(mpi, name), "MPI_Comm_set_name"));
    ZERO_TRY(zero_comm_check(MPI_Comm_rank(mpi, &comm->rank), "MPI_Comm_rank"));
    ZERO_TRY(zero_comm_check(MPI_Comm_size(mpi, &comm->size), "MPI_Comm_size"));
    ZERO_TRY(find_tag_limit(&comm->tag_limit));
    return find_nodes(comm);
}

/* Takes over a new communicator: *out owns it, or it is freed. */
static zero_status adopt(MPI_Comm mpi, const char *name, zero_comm *out)
{
    zero_comm comm;
    zero_status st = describe(mpi, name, &comm);
    if (st == ZERO_OK) {
        *out = comm;
    } else {
        zero_layout_destroy(&comm.layout);
        if (comm.node != MPI_COMM_NULL) MPI_Comm_free(&comm.node);
        if (comm.control != MPI_COMM_NULL) MPI_Comm_free(&comm.control);
        MPI_Comm_free(&mpi);
    }
    return st;
}

zero_status zero_comm_world(zero_comm *out)
{
    MPI_Comm mpi;
    ZERO_TRY(zero_comm_check(MPI_Comm_dup(MPI_COMM_WORLD, &mpi), "MPI_Comm_dup"));
    return adopt(mpi, "zero world", out);
}

zero_status zero_comm_split(const zero_comm *parent, int color, int key, zero_comm *out)
{
    MPI_Comm mpi;
    int mpi_color = color < 0 ? MPI_UNDEFINED : color;
    ZERO_TRY(zero_comm_check(MPI_Comm_split(parent->mpi, mpi_color, key, &mpi),
                             "MPI_Comm_split"));
    if (color >= 0) return adopt(mpi, "zero group", out);
    *out = (zero_comm){0};
    return ZERO_OK;
}

static zero_status check_pretence(const zero_comm *comm, const zero_layout *wish)
{
    if (comm->signals)
        return zero_fail(ZERO_ERR_INVALID, "nodes are declared before the first window");
    for (int r = 1; r < comm->size; r++)
        for (int q = 0; q < r; q++)
            if (wish->node_of[r] == wish->node_of[q] &&
                comm->layout.node_of[r] != comm->layout.node_of[q])
                return zero_fail(ZERO_ERR_INVALID,
                                 "ranks %d and %d cannot share a node: they run on two", q,
                                 r);
    return ZERO_OK;
}

zero_status zero_comm_pretend_nodes(zero_comm *comm, const int *ids)
{
    zero_layout wish;
    MPI_Comm node;
    ZERO_TRY(zero_layout_init(&wish, comm->size, ids));
    zero_status st = check_pretence(comm, &wish);
    if (st == ZERO_OK)
        st = zero_comm_check(
            MPI_Comm_split(comm->mpi, wish.node_of[comm->rank], comm->rank, &node),
            "MPI_Comm_split");
    if (st != ZERO_OK) {
        zero_layout_destroy(&wish);
        return st;
    }
    MPI_Comm_free(&comm->node);
    zero_layout_destroy(&comm->layout);
    comm->node = node;
    comm->layout = wish;
    return zero_comm_check(MPI_Comm_set_errhandler(node, MPI_ERRORS_RETURN),
                           "MPI_Comm_set_errhandler");
}

zero_status zero_comm_pretend_blocks(zero_comm *comm, int n_nodes)
{
    zero_layout blocks;
    if (n_nodes < 1 || n_nodes > comm->size)
        return zero_fail(ZERO_ERR_INVALID,
                         "--fake-nodes %d: there are only %d ranks for them", n_nodes,
                         comm->size);
    ZERO_TRY(zero_layout_init_blocks(&blocks, comm->size, n_nodes));
    zero_status st = zero_comm_pretend_nodes(comm, blocks.node_of);
    zero_layout_destroy(&blocks);
    return st;
}

/* A group that does not come to its end is left to the abort that ends it. */
static bool end_helpers(zero_comm *comm)
{
    zero_progress_stop(comm);
    return zero_check_stop(comm) == ZERO_OK && zero_watch_stop(comm) == ZERO_OK;
}

void zero_comm_destroy(zero_comm *comm)
{
    if (!end_helpers(comm)) return;
    if (comm->signals) zero_window_destroy(comm->signals);
    free(comm->signals);
    zero_layout_destroy(&comm->layout);
    if (comm->size > 0) MPI_Comm_free(&comm->node);
    if (comm->size > 0) MPI_Comm_free(&comm->control);
    if (comm->size > 0) MPI_Comm_free(&comm->mpi);
    *comm = (zero_comm){0};
}

/* Counts `bytes` to and from each of the other ranks. */
static void count_exchange(zero_comm *comm, int64_t bytes)
{
    zero_traffic *t = &comm->traffic[ZERO_CONTROL];
    int64_t inside = zero_layout_local_size(&comm->layout, comm->rank) - 1;
    int64_t others[ZERO_REACHES] = {inside, comm->size - 1 - inside};
    for (int reach = 0; reach < ZERO_REACHES; reach++) {
        t->bytes_sent[reach] += others[reach] * bytes;
        t->bytes_received[reach] += others[reach] * bytes;
        t->messages_sent[reach] += others[reach];
        t->messages_received[reach] += others[reach];
    }
}

static void count_broadcast(zero_comm *comm, int root, int64_t bytes)
{
    zero_traffic *t = &comm->traffic[ZERO_CONTROL];
    const int *node_of = comm->layout.node_of;
    for (int r = 0; r < comm->size; r++) {
        zero_reach reach = node_of[r] == node_of[root] ? ZERO_INSIDE : ZERO_ACROSS;
        bool sends = comm->rank == root && r != root;
        bool receives = comm->rank == r && r != root;
        t->bytes_sent[reach] += sends ? bytes : 0;
        t->messages_sent[reach] += sends ? 1 : 0;
        t->bytes_received[reach] += receives ? bytes : 0;
        t->messages_received[reach] += receives ? 1 : 0;
    }
}

/* Every rank enters the same operations in the same order; root: -1 where there is none. */
static zero_status enter(zero_comm *comm, zero_operation_kind kind, size_t bytes, int root,
                         zero_operation *what)
{
    *what = zero_operation_control(kind, comm->control_sequence, (int64_t)bytes, root);
    ZERO_TRY(zero_check_compare(comm, what));
    zero_progress_lock(comm); /* the thread tells it to others */
    comm->control_sequence++;
    zero_progress_unlock(comm);
    return ZERO_OK;
}

static zero_status finish(zero_comm *comm, const zero_operation *what, MPI_Request *request)
{
    zero_duration *duration = &comm->duration[ZERO_CONTROL];
    double start = zero_clock_seconds();
    ZERO_TRY(zero_wait_request(comm, ZERO_WATCH_WAITING, what, request));
    double passed = zero_clock_seconds() - start;
    duration->total += passed;
    duration->exposed += passed;
    return ZERO_OK;
}

/* Integers only: a float reduction of flags would lose NaN, and may cost bits elsewhere. */
static zero_status all_reduce_int(zero_comm *comm, zero_operation_kind kind, int mine,
                                  MPI_Op op, int *result)
{
    int all = mine;
    zero_operation what;
    MPI_Request request;
    ZERO_TRY(enter(comm, kind, sizeof mine, -1, &what));
    ZERO_TRY(zero_comm_check(
        MPI_Iallreduce(&mine, &all, 1, MPI_INT, op, comm->control, &request),
        "MPI_Iallreduce of one integer"));
    ZERO_TRY(finish(comm, &what, &request));
    count_exchange(comm, (int64_t)sizeof mine);
    *result = all;
    return ZERO_OK;
}

typedef struct {
    zero_status status;
    bool is_shared; /* every rank failed */
    char place[64], text[1024];
} verdict;

static void describe_failure(zero_status status, verdict *v)
{
    v->status = status;
    snprintf(v->place, sizeof v->place, "%s", zero_last_error_place());
    snprintf(v->text, sizeof v->text, "%s", zero_last_error());
}

/* Fails here as `rank` failed there, place included. */
static zero_status fail_like(int rank, verdict *v)
{
    int line = 0, agreed_rank;
    char *colon = strrchr(v->place, ':');
    if (colon) {
        line = atoi(colon + 1);
        *colon = '\0';
    }
    /* A verdict that was agreed upon before already names the rank it came from. */
    if (v->is_shared || sscanf(v->text, "rank %d: ", &agreed_rank) == 1)
        return zero_fail_at(v->place, line, v->status, "%s", v->text);
    return zero_fail_at(v->place, line, v->status, "rank %d: %s", rank, v->text);
}

zero_status zero_agree(zero_comm *comm, zero_status mine)
{
    if (comm->size == 1 || mine == ZERO_ERR_STALLED) return mine;
    int first = comm->size;
    ZERO_TRY(all_reduce_int(comm, ZERO_OPERATION_AGREEMENT,
                            mine == ZERO_OK ? comm->size : comm->rank, MPI_MIN, &first));
    if (first == comm->size) return ZERO_OK;

    /* What all ranks found wrong is no news about one of them: it keeps its plain text. */
    int failed = 0;
    ZERO_TRY(all_reduce_int(comm, ZERO_OPERATION_AGREEMENT, mine == ZERO_OK ? 0 : 1,
                            MPI_SUM, &failed));
    verdict v = {.is_shared = failed == comm->size};
    if (comm->rank == first) describe_failure(mine, &v);
    ZERO_TRY(zero_comm_broadcast(comm, first, &v, sizeof v));
    return fail_like(first, &v);
}

zero_status zero_comm_any(zero_comm *comm, bool mine, bool *any)
{
    int all = 0;
    ZERO_TRY(all_reduce_int(comm, ZERO_OPERATION_VOTE, mine ? 1 : 0, MPI_MAX, &all));
    *any = all != 0;
    return ZERO_OK;
}

zero_status zero_comm_all_gather_doubles(zero_comm *comm, int n, const double *mine,
                                         double *all)
{
    zero_operation what;
    MPI_Request request;
    size_t bytes = (size_t)n * sizeof *mine;
    ZERO_TRY(enter(comm, ZERO_OPERATION_NUMBERS, bytes, -1, &what));
    ZERO_TRY(zero_comm_check(
        MPI_Iallgather(mine, n, MPI_DOUBLE, all, n, MPI_DOUBLE, comm->control, &request),
        "MPI_Iallgather of doubles"));
    ZERO_TRY(finish(comm, &what, &request));
    count_exchange(comm, (int64_t)bytes);
    return ZERO_OK;
}

zero_status zero_comm_broadcast(zero_comm *comm, int root, void *data, size_t bytes)
{
    zero_operation what;
    ZERO_TRY(enter(comm, ZERO_OPERATION_MESSAGE, bytes, root, &what));
    for (size_t at = 0; at < bytes; at += MAX_MESSAGE) {
        size_t len = bytes - at < MAX_MESSAGE ? bytes - at : MAX_MESSAGE;
        MPI_Request request;
        ZERO_TRY(zero_comm_check(MPI_Ibcast((char *)data + at, (int)len, MPI_BYTE, root,
                                            comm->control, &request),
                                 "MPI_Ibcast"));
        ZERO_TRY(finish(comm, &what, &request));
        count_broadcast(comm, root, (int64_t)len);
    }
    return ZERO_OK;
}

static zero_status barrier(zero_comm *comm, zero_operation_kind kind)
{
    zero_operation what;
    MPI_Request request;
    ZERO_TRY(enter(comm, kind, 0, -1, &what));
    ZERO_TRY(zero_comm_check(MPI_Ibarrier(comm->control, &request), "MPI_Ibarrier"));
    ZERO_TRY(finish(comm, &what, &request));
    count_exchange(comm, 0);
    return ZERO_OK;
}

zero_status zero_comm_barrier(zero_comm *comm)
{
    return barrier(comm, ZERO_OPERATION_BARRIER);
}

zero_status zero_comm_finish(zero_comm *comm)
{
    return barrier(comm, ZERO_OPERATION_END);
}
