/* checkpoint_read.h - a published checkpoint, read and checked.
 *
 * Whatever layout wrote it, a reader asks for elements of a group. Shards are opened one at a
 * time; a header must be the one that the manifest knows and list exactly what the layout
 * says; an extent is read as a whole and must have its checksum, before any of it is used.
 * Files may come from anybody: ZERO_ERR_IO or ZERO_ERR_FORMAT, naming file and tensor, is all
 * that can happen. Nothing here is collective. */
#pragma once

#include "checkpoint/shard_read.h"
#include "data/tokenizer.h"

typedef struct {
    zero_storage_dir dir;
    zero_manifest manifest;
    zero_bytes text;         /* the manifest's bytes */
    float *block;            /* [ZERO_EXTENT_MAX] */
    zero_shard_reader shard; /* the one that is open */
} zero_checkpoint;

/* Opens a directory such as step-00000100 and reads its manifest. */
ZERO_NODISCARD zero_status zero_checkpoint_open(const char *path, zero_checkpoint *c);
void zero_checkpoint_close(zero_checkpoint *c); /* accepts a zeroed one */

/* The same for ranks that are told the manifest by another: text[len] is its bytes. */
ZERO_NODISCARD zero_status zero_checkpoint_open_told(const char *path, const void *text,
                                                     size_t len, zero_checkpoint *c);

/* Elements [range.begin, range.end) of a group's flat space; parts[p], NULL if not wanted, is
 * [range.end - range.begin]. */
typedef struct {
    zero_range range;
    float *parts[ZERO_STATES];
} zero_checkpoint_target;

/* Fills targets[n_groups], from all shards that hold something of them. */
ZERO_NODISCARD zero_status zero_checkpoint_fetch(zero_checkpoint *c,
                                                 const zero_checkpoint_target *targets);

/* Elements [begin, end) of one tensor, by its number. */
ZERO_NODISCARD zero_status zero_checkpoint_tensor(zero_checkpoint *c, int tensor,
                                                  zero_state_part part, int64_t begin,
                                                  int64_t end, float *values);

/* Whether the header of a shard is sound; of one that nobody needs anything of, too. */
ZERO_NODISCARD zero_status zero_checkpoint_look(zero_checkpoint *c, int rank);

/* Reads every byte and compares every checksum. */
ZERO_NODISCARD zero_status zero_checkpoint_verify(zero_checkpoint *c);

/* The tokenizer that the run was trained with; the caller destroys it. ZERO_ERR_INVALID if the
 * checkpoint has none. */
ZERO_NODISCARD zero_status zero_checkpoint_tokenizer(zero_checkpoint *c,
                                                     zero_tokenizer *tokenizer);
