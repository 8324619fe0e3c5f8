/* load.h - a checkpoint into an engine, whatever layout wrote it.
 *
 * Each rank reads what its layout holds. Together they read everything, so any damage is
 * found by some rank, and all refuse. Collective over the ranks, one verdict. */
#pragma once

#include "checkpoint/read.h"
#include "engine/engine.h"

/* Opens the checkpoint `path` on all ranks: rank 0 reads the manifest and broadcasts
 * it. Fails as zero_checkpoint_open(). */
zero_status zero_checkpoint_open_all(zero_comm *comm, const char *path, zero_checkpoint *c);

/* A user's path (list.h), and what is done with the checkpoint that is found there.
 * Collective. */
typedef struct {
    const char *path;
    zero_status (*use)(void *arg, zero_checkpoint *c, const char *found);
    void *arg;
} zero_checkpoint_user;

/* Finds the checkpoint, opens it and calls use(). If a run removes it before it is read,
 * the newest one is used in its place. After ZERO_OK it stays open. */
zero_status zero_checkpoint_use(zero_comm *comm, const zero_checkpoint_user *user,
                                zero_checkpoint *c);

/* Loads masters and moments, Adam's count and skipped steps, and the loss scale if the
 * types are equal, into an engine that trains. The digest of the loaded state must be the
 * manifest's. ZERO_ERR_INVALID, naming the first tensor that differs, if the checkpoint is
 * of another model. After ZERO_ERR_IO or ZERO_ERR_FORMAT the engine's state is undefined
 * until one is loaded. */
zero_status zero_checkpoint_load(zero_engine *e, zero_checkpoint *c);
