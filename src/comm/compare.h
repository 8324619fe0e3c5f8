/* compare.h - the check at work: ranks tell each other what they begin.
 *
 * For the other files of comm/; check.h tells how it works, and starts and stops it. */
#pragma once

#include <stdbool.h>

#include "comm/group.h"
#include "comm/operation.h"
#include "zero/status.h"

/* Collective, blocks: ZERO_OK if all ranks begin `mine`. Does nothing where no check
 * runs. */
ZERO_NODISCARD zero_status zero_compare(zero_comm *comm, const zero_operation *mine);

/* ---- for check.c ---- */

/* True if operations of the group are compared in its parts: the whole of a family, and a
 * ZeRO group that is divided into shard groups and replica groups. Local. */
bool zero_compare_is_divided(const zero_comm *comm);

/* Local. *out may be half built after a failure. Release with _free. */
ZERO_NODISCARD zero_status zero_compare_make(int size, struct zero_check **out);
void zero_compare_free(struct zero_check *c); /* accepts NULL */

/* Collective. On success the group owns `c`, until it stops. */
ZERO_NODISCARD zero_status zero_compare_start(zero_comm *comm, struct zero_check *c);
ZERO_NODISCARD zero_status zero_compare_stop(zero_comm *comm);
