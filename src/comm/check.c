#include "comm/check.h"

#include "base/fail.h"
#include "comm/compare.h"
#include "comm/control.h"
#include "comm/family.h"

/* A divided group compares in its smallest parts, for the whole family (compare.c). */
static int list_groups(zero_comm *comm, zero_comm *groups[ZERO_FAMILY_PARTS])
{
    int n = 0;
    for (int i = 0; i < comm->n_parts; i++)
        if (!zero_compare_is_divided(&comm->parts[i])) groups[n++] = &comm->parts[i];
    if (n == 0) groups[n++] = comm;
    return n;
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
    zero_comm *groups[ZERO_FAMILY_PARTS];
    struct zero_check *c[ZERO_FAMILY_PARTS] = {NULL};
    int n = list_groups(comm, groups);
    ZERO_TRY(zero_family_check_whole(comm, "a check of collectives"));
    if (comm->size <= 1) return ZERO_OK;
    zero_status st = start(comm, n, groups, c);
    for (int i = 0; i < n; i++)
        if (st != ZERO_OK && groups[i]->check != c[i]) zero_compare_free(c[i]);
    return st;
}

/* Groups of one rank have nothing to compare. */
static bool checks(int n, zero_comm *const groups[])
{
    for (int i = 0; i < n; i++)
        if (groups[i]->check) return true;
    return false;
}

zero_status zero_check_stop(zero_comm *comm)
{
    zero_comm *groups[ZERO_FAMILY_PARTS];
    int n = list_groups(comm, groups);
    if (comm->whole || !checks(n, groups)) return ZERO_OK;
    ZERO_TRY(zero_comm_finish(comm));
    for (int i = 0; i < n; i++)
        if (groups[i]->check) ZERO_TRY(zero_compare_stop(groups[i]));
    return ZERO_OK;
}
