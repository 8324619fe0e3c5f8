/* digest.h - one number for a model's whole state.
 *
 * XXH3-128 of every fp32 master parameter and both moments in canonical order: tensors by name;
 * for each its parameter, momentum and variance; in blocks of 2^16 elements by index. The digest
 * is the hash of the list of block hashes, in their canonical big-endian form, so that each block
 * is hashed by a rank that holds it. Padding is left out: equal states have equal digests whatever
 * stage, rank count or bucket wrote them.
 *
 * Each rank reads its part of a tensor once, all three arrays together, in pieces of any length. A
 * block that lies on one rank is hashed as its pieces arrive. Of a block that lies on several, each
 * rank keeps its elements (at most two such blocks per tensor), and they are put together
 * afterwards. */
#pragma once

#include "comm/comm.h"
#include "engine/visit.h"
#include "nn/model.h"
#include "sharding/partition.h"

#define ZERO_DIGEST_BLOCK 65536 /* elements */

/* Reads this rank's states, as zero_states_visit() does. */
typedef struct {
    zero_status (*read)(void *arg, int group, zero_range range, zero_state_visitor *visit,
                        void *visit_arg);
    void *arg;
} zero_digest_source;

/* Writes 32 hexadecimal digits and a zero. partitions[g] says which pieces ranks hash; each rank
 * can read its own. Collective, one verdict: ZERO_ERR_NOMEM, or the source's status. */
ZERO_NODISCARD zero_status zero_digest(const zero_model *model, zero_comm *comm,
                                       const zero_partition *const *partitions,
                                       const zero_digest_source *source, char hex[33]);
