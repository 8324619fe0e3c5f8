/* shard_write.h - this rank's shard of a checkpoint, written straight from where its states
 * are. Nothing here is collective. */
#pragma once

#include "checkpoint/manifest.h"
#include "io/safetensors.h"
#include "io/storage.h"

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
    zero_safetensors_entry *entries; /* [n] */
    char (*names)[ZERO_EXTENT_NAME]; /* [n] */
    char (*sums)[ZERO_CHECKSUM];     /* [n] */
    const char *(*texts)[2];         /* of "__metadata__" */
    float *
        room; /* [ZERO_STATES * ZERO_EXTENT_MAX] touched only if states are not in memory */
    zero_bytes header;
} zero_shard_writer;

/* Takes the checksums of this rank's state and makes the header. ZERO_ERR_NOMEM, or the
 * status of the source. */
ZERO_NODISCARD zero_status zero_shard_prepare(const zero_shard_source *source,
                                              const zero_manifest *manifest,
                                              zero_shard_writer *shard);
void zero_shard_forget(zero_shard_writer *shard); /* accepts a zeroed one */

/* Length and header's checksum, as the manifest has them. */
zero_manifest_file zero_shard_describe(const zero_shard_writer *shard);

/* Creates, writes, syncs and closes the file. */
ZERO_NODISCARD zero_status zero_shard_write(const zero_shard_writer *shard,
                                            const zero_storage_dir *dir);
