#define TEST_HAS_MAIN
#define _GNU_SOURCE /* unshare() */
/* The cores that a rank's threads keep, on machines that hwloc makes up. */
#include "support/test.h"

#include "base/binding.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/claim.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

static void is_placed(const char *machine, int threads, int local_rank, int node_ranks,
                      const char *text, bool binds)
{
    zero_binding b;
    assert_int_equal(setenv("HWLOC_SYNTHETIC", machine, 1), 0);
    assert_ok(zero_binding_open(&b, threads, local_rank, node_ranks));
    assert_string_equal(b.text, text);
    assert_int_equal(b.binds, binds);
    zero_binding_close(&b);
    zero_binding_close(&b); /* may be closed again */
    unsetenv("HWLOC_SYNTHETIC");
}

#define OWN "each on a core of its own, NUMA node "

TEST(ranks_share_the_numa_nodes)
{
    const char *two = "numa:2 core:4 pu:2";
    is_placed(two, 4, 0, 2, OWN "0, CPUs 0-7", true);
    is_placed(two, 4, 1, 2, OWN "1, CPUs 8-15", true);
    is_placed(two, 2, 0, 3, OWN "0, CPUs 0-3", true);
    is_placed(two, 2, 1, 3, OWN "0, CPUs 4-7", true);
    is_placed(two, 2, 2, 3, OWN "1, CPUs 8-11", true);
    is_placed("numa:3 core:2 pu:1", 2, 2, 3, OWN "2, CPUs 4-5", true);
    is_placed("numa:2 core:4 pu:1", 3, 0, 2, OWN "0, CPUs 0-2", true);
    is_placed("numa:2 core:4 pu:1", 2, 3, 4, OWN "1, CPUs 6-7", true);
}

TEST(a_rank_that_fits_no_numa_node_has_cores_of_several)
{
    const char *own = "each on a core of its own: CPUs ";
    char text[128];
    snprintf(text, sizeof text, "%s0-9", own);
    is_placed("numa:2 core:4 pu:2", 5, 0, 1, text, true);
    snprintf(text, sizeof text, "%s0-1", own);
    is_placed("numa:4 core:3 pu:1", 2, 0, 5, text, true); /* two of them on one node */
    is_placed("numa:1 core:8 pu:1", 2, 0, 3, text, true);
    snprintf(text, sizeof text, "%s4-5", own);
    is_placed("numa:1 core:8 pu:1", 2, 2, 3, text, true);
}

/* Other tests on this machine may have claimed its cores. */
TEST(two_runs_have_different_cores)
{
    zero_binding one, two, three;
    assert_ok(zero_binding_open(&one, 1, 0, 1));
    assert_ok(zero_binding_open(&two, 1, 0, 1));
    if (one.cores == 1 && two.cores == 1) assert_string_not_equal(one.text, two.text);
    if (one.cores == 1) assert_true(zero_binding_take(&one, 0));
    zero_binding_close(&one);
    assert_ok(zero_binding_open(&three, 1, 0, 1));
    if (three.cores == 1 && two.cores == 1) assert_string_not_equal(three.text, two.text);
    zero_binding_close(&two);
    zero_binding_close(&three);
}

/* No core has such a number, and no other test of this machine. */
static int number(void)
{
    return 1000000 + (int)getpid();
}

/* A descriptor that has the number; -1: another has it. */
static int claim(int n)
{
    const int claims = zero_claims_open();
    assert_true(claims >= 0);
    const bool taken = zero_claims_take(claims, n);
    zero_claims_settle(claims);
    if (taken) return claims;
    close(claims);
    return -1;
}

TEST(a_number_has_one_claim_at_a_time)
{
    const int probe = zero_claims_open();
    if (probe < 0) skip();
    close(probe);
    const int first = claim(number());
    assert_true(first >= 0);
    assert_int_equal(claim(number()), -1);
    const int second = claim(number() + 1);
    assert_true(second >= 0);
    close(first);
    const int again = claim(number());
    assert_true(again >= 0);
    close(again);
    close(second);
}

/* What a process in namespaces of its own, as in a container, says to a claim of ours: 0: another has it,
 * 1: it has the number, 2: it cannot tell, 3: there are no such namespaces here. */
static int in_container(int flags, int n)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0 && unshare(flags) != 0) _exit(3);
    const pid_t inner =
        child == 0 ? fork() : -1; /* a time of its own begins with a child */
    if (inner == 0) {
        const int claims = zero_claims_open();
        _exit(claims < 0 ? 2 : zero_claims_take(claims, n));
    }
    const pid_t waited = child == 0 ? inner : child;
    while (waitpid(waited, &status, 0) < 0) continue;
    if (child == 0) _exit(WEXITSTATUS(status));
    return WEXITSTATUS(status);
}

TEST(containers_see_each_others_claims)
{
    const int probe = zero_claims_open();
    if (probe < 0) skip();
    close(probe);
    const int all = CLONE_NEWNET | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
                    CLONE_NEWNS | CLONE_NEWUSER | CLONE_NEWCGROUP;
    const int own = claim(number());
    assert_true(own >= 0);
    const int flags[] = {CLONE_NEWNET, all};
    for (int i = 0; i < 2; i++) {
        const int says = in_container(flags[i], number());
        if (says != 0 && says != 3) fail_msg("container %d says %d", i, says);
    }
    const int elsewhere = in_container(CLONE_NEWTIME, number());
    if (elsewhere != 2 && elsewhere != 3) fail_msg("another time says %d", elsewhere);
    close(own);
    const int freed = in_container(CLONE_NEWNET, number());
    if (freed != 1 && freed != 3) fail_msg("a claim that ended: %d", freed);
}

TEST(nothing_is_bound_where_threads_are_too_many)
{
    is_placed("numa:2 core:4 pu:2", 3, 0, 3, "not bound: there are too few cores", false);
}

TEST(the_variables_of_openmp_decide)
{
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
    return run_here(NULL, NULL);
}
