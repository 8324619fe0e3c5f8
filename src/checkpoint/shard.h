/* shard.h - one shard of a checkpoint: this rank's, written straight from where its states
 * are, and one of a published checkpoint, read and checked. Nothing here is collective. */
#pragma once

#include "checkpoint/manifest.h"
#include "io/safetensors.h"

/* ---- writing ----
 *
 *     prepare   memory, lengths
 *     write     |        | extents ............|  any thread: states are read here alone
 *     finish    | header |                        digest and checksums are known
 */

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
    char (*sums)[ZERO_CHECKSUM]; /* [n] of the extents; zeros until they are written */
    atomic_int written;          /* extents so far; n after a failure, too */
    float *room; /* [ZERO_STATES_ROOM] touched only if states are not in memory */
    zero_bytes header;
    zero_manifest_file file;  /* as the manifest has it; the checksum once it is finished */
    zero_storage_file output; /* while it is written */
} zero_shard_writer;

/* Without looking at states. ZERO_ERR_NOMEM. */
zero_status zero_shard_prepare(const zero_shard_source *source,
                               const zero_manifest *manifest, zero_shard_writer *shard);
void zero_shard_forget(zero_shard_writer *shard); /* accepts a zeroed one */

/* Creates the file and writes and syncs all but its header. The status of the source. */
zero_status zero_shard_write(zero_shard_writer *shard, const zero_storage_dir *dir);
/* True once no state of the group will be read any more. Any thread. */
bool zero_shard_has_read(const zero_shard_writer *shard, int group);

/* Writes the header, syncs and closes. */
zero_status zero_shard_finish(zero_shard_writer *shard);

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
zero_status zero_shard_open(const zero_storage_dir *dir, const zero_manifest *manifest,
                            const zero_state_local *local, int rank,
                            zero_shard_reader *shard);
void zero_shard_close(zero_shard_reader *shard); /* accepts a zeroed one */

/* The number of the extent that holds an element of a tensor's part, which the shard
 * has. */
int zero_shard_find(const zero_shard_reader *shard, int tensor, zero_state_part part,
                    int64_t element);

/* values[zero_extent_most()]: all of extent i. */
zero_status zero_shard_read(const zero_shard_reader *shard, int i, float *values);
