/* deliver.h - bytes of each rank that rank 0 takes, one rank after the other. */
#pragma once

#include "comm/group.h"

#define ZERO_DELIVERED ((size_t)1 << 20) /* bytes of a message, at most */

/* Takes the bytes of `rank`, aligned as malloc aligns, valid until it returns. */
typedef zero_status zero_delivery(void *arg, int rank, const void *data, size_t bytes);

/* Collective over the group, a whole; blocks. On rank 0 `take` is called for each rank, in
 * their order, itself first; after its first failure no more. All ranks get that failure;
 * or ZERO_ERR_NOMEM if rank 0 cannot hold the bytes of the rank with most of them. */
zero_status zero_comm_deliver(zero_comm *comm, const void *data, size_t bytes,
                              zero_delivery *take, void *arg);
