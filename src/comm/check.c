#include "comm/check.h"

#include "base/fail.h"
#include "comm/compare.h"
#include "comm/control.h"
#include "comm/family.h"

/* A divided group compares in its parts, for the whole family. */
static int list_groups(zero_comm *comm, zero_comm *groups[2])
{
    groups[0] = comm->tp ? comm->tp : comm;
    groups[1] = comm->data;
    return comm->data ? 2 : 1;
}

static zero_status make(const zero_comm *comm, struct zero_check **c)
{
    if (comm->size <= 1) return ZERO_OK;
    if (comm->check) return zero_fail(ZERO_ERR_INVALID, "the group checks already");
    return zero_compare_make(comm->size, c);
}

static zero_status start(zero_comm *comm, int n, zero_comm *groups[],
                         struct zero_check *c[])
{
    for (int i = 0; i < n; i++) {
        zero_status st = make(groups[i], &c[i]);
        if (st == ZERO_ERR_INVALID) return st; /* on all ranks */
        ZERO_TRY(zero_agree(comm, st));
    }
    for (int i = 0; i < n; i++)
        if (c[i]) ZERO_TRY(zero_compare_start(groups[i], c[i]));
    return ZERO_OK;
}

zero_status zero_check_start(zero_comm *comm)
{
    zero_comm *groups[2];
    struct zero_check *c[2] = {NULL, NULL};
    int n = list_groups(comm, groups);
    ZERO_TRY(zero_family_check_whole(comm, "a check of collectives"));
    if (comm->size <= 1) return ZERO_OK;
    zero_status st = start(comm, n, groups, c);
    for (int i = 0; i < n; i++)
        if (st != ZERO_OK && groups[i]->check != c[i]) zero_compare_free(c[i]);
    return st;
}

zero_status zero_check_stop(zero_comm *comm)
{
    zero_comm *groups[2];
    int n = list_groups(comm, groups);
    if (!groups[0]->check || comm->whole) return ZERO_OK;
    ZERO_TRY(zero_comm_finish(comm));
    for (int i = 0; i < n; i++)
        if (groups[i]->check) ZERO_TRY(zero_compare_stop(groups[i]));
    return ZERO_OK;
}
