/* read.h - a published checkpoint, read and checked.
 *
 * A reader asks for elements of a group, or of a tensor, whatever layout wrote them. Shards
 * are checked when they are opened (shard.h). Files may come from anywhere: whatever
 * they hold, the result is ZERO_OK, ZERO_ERR_IO or ZERO_ERR_FORMAT, naming file and tensor.
 * Nothing here is collective.
 *
 *     whole tensor    | row 0: p = 0 | p = 1 | row 1: p = 0 | p = 1 | ...      columns that are cut
 *     extents         shard d * 2:     | row 0 | row 1 | ...                   read and checked once,
 *                     shard d * 2 + 1: | row 0 | row 1 | ...                   kept for the next rows
 *
 * Some shards stay open, and the extents of tensors read last are kept: two for each rank
 * of a TP group and each part of the state, together 24 MiB at most. A reader that goes
 * through a tensor in its order, all parts in turn, reads each extent once. */
#pragma once

#include "checkpoint/shard.h"
#include "data/tokenizer.h"

typedef struct {
    int rank; /* of its shard */
    zero_extent extent;
    int64_t used;
    float *values; /* [zero_extent_most()] owned; NULL until it is needed */
} zero_kept_extent;

typedef struct {
    zero_storage_dir dir;
    zero_manifest manifest;
    zero_bytes text; /* the manifest's bytes */
    float *block;    /* [ZERO_STATES][ZERO_EXTENT_MAX] */
    int n_shards, n_extents;
    zero_shard_reader *shards; /* [n_shards] that are open */
    zero_kept_extent *extents; /* [n_extents] */
    zero_state_local *locals;  /* [tp] zeroed until they are needed */
    int64_t clock;
} zero_checkpoint;

/* Opens a directory such as step-00000100 with its manifest, or with the bytes of it that
 * another rank has read. */
zero_status zero_checkpoint_open(const char *path, const zero_bytes *text,
                                 zero_checkpoint *c);
void zero_checkpoint_close(zero_checkpoint *c); /* accepts a zeroed one */

/* Takes elements of a group, states->range of its flat space. The arrays are valid until it
 * returns. */
typedef struct {
    zero_status (*receive)(void *arg, int group, const zero_state_block *states);
    void *arg;
} zero_checkpoint_receiver;

/* Hands over the elements wishes[g] of each group g, in ranges of at most ZERO_EXTENT_MAX,
 * from all shards that hold any of them. The groups are those of `model`, of which a rank
 * has a part if it is shared; its tensors, as a whole, are those of the checkpoint. The
 * status of reading, or of the receiver. */
zero_status zero_checkpoint_fetch(zero_checkpoint *c, const zero_model *model,
                                  const zero_range *wishes,
                                  const zero_checkpoint_receiver *to);

/* ---- pieces: all parts of the same elements in one shard ---- */

/* True if groups are fetched in pieces: no TP group shares the saved model or this one. */
bool zero_checkpoint_has_pieces(const zero_checkpoint *c, const zero_model *model);

typedef struct {
    int rank, extent; /* of the shard; the number of the first part's extent in it */
    int parts;
    int group;
    zero_range range;
} zero_piece;

typedef struct {
    zero_status (*visit)(void *arg, const zero_piece *piece);
    void *arg;
} zero_piece_visitor;

/* Calls visit() for the pieces of all shards that hold elements of wishes[n][n_groups], in
 * their order; among them are pieces that nobody wishes for. Reads no file. ZERO_ERR_NOMEM,
 * or the visitor's status. */
zero_status zero_checkpoint_visit_pieces(zero_checkpoint *c, int n,
                                         const zero_range *wishes,
                                         const zero_piece_visitor *visitor);
/* Reads and checks a piece: its parts lie in values[parts][length], one after the
 * other. */
zero_status zero_checkpoint_read_piece(zero_checkpoint *c, const zero_piece *piece,
                                       float *values);
/* It will be read soon: the disk may begin. */
zero_status zero_checkpoint_expect_piece(zero_checkpoint *c, const zero_piece *piece);
/* Hands over those elements of a piece that was read which are wished for, if any. */
zero_status zero_checkpoint_hand_over(const zero_piece *piece, float *values,
                                      const zero_range *wishes,
                                      const zero_checkpoint_receiver *to);
static inline bool zero_piece_is_wished(const zero_piece *piece, const zero_range *wishes)
{
    return !zero_range_is_empty(zero_range_overlap(piece->range, wishes[piece->group]));
}

/* Elements [begin, end) of one whole tensor, given by its number. Short ranges are cheap if
 * they ascend. */
zero_status zero_checkpoint_tensor(zero_checkpoint *c, int tensor, zero_state_part part,
                                   int64_t begin, int64_t end, float *values);

/* The shard of a rank, also of one without elements: open, its header checked; valid until
 * the next call. */
zero_status zero_checkpoint_shard(zero_checkpoint *c, int rank,
                                  const zero_shard_reader **shard);

/* Reads every byte and compares every checksum. */
zero_status zero_checkpoint_verify(zero_checkpoint *c);

/* The run's tokenizer; the caller destroys it. ZERO_ERR_INVALID if the checkpoint has
 * none. */
zero_status zero_checkpoint_tokenizer(zero_checkpoint *c, zero_tokenizer *tokenizer);
