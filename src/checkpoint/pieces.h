/* pieces.h - elements of whole tensors, from whatever shards have them.
 *
 *     whole tensor    | row 0: p = 0 | p = 1 | row 1: p = 0 | p = 1 | ...      columns that are cut
 *     extents         shard d * 2:     | row 0 | row 1 | ...                   read and checked once,
 *                     shard d * 2 + 1: | row 0 | row 1 | ...                   kept for the next rows
 *
 * Some shards stay open, and the extents read last are kept: two for each rank of a TP group and each
 * part of the state, together 24 MiB at most. A reader that goes through a tensor in
 * its order, all three parts in turn, reads each extent once. Nothing here is collective. */
#pragma once

#include "checkpoint/shard_read.h"

typedef struct {
    int rank; /* of its shard */
    zero_extent extent;
    int64_t used;
    float *values; /* [zero_extent_most()] owned; NULL until it is needed */
} zero_kept_extent;

/* Zeroed: nothing is open. */
typedef struct {
    const zero_storage_dir *dir;   /* borrowed, like the manifest */
    const zero_manifest *manifest; /* set before each call */
    int n_shards, n_extents;
    zero_shard_reader *shards; /* [n_shards] owned, like all below */
    zero_kept_extent *extents; /* [n_extents] */
    zero_state_local *locals;  /* [tp] zeroed until they are needed */
    int64_t clock;
} zero_pieces;

void zero_pieces_close(zero_pieces *pieces); /* accepts a zeroed one */

/* The open shard of a rank, valid until the next call. As zero_shard_open(). */
ZERO_NODISCARD zero_status zero_pieces_shard(zero_pieces *pieces, int rank,
                                             const zero_shard_reader **shard);

/* The tensors' parts of one p, valid until pieces are closed. ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_pieces_local(zero_pieces *pieces, int p,
                                             const zero_state_local **local);

/* values[end - begin] = elements [begin, end) of a whole tensor, given by its number. The status of
 * opening or reading a shard, or ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_pieces_read(zero_pieces *pieces, int tensor,
                                            zero_state_part part, int64_t begin,
                                            int64_t end, float *values);
