/* hang_shim.c - preloaded by stops.sh: the MPI call that HANG_IN names never returns. */
#include <stdlib.h>
#include <string.h>

#include <mpi.h>
#include <unistd.h>

static void hang_in(const char *call)
{
    const char *where = getenv("HANG_IN");
    while (where && strcmp(where, call) == 0) pause();
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

int MPI_Finalize(void)
{
    hang_in("MPI_Finalize");
    return PMPI_Finalize();
}
