#include "comm/mpi_error.h"

#include <mpi.h>

zero_status zero_mpi_check(int mpi_code, const char *call)
{
    if (mpi_code == MPI_SUCCESS) return ZERO_OK;
    char text[MPI_MAX_ERROR_STRING] = "";
    int len = 0;
    if (MPI_Error_string(mpi_code, text, &len) != MPI_SUCCESS)
        zero_print(text, "no description");
    return zero_fail(ZERO_ERR_MPI, "%.*s failed: %s (MPI error %d)",
                     (int)strcspn(call, "("), call, text, mpi_code);
}

/* These two may be called at any time. */
static void look(int *is_up, int *is_down)
{
    *is_up = *is_down = 0;
    MPI_Initialized(is_up);
    MPI_Finalized(is_down);
}

bool zero_mpi_is_up(void)
{
    int is_up, is_down;
    look(&is_up, &is_down);
    return is_up && !is_down;
}

zero_status zero_mpi_check_up(void)
{
    int is_up, is_down;
    look(&is_up, &is_down);
    ZERO_INVALID_IF(!is_up, "MPI is not initialized: call MPI_Init before the library");
    ZERO_INVALID_IF(
        is_down,
        "MPI is finalized: use and close everything of the library before MPI_Finalize");
    return ZERO_OK;
}
