/* shard_read.h - one shard of a published checkpoint, read and checked.
 *
 * Its header must be the one that the manifest knows and list exactly the extents of the
 * layout; an extent is read as a whole and must have its checksum before any of it is used.
 * Errors are ZERO_ERR_IO and ZERO_ERR_FORMAT, and name file and tensor. */
#pragma once

#include "checkpoint/manifest.h"
#include "io/safetensors.h"

typedef struct {
    int rank; /* whose shard */
    zero_file file;
    zero_safetensors header;
    zero_extent *extents; /* [n] owned; one for each entry of the header */
    int n;
    int64_t used; /* for the reader of several: when it was used last */
} zero_shard_reader;

/* `local` is the part of the tensors that the rank has. */
ZERO_NODISCARD zero_status zero_shard_open(const zero_storage_dir *dir,
                                           const zero_manifest *manifest,
                                           const zero_state_local *local, int rank,
                                           zero_shard_reader *shard);
void zero_shard_close(zero_shard_reader *shard); /* accepts a zeroed one */

/* The number of the extent that holds an element of a tensor's part, which the shard
 * has. */
int zero_shard_find(const zero_shard_reader *shard, int tensor, zero_state_part part,
                    int64_t element);

/* values[zero_extent_most()]: all of extent i. */
ZERO_NODISCARD zero_status zero_shard_read(const zero_shard_reader *shard, int i,
                                           float *values);
