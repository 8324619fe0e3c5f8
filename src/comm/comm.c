#include "comm/comm.h"

#include "comm/check.h"
#include "comm/deadline.h"
#include "comm/heap.h"
#include "comm/local.h"
#include "comm/mpi_error.h"
#include "comm/thread.h"
#include "comm/watch.h"
#include "comm/window.h"

static zero_status describe(MPI_Comm mpi, const char *name, zero_comm *comm)
{
    *comm = (zero_comm){.mpi = mpi, .control = MPI_COMM_NULL, .node = MPI_COMM_NULL};
    ZERO_TRY(zero_mpi(MPI_Comm_set_errhandler(mpi, MPI_ERRORS_RETURN)));
    ZERO_TRY(zero_mpi(MPI_Comm_dup(mpi, &comm->control)));
    ZERO_TRY(zero_mpi(MPI_Comm_set_name(mpi, name)));
    ZERO_TRY(zero_mpi(MPI_Comm_rank(mpi, &comm->rank)));
    ZERO_TRY(zero_mpi(MPI_Comm_size(mpi, &comm->size)));
    int *limit = &comm->tag_limit;
    int *highest = NULL, found = 0;
    ZERO_TRY(zero_mpi(MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &highest, &found)));
    *limit = found ? *highest : 32767; /* the least that MPI promises */
    /* Every rank learns the lowest rank of each rank's node, and so which ranks share
     * one. */
    int lowest = comm->rank;
    ZERO_FREED int *ids = NULL;
    ZERO_TRY(zero_mpi(MPI_Comm_split_type(comm->mpi, MPI_COMM_TYPE_SHARED, comm->rank,
                                          MPI_INFO_NULL, &comm->node)));
    ZERO_TRY(zero_mpi(MPI_Comm_set_errhandler(comm->node, MPI_ERRORS_RETURN)));
    ZERO_TRY(zero_mpi(MPI_Bcast(&lowest, 1, MPI_INT, 0, comm->node)));
    ZERO_TRY(zero_new(&ids, comm->size, "ranks"));
    ZERO_TRY(zero_mpi(MPI_Allgather(&lowest, 1, MPI_INT, ids, 1, MPI_INT, comm->mpi)));
    return zero_layout_init(&comm->layout, comm->size, ids);
}

zero_status zero_comm_adopt(MPI_Comm mpi, const char *name, zero_comm *out)
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

static zero_status duplicate(MPI_Comm theirs, const char *name, zero_comm *out)
{
    MPI_Comm mpi;
    ZERO_TRY(zero_mpi(MPI_Comm_dup(theirs, &mpi)));
    return zero_comm_adopt(mpi, name, out);
}

zero_status zero_comm_world(zero_comm *out)
{
    return duplicate(MPI_COMM_WORLD, "zero world", out);
}

zero_status zero_comm_from(MPI_Comm mpi, zero_comm *out)
{
    int joins_two = 0;
    ZERO_INVALID_IF(
        mpi == MPI_COMM_NULL,
        "a group from MPI_COMM_NULL: expected a communicator that this rank belongs to");
    ZERO_TRY(zero_mpi(MPI_Comm_test_inter(mpi, &joins_two)));
    ZERO_INVALID_IF(joins_two,
                    "a group from an intercommunicator, which joins two groups: merge them "
                    "first (MPI_Intercomm_merge)");
    return duplicate(mpi, "zero group", out);
}

zero_status zero_comm_split(const zero_comm *parent, int color, int key, zero_comm *out)
{
    if (parent->local) return zero_local_split(parent, color, out);
    MPI_Comm mpi;
    int mpi_color = color < 0 ? MPI_UNDEFINED : color;
    ZERO_TRY(zero_mpi(MPI_Comm_split(parent->mpi, mpi_color, key, &mpi)));
    if (color >= 0) return zero_comm_adopt(mpi, "zero group", out);
    *out = (zero_comm){0};
    return ZERO_OK;
}

