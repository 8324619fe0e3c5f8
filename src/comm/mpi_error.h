/* mpi_error.h - what MPI's functions return, as a status. */
#pragma once

#include "zero/status.h"

/* ZERO_OK for MPI_SUCCESS; else ZERO_ERR_MPI, with the name of the call and MPI's own text. */
ZERO_NODISCARD zero_status zero_mpi_check(int mpi_code, const char *call);
