/* digest.h - one number for a model's whole state.
 *
 * XXH3-128 of every fp32 master parameter and both moments in canonical order: tensors by name;
 * for each its parameter, momentum and variance; in blocks of 2^16 elements by index. The digest
 * is the hash of the list of block hashes, in their canonical big-endian form, so that each block
 * is hashed by a rank that holds it. A block that lies on several ranks is assembled first.
 * Padding is left out: equal states have equal digests whatever stage, rank count or bucket
 * wrote them. */
#pragma once

#include "comm/comm.h"
#include "nn/model.h"
#include "sharding/partition.h"

#define ZERO_DIGEST_BLOCK 65536 /* elements */

/* The part of a group's state that this rank holds: elements [range.begin, range.end). */
typedef struct {
    const float *master, *momentum, *variance;
    zero_range range;
} zero_group_view;

/* Writes 32 hexadecimal digits and a zero. partitions[g] says which pieces ranks hash; each
 * rank's view holds at least its piece. Collective, one verdict: ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_digest(const zero_model *model, zero_comm *comm,
                                       const zero_partition *const *partitions,
                                       const zero_group_view *groups, char hex[33]);
