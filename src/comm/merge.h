/* merge.h - the spans of all ranks become one, in the order of ranks, by messages of our
 * own.
 *
 * MPI could do it with an operation of the user on a type of the user. Not every MPI gets
 * that right: SimGrid's nonblocking all-reduce then leaves each rank its own values,
 * without an error. So ranks exchange spans in pairs whose distance doubles; small.h counts
 * these messages. */
#pragma once

#include "comm/operation.h"

/* spans[i] = the ranks' spans of index i, merged, in place, for i < n; the same on all
 * ranks. Collective; `what` is the operation as errors name it. Where spans do not adjoin,
 * zero_merge_check() finds it. */
zero_status zero_merge(zero_comm *comm, const zero_operation *what, int n,
                       zero_tree_span *spans);

/* ZERO_ERR_INVALID, with the same text on all ranks, if merged spans did not adjoin.
 * Local. */
zero_status zero_merge_check(int n, const zero_tree_span *spans);
