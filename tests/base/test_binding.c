/* The cores that a rank's threads keep, on machines that hwloc makes up. */
#include "base/binding.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void is_placed(const char *machine, int threads, int local_rank, int node_ranks,
                      const char *text, bool binds)
{
    zero_binding b;
    assert_int_equal(setenv("HWLOC_SYNTHETIC", machine, 1), 0);
    assert_int_equal(zero_binding_open(&b, threads, local_rank, node_ranks), ZERO_OK);
    assert_string_equal(b.text, text);
    assert_int_equal(b.binds, binds);
    zero_binding_close(&b);
    zero_binding_close(&b); /* may be closed again */
    unsetenv("HWLOC_SYNTHETIC");
}

#define FREE "not bound: the system places them"

static void ranks_share_the_numa_nodes(void **state)
{
    (void)state;
    const char *two = "numa:2 core:4 pu:2";
    is_placed(two, 4, 0, 2, "on NUMA node 0, CPUs 0-7", true);
    is_placed(two, 4, 1, 2, "on NUMA node 1, CPUs 8-15", true);
    is_placed(two, 2, 0, 3, "on NUMA node 0, CPUs 0-7", true);
    is_placed(two, 2, 1, 3, "on NUMA node 0, CPUs 0-7", true);
    is_placed(two, 2, 2, 3, "on NUMA node 1, CPUs 8-15", true);
    is_placed("numa:3 core:2 pu:1", 2, 2, 3, "on NUMA node 2, CPUs 4-5", true);
}

static void a_rank_that_fits_no_numa_node_stays_free(void **state)
{
    (void)state;
    is_placed("numa:2 core:4 pu:2", 5, 0, 1, FREE, false);
    is_placed("numa:2 core:4 pu:1", 3, 0, 2, "on NUMA node 0, CPUs 0-3", true);
    is_placed("numa:2 core:4 pu:1", 2, 0, 4, "on NUMA node 0, CPUs 0-3", true);
    is_placed("numa:4 core:3 pu:1", 2, 0, 5, FREE, false); /* two of them on one node */
    is_placed("numa:1 core:8 pu:1", 2, 0, 1, FREE, false);
}

static void nothing_is_bound_where_threads_are_too_many(void **state)
{
    (void)state;
    is_placed("numa:2 core:4 pu:2", 3, 0, 3, "not bound: there are too few cores", false);
}

static void the_variables_of_openmp_decide(void **state)
{
    (void)state;
    assert_int_equal(setenv("OMP_PROC_BIND", "close", 1), 0);
    is_placed("numa:2 core:4 pu:2", 4, 0, 2, "bound by OpenMP's own variables", false);
    unsetenv("OMP_PROC_BIND");
}

int main(void)
{
    unsetenv("OMP_PROC_BIND");
    unsetenv("OMP_PLACES");
    unsetenv("GOMP_CPU_AFFINITY");
    unsetenv("KMP_AFFINITY");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_share_the_numa_nodes),
        cmocka_unit_test(a_rank_that_fits_no_numa_node_stays_free),
        cmocka_unit_test(nothing_is_bound_where_threads_are_too_many),
        cmocka_unit_test(the_variables_of_openmp_decide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
