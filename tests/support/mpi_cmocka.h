/* mpi_cmocka.h - one CMocka group on every rank; no failure may become a hang.
 *
 * Rank 0 reports. assert_all() states what must hold on every rank, and fails on every rank if
 * it does not. A plain assert that fails aborts, and mpirun ends the job: a rank that left a
 * test early would make the others wait forever. ctest sets the time limits. */
#pragma once

#include <mpi.h>

#include "support/test.h"

static int test_rank, test_size;

/* Starts MPI unless the test has done so. */
static inline void test_begin(int *argc, char ***argv)
{
    int is_up = 0;
    MPI_Initialized(&is_up);
    if (!is_up) MPI_Init(argc, argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &test_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &test_size);
    if (test_rank > 0 && !freopen("/dev/null", "w", stdout)) abort();
    if (test_size > 1) setenv("CMOCKA_TEST_ABORT", "1", 1);
}

/* The exit code of the test program. Collective. */
static inline int test_end(int failed)
{
    MPI_Finalize();
    return failed != 0;
}

__attribute__((constructor)) static void test_has_ranks(void)
{
    around.begin = test_begin;
    around.end = test_end;
}

/* Passes or fails on every rank alike, and prints the ranks on which `ok` is false. Collective. */
#define assert_all(ok) assert_all_at((ok) ? 1 : 0, #ok, __FILE__, __LINE__)
static inline void assert_all_at(int ok, const char *text, const char *file, int line)
{
    int all = ok;
    MPI_Allreduce(&ok, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    if (!ok)
        print_error("%s:%d: rank %d of %d: %s\n", file, line, test_rank, test_size, text);
    if (!all) MPI_Barrier(MPI_COMM_WORLD); /* all ranks print before the abort */
    assert_true(all);
}

#define all_ok(call) all_ok_at(call, #call, __FILE__, __LINE__)
static inline void all_ok_at(zero_status st, const char *text, const char *file, int line)
{
    if (st != ZERO_OK) print_error("%s\n", zero_last_error());
    assert_all_at(st == ZERO_OK, text, file, line);
}

/* The last failure's message has this text on every rank. */
#define all_told(text) all_told_at(text, __FILE__, __LINE__)
static inline void all_told_at(const char *text, const char *file, int line)
{
    bool is_told = strstr(zero_last_error(), text) != NULL;
    if (!is_told) print_error("'%s' is not in '%s'\n", text, zero_last_error());
    assert_all_at(is_told, text, file, line);
}

/* A call that fails on every rank, and says why. */
#define all_fail(call, status, text) \
    do { \
        assert_all((call) == (status)); \
        all_told(text); \
    } while (0)
