/* family_watch.h - steps that tests of a family's helpers have in common. */
#pragma once

#include "base/fail.h"
#include "comm/operation.h"
#include "comm/thread.h"
#include "support/family_job.h"

static inline bool am_last(void)
{
    return test_rank == test_size - 1;
}

static inline void sleep_for(double seconds)
{
    usleep((useconds_t)(1e6 * seconds));
}

static inline family_job make(family_group *g, zero_collective_kind kind, int unit,
                              int slot)
{
    zero_collective_spec spec = family_spec(g->comm, ZERO_ALGORITHM_P2P, kind, unit);
    family_job j = family_make(g, &spec, slot);
    family_fill(&j, (uint64_t)unit);
    return j;
}

/* Begins and ends one. */
static inline void run(family_group *g, zero_collective_kind kind, int unit)
{
    family_job j = make(g, kind, unit, 0);
    family_begin(&j);
    assert_ok(zero_collective_wait(&j.op));
    assert_true(family_is_right(&j));
    family_destroy(&j);
}

static inline bool says(const char *expected)
{
    bool found = strstr(zero_last_error(), expected) != NULL;
    if (!found) print_error("expected: %s\nfound: %s\n", expected, zero_last_error());
    return found;
}

/* "... of JOIN 3 (...) in the TP group of ranks 2-3" */
static inline void describe(zero_comm *group, zero_collective_kind kind, int unit,
                            char *text)
{
    zero_collective_spec spec = family_spec(group, ZERO_ALGORITHM_P2P, kind, unit);
    zero_operation op = zero_operation_collective(&spec, group->sequence);
    op.member = group->member;
    zero_operation_describe(&op, text);
}

static inline bool is_active(const family_job *j)
{
    zero_thread_lock(j->comm);
    bool active = j->op.is_active;
    zero_thread_unlock(j->comm);
    return active;
}
