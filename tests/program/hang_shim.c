/* hang_shim.c - preloaded by stops.sh and frozen.sh: the call that HANG_IN names never returns.
 *
 * Of MPI it waits for ever; with STOP_RANK that rank stops there as a whole, and the others go on. Logarithms
 * of losses and of attention call frexp(): a thread's call number HANG_AFTER computes for ever, on rank
 * HANG_RANK, or on all; with HANG_BESIDE in threads other than the first alone. */
#define _GNU_SOURCE /* RTLD_NEXT, gettid */
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <mpi.h>
#include <unistd.h>

static const char *own_rank(void)
{
    return getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK")
                                          : getenv("PMI_RANK");
}

static void hang_in(const char *call)
{
    const char *where = getenv("HANG_IN"), *stops = getenv("STOP_RANK");
    if (!where || strcmp(where, call) != 0) return;
    while (!stops) pause();
    if (own_rank() && strcmp(own_rank(), stops) == 0) raise(SIGSTOP);
}

double frexp(double x, int *exponent)
{
    static _Thread_local int calls;
    double (*real)(double, int *);
    void *found = dlsym(RTLD_NEXT, "frexp");
    const char *where = getenv("HANG_IN"), *after = getenv("HANG_AFTER");
    const char *own = own_rank();
    const char *rank = getenv("HANG_RANK");
    bool is_here = !rank || (own && strcmp(own, rank) == 0);
    bool is_first = gettid() == getpid(), hangs = where && strcmp(where, "frexp") == 0;
    volatile bool for_ever = hangs && after && ++calls >= atoi(after) && is_here &&
                             !(is_first && getenv("HANG_BESIDE"));
    while (for_ever) continue;
    memcpy(&real, &found, sizeof real);
    return real(x, exponent);
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    hang_in("MPI_Init_thread");
    return PMPI_Init_thread(argc, argv, required, provided);
}

int MPI_Comm_dup(MPI_Comm comm, MPI_Comm *copy)
{
    hang_in("MPI_Comm_dup");
    return PMPI_Comm_dup(comm, copy);
}

int MPI_Comm_free(MPI_Comm *comm)
{
    hang_in("MPI_Comm_free");
    return PMPI_Comm_free(comm);
}

int MPI_Ireduce_scatter_block(const void *from, void *to, int n, MPI_Datatype type,
                              MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    hang_in("MPI_Ireduce_scatter_block");
    return PMPI_Ireduce_scatter_block(from, to, n, type, op, comm, request);
}

int MPI_Finalize(void)
{
    hang_in("MPI_Finalize");
    return PMPI_Finalize();
}
