/* save.h - a checkpoint of a running engine.
 *
 *             rank 0                      every rank
 *     begin   makes .tmp-step-X
 *                                         hashes its states and what others hold as well,
 *                                         writes and syncs its shard
 *     end                                 writes its shard's header, syncs and closes
 *             writes and syncs the manifest
 *             syncs .tmp-step-X, renames it to step-X, syncs the directory
 *
 * with a verdict of all ranks between the lines. Shards are written straight from the
 * optimizer's memory or file: each rank writes what it owns of every group, in any stage. A
 * thread can do that beside the next steps: states stand still until UPDATE, which waits
 * for the thread. A failed save leaves nothing behind, and training may continue. */
#pragma once

#include "checkpoint/manifest.h"
#include "data/tokenizer.h"
#include "engine/engine.h"

/* Facts that the engine does not know. Pointers are borrowed; NULL means unknown. */
typedef struct {
    int64_t step, samples;           /* zero_manifest's */
    const char *data;                /* checksum of the tokens */
    const char *arithmetic;          /* backend and BLAS, in words */
    const zero_shape *shape;         /* of a model of the library */
    const zero_tokenizer *tokenizer; /* of the data */
    json_t *options;                 /* of the run */
    json_t *kept;                    /* zero_hugging_face_keep()'s */
} zero_checkpoint_input;

typedef struct zero_checkpoint_write zero_checkpoint_write;

/* Begins to write `dir`/step-X, in a thread if it is `beside` and states are in the host's
 * reach, else before it returns. Until the end the engine may make steps and evaluate;
 * nothing else may change its states. dir, and of `in` the tokenizer, are borrowed.
 * Collective over the engine's ranks, each with the same directory open; one verdict:
 * ZERO_ERR_ENV, naming the file or the missing bytes, if it cannot be written, and
 * ZERO_ERR_INVALID if this step exists. */
zero_status zero_checkpoint_begin(zero_engine *e, const zero_storage_dir *dir,
                                  const zero_checkpoint_input *in, bool beside,
                                  zero_checkpoint_write **write);
/* True if the end would not wait for this rank's thread. Local. */
bool zero_checkpoint_has_ended(const zero_checkpoint_write *write);
/* Waits, publishes, and frees the write. After ZERO_OK the checkpoint survives any crash
 * and, on a file system that honours fsync, a loss of power. *bytes is the length of all
 * files. Collective, with the same verdicts. */
zero_status zero_checkpoint_end(zero_checkpoint_write *write, uint64_t *bytes);
/* Instead of the end, where ranks do not go on together: waits for the thread. Accepts
 * NULL. */
void zero_checkpoint_abandon(zero_checkpoint_write *write);

/* Begins and ends. */
zero_status zero_checkpoint_save(zero_engine *e, const zero_storage_dir *dir,
                                 const zero_checkpoint_input *in, uint64_t *bytes);

/* About how many bytes that takes, to check free space before training. */
uint64_t zero_checkpoint_bytes(const zero_model *model, int optimizer);
