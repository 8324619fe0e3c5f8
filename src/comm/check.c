#include "comm/check.h"

#include "base/fail.h"
#include "comm/compare.h"
#include "comm/control.h"

zero_status zero_check_start(zero_comm *comm)
{
    if (comm->size <= 1) return ZERO_OK;
    if (comm->check) return zero_fail(ZERO_ERR_INVALID, "the group checks already");
    struct zero_check *c;
    zero_status st = zero_agree(comm, zero_compare_make(comm->size, &c));
    if (st == ZERO_OK) st = zero_compare_start(comm, c);
    if (st != ZERO_OK) zero_compare_free(c);
    return st;
}

zero_status zero_check_stop(zero_comm *comm)
{
    if (!comm->check) return ZERO_OK;
    ZERO_TRY(zero_comm_finish(comm));
    return zero_compare_stop(comm);
}
