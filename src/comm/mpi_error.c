#include "comm/mpi_error.h"

#include <stdio.h>

#include <mpi.h>

#include "base/fail.h"

zero_status zero_mpi_check(int mpi_code, const char *call)
{
    if (mpi_code == MPI_SUCCESS) return ZERO_OK;
    char text[MPI_MAX_ERROR_STRING] = "";
    int len = 0;
    if (MPI_Error_string(mpi_code, text, &len) != MPI_SUCCESS)
        snprintf(text, sizeof text, "no description");
    return zero_fail(ZERO_ERR_MPI, "%s failed: %s (MPI error %d)", call, text, mpi_code);
}
