/* checkpoint_load.h - a checkpoint into an engine, whatever layout wrote it.
 *
 * Each rank reads what its own layout holds; together they read everything, so whatever does
 * not verify is found by one, and all refuse. Collective over the ranks, one verdict. */
#pragma once

#include "checkpoint/read.h"
#include "engine/engine.h"

/* Opens the checkpoint `path` on all ranks: rank 0 reads the manifest and tells it. Fails as
 * zero_checkpoint_open(). */
ZERO_NODISCARD zero_status zero_checkpoint_open_all(zero_comm *comm, const char *path,
                                                    zero_checkpoint *c);

/* Masters and moments, Adam's count, skipped steps and the loss scale, into an engine that
 * trains. The loss scale is that of the checkpoint if its type is. At the end
 * the digest of what was loaded must be the manifest's. ZERO_ERR_INVALID, naming the first
 * tensor that differs, if the checkpoint is of another model; ZERO_ERR_IO, ZERO_ERR_FORMAT as
 * in checkpoint_read.h, after which the engine's state is undefined until one is loaded. */
ZERO_NODISCARD zero_status zero_checkpoint_load(zero_engine *e, zero_checkpoint *c);