static zero_status make_wish(const zero_comm *comm, const int *ids, zero_layout *wish)
{
    ZERO_TRY(zero_layout_init(wish, comm->size, ids));
    ZERO_INVALID_IF(comm->signal_window,
                    "the group has a window already: declare its nodes before");
    ZERO_INVALID_IF(comm->parts, "the group is divided already: declare its nodes before");
    for (int r = 1; r < comm->size; r++)
        for (int q = 0; q < r; q++)
            ZERO_INVALID_IF(
                wish->node_of[r] == wish->node_of[q] &&
                    comm->layout.node_of[r] != comm->layout.node_of[q],
                "ranks %d and %d cannot share a node: they run on different ones", q, r);
    return ZERO_OK;
}

zero_status zero_comm_pretend_nodes(zero_comm *comm, const int *ids)
{
    zero_layout wish = {0};
    MPI_Comm node = MPI_COMM_NULL;
    zero_status st = zero_agree(comm, make_wish(comm, ids, &wish));
    zero_deadline_begin(comm->deadline, "making the groups of nodes");
    if (st == ZERO_OK && !comm->local)
        st = zero_mpi(
            MPI_Comm_split(comm->mpi, wish.node_of[comm->rank], comm->rank, &node));
    zero_deadline_end(comm->deadline);
    if (st != ZERO_OK) {
        zero_layout_destroy(&wish);
        return st;
    }
    zero_layout_destroy(&comm->layout);
    comm->layout = wish;
    if (comm->local) return ZERO_OK;
    MPI_Comm_free(&comm->node);
    comm->node = node;
    return zero_mpi(MPI_Comm_set_errhandler(node, MPI_ERRORS_RETURN));
}

zero_status zero_comm_pretend_blocks(zero_comm *comm, int n_nodes)
{
    ZERO_AT_END(zero_layout_destroy) zero_layout blocks = {0};
    ZERO_INVALID_IF(n_nodes < 1 || n_nodes > comm->size,
                    "--fake-nodes %d: there are only %d ranks", n_nodes, comm->size);
    ZERO_TRY(zero_agree(comm, zero_layout_init_blocks(&blocks, comm->size, n_nodes)));
    return zero_comm_pretend_nodes(comm, blocks.node_of);
}

zero_status zero_comm_stop_helpers(zero_comm *comm)
{
    zero_progress_stop(comm);
    ZERO_TRY(zero_check_stop(comm));
    return zero_watch_stop(comm);
}

static void release(zero_comm *comm)
{
    if (comm->local) {
        zero_local_leave(comm);
        return;
    }
    if (!zero_mpi_is_up()) comm->size = 0; /* nothing of MPI's is left to free */
    if (comm->signal_window) zero_window_destroy(comm->signal_window);
    free(comm->signal_window);
    zero_heap_free(comm->heap);
    zero_layout_destroy(&comm->layout);
    if (comm->size > 0) MPI_Comm_free(&comm->node);
    if (comm->size > 0) MPI_Comm_free(&comm->control);
    if (comm->size > 0) MPI_Comm_free(&comm->mpi);
    *comm = (zero_comm){0};
}

void zero_comm_destroy_parts(zero_comm *comm)
{
    for (int i = 0; i < comm->n_parts; i++) release(&comm->parts[i]);
    free(comm->parts);
    comm->parts = NULL;
    comm->n_parts = 0;
}

void zero_comm_destroy(zero_comm *comm)
{
    zero_deadline *deadline = comm->deadline;
    if (!zero_mpi_is_up())
        zero_watch_free(comm->watch);
    else if (zero_comm_stop_helpers(comm) != ZERO_OK)
        return;
    zero_deadline_begin(deadline, "leaving the groups of ranks");
    zero_comm_destroy_parts(comm);
    release(comm);
    zero_deadline_end(deadline);
}
