/* together.h - the ranks of a node fetch a checkpoint together.
 *
 * Pieces that several ranks of a node want are read and checked by one of them, into memory
 * that the node shares; those that one rank wants are read by that rank. So each extent is
 * read once per node, in any stage and from any layout. Pieces that are wanted by several
 * make batches, each of one shard and of at most a slot:
 *
 *     batches    | 0 | 1 | 2 | 3 | 4 | 5 | ...    in the order of the files
 *     readers      rank 0    | rank 1    | ...    have equally many, to the next one
 *     round j      each reader has put its j-th batch into its slot j mod 2; all agree that
 *                  it is sound; each rank takes what it wants, then reads batch j + 1
 *
 * Where a node cannot share memory, each rank reads what it wants: so it does, too, if TP
 * groups share the model that is saved or the one that loads it. */
#pragma once

#include "checkpoint/read.h"

/* As zero_checkpoint_fetch(), by all ranks together. `mine` is the status of what this rank
 * has done before. Collective over `comm`, one verdict. */
zero_status zero_checkpoint_fetch_together(zero_comm *comm, zero_status mine,
                                           zero_checkpoint *c, const zero_model *model,
                                           const zero_range *wishes,
                                           const zero_checkpoint_receiver *to);
