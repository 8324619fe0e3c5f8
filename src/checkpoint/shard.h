/* shard.h - one shard of a checkpoint: this rank's, written straight from where its states
 * are, and one of a published checkpoint, read and checked. Nothing here is collective. */
#pragma once

#include "checkpoint/manifest.h"
#include "io/safetensors.h"
#include "io/storage.h"

/* ---- writing ---- */

/* The states of a rank of the job. */
typedef struct {
    int rank; /* the number of its shard (save.c) */
    /* as zero_states_view() */
    zero_status (*view)(void *arg, int group, zero_range range, float *room,
                        zero_state_block *view);
    void *arg;
} zero_shard_source;

typedef struct {
    zero_shard_source source;
    const zero_manifest *manifest; /* borrowed; step, digest and table are read */
    zero_state_local local;        /* owned, like all below */
    zero_extent *extents;          /* [n] */
    int n;
    /* [ZERO_STATES * ZERO_EXTENT_MAX] touched only if states are not in memory */
    float *room;
    zero_bytes header;
    zero_manifest_file file; /* as the manifest has it */
} zero_shard_writer;

/* Takes the checksums of this rank's state and makes the header. ZERO_ERR_NOMEM, or the
 * status of the source. */
ZERO_NODISCARD zero_status zero_shard_prepare(const zero_shard_source *source,
                                              const zero_manifest *manifest,
                                              zero_shard_writer *shard);
void zero_shard_forget(zero_shard_writer *shard); /* accepts a zeroed one */

/* Creates, writes, syncs and closes the file. */
ZERO_NODISCARD zero_status zero_shard_write(const zero_shard_writer *shard,
                                            const zero_storage_dir *dir);

/* ---- reading ----
 *
 * Its header must be the one that the manifest knows and list exactly the extents of the
 * layout; an extent is read as a whole and must have its checksum before any of it is used.
 * Errors are ZERO_ERR_IO and ZERO_ERR_FORMAT, and name file and tensor. */

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
