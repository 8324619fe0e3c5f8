/* offload_test.h - a directory for the scratch files of a job of tests. */
#pragma once

#include "support/disk_place.h"
#include "support/engine_test.h"

#include <unistd.h>

static char test_place[] = "zero_test_offload_XXXXXX";

/* Rank 0 makes it, the others get its name. Collective, like the other functions. */
static inline void test_place_open(void)
{
    if (test_rank == 0 && !disk_place_make(test_place)) abort();
    MPI_Bcast(test_place, (int)sizeof test_place, MPI_CHAR, 0, MPI_COMM_WORLD);
}

/* The number of files that are left there, for the exit code. */
static inline int test_place_close(void)
{
    MPI_Barrier(MPI_COMM_WORLD);
    int left = disk_place_names(test_place);
    if (left != 0) print_error("%s has %d files, expected 0\n", test_place, left);
    MPI_Barrier(MPI_COMM_WORLD);
    if (test_rank == 0 && left == 0) rmdir(test_place);
    return left;
}
