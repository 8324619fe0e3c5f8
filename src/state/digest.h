/* digest.h - one number for a model's whole state.
 *
 * XXH3-128 of every fp32 master parameter and the optimizer's states in canonical order:
 * tensors by name; for each its parameter and its states; in blocks of 2^16 elements.
 * The digest is the hash of the list of block hashes, in their canonical big-endian form,
 * so that each block is hashed by a rank that holds it. Padding is left out: equal states
 * have equal digests whatever stage, rank count or bucket wrote them.
 *
 * Each rank reads its part of a tensor once, all arrays together, in pieces of any
 * length. A block that lies on one rank is hashed as its pieces arrive. Of a block that
 * lies on several, each rank keeps its elements (at most two such blocks per tensor), and
 * they are put together afterwards.
 *
 * Of a model that a TP group shares, whole tensors are hashed, so that equal states have
 * equal digests on any number of ranks in any groups: some blocks at a time are cleared on
 * all ranks, each rank puts its elements in, and a bitwise or merges them. Replicated
 * tensors come from the first rank of each TP group. This moves all numbers of each
 * parameter through every rank.
 *
 * With hybrid sharding the ranks of replica 0 hash what they hold, and other replicas hash
 * nothing. An engine compares the replicas first, so that a digest hides no difference
 * (replicas.h). */
#pragma once

#include "io/checksum.h"
#include "state/visit.h"

#define ZERO_DIGEST_BLOCK 65536 /* elements */

/* Reads this rank's states, as zero_states_visit() does. */
typedef struct {
    zero_status (*read)(void *arg, int group, zero_range range, zero_state_visitor *visit,
                        void *visit_arg);
    void *arg;
    int optimizer; /* says which states there are; set by zero_states_digest_begin() */
    /* The number of the first rank (of a shared model TP group) that has pieces of the
     * group; NULL: 0. */
    int (*first)(void *arg, int group);
} zero_digest_source;

/* In three parts, so that a thread can do the second while the ranks do other work:
 *
 *     begin   blocks of which several ranks have a part; of a shared model all blocks
 *     hash    blocks that this rank has as a whole; until it ends states must not change
 *     end     puts the hashes together
 *
 * `model` is this rank's part, if it is shared. partitions[g] has n_ranks pieces, which the
 * first n_ranks ranks of a ZeRO group, from source->first on, hash; each of them can read
 * its own. Model and source->arg are borrowed until the end. Begin and end are collective
 * over all ranks, in all groups, with one verdict: ZERO_ERR_NOMEM, or from the end the
 * source's status. */
typedef struct zero_digest_work zero_digest_work;
zero_status zero_digest_begin(const zero_model *model, zero_comm *comm,
                              const zero_partition *const *partitions,
                              const zero_digest_source *source, zero_digest_work **work);
void zero_digest_hash(zero_digest_work *work); /* local; any thread */
/* Writes 32 hexadecimal digits and a zero, and frees the work. */
zero_status zero_digest_end(zero_digest_work *work, char hex[ZERO_CHECKSUM]);
void zero_digest_free(zero_digest_work *work); /* of one that does not end; accepts NULL */
