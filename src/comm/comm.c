#include "comm/comm.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static zero_status describe(MPI_Comm mpi, const char *name, zero_comm *comm)
{
    *comm = (zero_comm){.mpi = mpi};
    ZERO_TRY(zero_comm_check(MPI_Comm_set_errhandler(mpi, MPI_ERRORS_RETURN),
                             "MPI_Comm_set_errhandler"));
    ZERO_TRY(zero_comm_check(MPI_Comm_set_name(mpi, name), "MPI_Comm_set_name"));
    ZERO_TRY(zero_comm_check(MPI_Comm_rank(mpi, &comm->rank), "MPI_Comm_rank"));
    ZERO_TRY(zero_comm_check(MPI_Comm_size(mpi, &comm->size), "MPI_Comm_size"));
    return find_tag_limit(&comm->tag_limit);
}

/* Takes over a new communicator: *out owns it, or it is freed. */
static zero_status adopt(MPI_Comm mpi, const char *name, zero_comm *out)
{
    zero_comm comm;
    zero_status st = describe(mpi, name, &comm);
    if (st != ZERO_OK)
        MPI_Comm_free(&mpi);
    else
        *out = comm;
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

zero_status zero_comm_node(const zero_comm *parent, zero_comm *out)
{
    MPI_Comm mpi;
    ZERO_TRY(zero_comm_check(MPI_Comm_split_type(parent->mpi, MPI_COMM_TYPE_SHARED,
                                                 parent->rank, MPI_INFO_NULL, &mpi),
                             "MPI_Comm_split_type"));
    return adopt(mpi, "zero node", out);
}

void zero_comm_destroy(zero_comm *comm)
{
    if (comm->size > 0) MPI_Comm_free(&comm->mpi);
    *comm = (zero_comm){0};
}

/* Counts `bytes` to each and from each of the other ranks. */
static void count_exchange(zero_comm *comm, int64_t bytes)
{
    zero_traffic *t = &comm->traffic[ZERO_TRAFFIC_CONTROL];
    int64_t others = comm->size - 1;
    t->bytes_sent += others * bytes;
    t->bytes_received += others * bytes;
    t->messages_sent += others;
    t->messages_received += others;
}

static void count_broadcast(zero_comm *comm, bool is_root, int64_t bytes)
{
    zero_traffic *t = &comm->traffic[ZERO_TRAFFIC_CONTROL];
    int64_t others = comm->size - 1;
    t->bytes_sent += is_root ? others * bytes : 0;
    t->messages_sent += is_root ? others : 0;
    t->bytes_received += is_root ? 0 : bytes;
    t->messages_received += is_root ? 0 : 1;
}

/* Integers only: a float reduction of flags would lose NaN, and may cost bits elsewhere. */
static zero_status all_reduce_int(zero_comm *comm, int mine, MPI_Op op, int *result)
{
    int all = mine;
    ZERO_TRY(zero_comm_check(MPI_Allreduce(&mine, &all, 1, MPI_INT, op, comm->mpi),
                             "MPI_Allreduce of one integer"));
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
    if (comm->size == 1) return mine;
    int first = comm->size;
    ZERO_TRY(
        all_reduce_int(comm, mine == ZERO_OK ? comm->size : comm->rank, MPI_MIN, &first));
    if (first == comm->size) return ZERO_OK;

    /* What all ranks found wrong is no news about one of them: it keeps its plain text. */
    int failed = 0;
    ZERO_TRY(all_reduce_int(comm, mine == ZERO_OK ? 0 : 1, MPI_SUM, &failed));
    verdict v = {.is_shared = failed == comm->size};
    if (comm->rank == first) describe_failure(mine, &v);
    ZERO_TRY(zero_comm_broadcast(comm, first, &v, sizeof v));
    return fail_like(first, &v);
}

zero_status zero_comm_any(zero_comm *comm, bool mine, bool *any)
{
    int all = 0;
    ZERO_TRY(all_reduce_int(comm, mine ? 1 : 0, MPI_MAX, &all));
    *any = all != 0;
    return ZERO_OK;
}

zero_status zero_comm_all_gather_doubles(zero_comm *comm, int n, const double *mine,
                                         double *all)
{
    ZERO_TRY(
        zero_comm_check(MPI_Allgather(mine, n, MPI_DOUBLE, all, n, MPI_DOUBLE, comm->mpi),
                        "MPI_Allgather of doubles"));
    count_exchange(comm, (int64_t)n * (int64_t)sizeof *mine);
    return ZERO_OK;
}

zero_status zero_comm_broadcast(zero_comm *comm, int root, void *data, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += MAX_MESSAGE) {
        size_t len = bytes - at < MAX_MESSAGE ? bytes - at : MAX_MESSAGE;
        ZERO_TRY(zero_comm_check(
            MPI_Bcast((char *)data + at, (int)len, MPI_BYTE, root, comm->mpi),
            "MPI_Bcast"));
        count_broadcast(comm, comm->rank == root, (int64_t)len);
    }
    return ZERO_OK;
}

zero_status zero_comm_barrier(zero_comm *comm)
{
    ZERO_TRY(zero_comm_check(MPI_Barrier(comm->mpi), "MPI_Barrier"));
    count_exchange(comm, 0);
    return ZERO_OK;
}
