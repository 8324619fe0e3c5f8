/* device_fault.h - the fake device of the last rank fails in one of its calls or copies, and all
 * ranks must hear of it from the same function. */
#pragma once

#include "support/mpi_cmocka.h"

#include <zero/status.h>

/* The call, from 1, in which devices fail that are opened from now on; 0: none. */
static inline void fault_in(int call)
{
    char text[32];
    snprintf(text, sizeof text, "%d", test_rank == test_size - 1 ? call : 0);
    assert_int_equal(setenv("ZERO_FAKE_FAIL", text, 1), 0);
}

/* True if the call failed as it must. */
static inline bool fault_is_told(int call, zero_status st)
{
    char expected[96];
    int n = snprintf(expected, sizeof expected, "rank %d: ", test_size - 1);
    if (test_size == 1) n = 0; /* a rank alone has no number */
    snprintf(expected + n, sizeof expected - (size_t)n,
             "the fake device failed in call %d (", call);
    return st == ZERO_ERR_ENV && strstr(zero_last_error(), expected);
}

/* True if the function succeeded on all ranks; else it failed on all of them, with the device's
 * text. Collective. */
static inline bool fault_missed(const char *function, int call, zero_status st)
{
    int least = (int)st, most = (int)st;
    MPI_Allreduce(MPI_IN_PLACE, &least, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (least == ZERO_OK && most == ZERO_OK) return true;
    bool is_told = fault_is_told(call, st);
    if (!is_told)
        print_error("rank %d, %s, call %d: status %d, '%s'\n", test_rank, function, call,
                    (int)st, zero_last_error());
    assert_all(is_told);
    return false;
}
