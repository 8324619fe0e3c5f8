/* part.h - files that are for training or for validation by their name.
 *
 *   nanoGPT   train.bin                 val.bin
 *   llm.c     X_train.bin               X_val.bin
 *             X_train_000001.bin        X_val_000000.bin */
#pragma once

#include "io/file_list.h"

/* If names say of at least one file that it is for training, and of another that it is for
 * validation, moves those for validation to the end, else changes nothing. Returns the
 * number of files for training. */
int64_t zero_part_files(zero_files *files);
