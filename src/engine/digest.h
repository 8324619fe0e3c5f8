/* digest.h - one number for a model's whole state.
 *
 * XXH3-128 of every fp32 master parameter and both moments in canonical order: tensors by
 * name, of each the parameter, the momentum, the variance, in blocks of 2^16 elements by
 * index. The digest is the hash of the list of block hashes (in their canonical big-endian
 * form), so each block is hashed by a rank that holds it; a block that lies on several ranks
 * is put together first. Padding is left out: equal states have equal digests whatever stage,
 * rank count or bucket wrote them. */
#pragma once

#include "comm/comm.h"
#include "nn/model.h"
#include "sharding/partition.h"

#define ZERO_DIGEST_BLOCK 65536 /* elements */

/* The state of a group as far as this rank holds it: elements [range.begin, range.end). */
typedef struct {
    const float *master, *momentum, *variance;
    zero_range range;
} zero_group_view;

/* Writes 32 hexadecimal digits and a zero. partitions[g] says which pieces ranks answer for:
 * each rank's view holds at least its own. Collective, one verdict: ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_digest(const zero_model *model, zero_comm *comm,
                                       const zero_partition *const *partitions,
                                       const zero_group_view *groups, char hex[33]);
