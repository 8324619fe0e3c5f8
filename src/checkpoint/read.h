/* read.h - a published checkpoint, read and checked.
 *
 * A reader asks for elements of a group, or of a tensor, whatever layout wrote them. Shards are
 * checked when they are opened (shard_read.h). Files may come from anywhere: whatever they hold, the result
 * is ZERO_OK, ZERO_ERR_IO or ZERO_ERR_FORMAT, naming file and tensor. Nothing here is
 * collective. */
#pragma once

#include "checkpoint/pieces.h"
#include "data/tokenizer.h"

typedef struct {
    zero_storage_dir dir;
    zero_manifest manifest;
    zero_bytes text;    /* the manifest's bytes */
    float *block;       /* [ZERO_STATES][ZERO_EXTENT_MAX] */
    zero_pieces pieces; /* shards that are open */
} zero_checkpoint;

/* Opens a directory such as step-00000100 and reads its manifest. */
ZERO_NODISCARD zero_status zero_checkpoint_open(const char *path, zero_checkpoint *c);
void zero_checkpoint_close(zero_checkpoint *c); /* accepts a zeroed one */

/* The same for ranks that get the manifest's bytes, text[len], from another rank. */
ZERO_NODISCARD zero_status zero_checkpoint_open_told(const char *path, const void *text,
                                                     size_t len, zero_checkpoint *c);

/* The elements of a group's flat space, and the parts of their states, that a reader wants. */
typedef struct {
    zero_range range;
    bool wants[ZERO_STATES];
} zero_checkpoint_wish;

/* Takes elements `range` of a group, all wanted parts together: parts[p] has range.begin first,
 * and is NULL if that part is not wanted. The arrays are valid until it returns. */
typedef struct {
    zero_status (*receive)(void *arg, int group, zero_range range,
                           const float *const parts[ZERO_STATES]);
    void *arg;
} zero_checkpoint_receiver;

/* Hands over all wished elements, wishes[n_groups], in ranges of at most ZERO_EXTENT_MAX, from all
 * shards that hold any of them. The groups are those of `model`, of which a rank has a part if it is
 * shared; its tensors, as a whole, are those of the checkpoint. The status of reading, or of the
 * receiver. */
ZERO_NODISCARD zero_status zero_checkpoint_fetch(zero_checkpoint *c,
                                                 const zero_model *model,
                                                 const zero_checkpoint_wish *wishes,
                                                 const zero_checkpoint_receiver *to);

/* Elements [begin, end) of one whole tensor, given by its number. Short ranges are cheap if they
 * ascend (pieces.h). */
ZERO_NODISCARD zero_status zero_checkpoint_tensor(zero_checkpoint *c, int tensor,
                                                  zero_state_part part, int64_t begin,
                                                  int64_t end, float *values);

/* The shard of a rank, also of one without elements: open, its header checked; valid until the next
 * call. */
ZERO_NODISCARD zero_status zero_checkpoint_shard(zero_checkpoint *c, int rank,
                                                 const zero_shard_reader **shard);

/* Reads every byte and compares every checksum. */
ZERO_NODISCARD zero_status zero_checkpoint_verify(zero_checkpoint *c);

/* The run's tokenizer; the caller destroys it. ZERO_ERR_INVALID if the checkpoint has none. */
ZERO_NODISCARD zero_status zero_checkpoint_tokenizer(zero_checkpoint *c,
                                                     zero_tokenizer *tokenizer);
