/* save.h - a checkpoint of a running engine.
 *
 *     rank 0                      every rank
 *     makes .tmp-step-X
 *                                 writes, syncs and closes its shard
 *     writes and syncs the manifest
 *     syncs .tmp-step-X, renames it to step-X, syncs the directory
 *
 * with a verdict of all ranks between the lines. Shards are written straight from the
 * optimizer's memory: each rank writes what it owns of every group, in any stage. A failed
 * save leaves nothing behind, and training may continue. */
#pragma once

#include "checkpoint/manifest.h"
#include "data/tokenizer.h"
#include "engine/engine.h"
#include "io/storage.h"

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

/* Writes and publishes `dir`/step-X. After ZERO_OK the checkpoint survives any crash and,
 * on a file system that honours fsync, a loss of power. Collective over the engine's ranks,
 * each with the same directory open; one verdict: ZERO_ERR_ENV, naming the file or the
 * missing bytes, if it cannot be written, and ZERO_ERR_INVALID if this step exists. *bytes
 * is the length of all files. */
ZERO_NODISCARD zero_status zero_checkpoint_save(zero_engine *e, const zero_storage_dir *dir,
                                                const zero_checkpoint_input *in,
                                                uint64_t *bytes);

/* About how many bytes that takes, to check free space before training. */
uint64_t zero_checkpoint_bytes(const zero_model *model);
