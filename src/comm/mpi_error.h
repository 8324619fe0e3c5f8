/* mpi_error.h - what MPI's functions return, as a status; and whether they may be
 * called. */
#pragma once

#include "base/fail.h"

/* ZERO_OK for MPI_SUCCESS; else ZERO_ERR_MPI, with the name of the call and MPI's own
 * text. */
zero_status zero_mpi_check(int mpi_code, const char *call);
/* The same, named by the call itself, without its arguments. */
#define zero_mpi(call) zero_mpi_check((call), #call)

/* ZERO_ERR_INVALID before MPI_Init and after MPI_Finalize, when no other function of MPI
 * may be called. */
zero_status zero_mpi_check_up(void);
bool zero_mpi_is_up(void);
