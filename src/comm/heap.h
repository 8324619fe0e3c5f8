/* heap.h - memory of a group's ranks, all on one node, that neighbours read
 * (zero_comm_share()); and how they learn where an operation's data lie in it.
 *
 * Each rank takes and gives parts of its own as it likes, so the same data lie at different
 * places on different ranks, and on some perhaps elsewhere. Before an operation each rank
 * publishes where; when all have done so, all know whether they can read each other.
 *
 *     window    | heap of rank 0 | heap of rank 1 | ... | places of rank 0 | of rank 1 | ... */
#pragma once

#include "comm/group.h"

typedef enum { ZERO_PLACES_UNKNOWN, ZERO_PLACES_SHARED, ZERO_PLACES_ELSEWHERE } zero_places;

void zero_heap_free(struct zero_heap *heap); /* accepts NULL */

/* This rank's data[bytes] of the operation, which has this hash. Local. */
void zero_heap_publish(zero_comm *comm, int64_t sequence, uint64_t hash, const void *data,
                       size_t bytes);

/* Unknown until all ranks have published the same operation. SHARED: given[size] is where
 * their data lie. Local. */
zero_places zero_heap_find(const zero_comm *comm, int64_t sequence, uint64_t hash,
                           const char **given);
