/* checkpoint_list.h - a directory of checkpoints.
 *
 *     step-00000100/         published: complete
 *     .tmp-step-00000200/    being written, or left by a process that died
 *     .del-step-00000050/    being removed, likewise
 *     broken-step-00000150/  was published and did not verify; set aside by --resume-older
 *
 * There is no file that says which is the latest: it is the highest step that is published.
 * Nothing here is collective; one rank does it. */
#pragma once

#include "io/storage.h"

#define ZERO_CHECKPOINT_NAME 64

/* "step-00000100" */
void zero_checkpoint_name(int64_t step, char name[ZERO_CHECKPOINT_NAME]);
/* ".tmp-step-00000100" */
void zero_checkpoint_temporary_name(int64_t step, char name[ZERO_CHECKPOINT_NAME]);

/* Whether it is the name of a published one. */
bool zero_checkpoint_is_name(const char *name, int64_t *step);

/* The published steps, ascending; *steps is the caller's (free), NULL if there are none. */
ZERO_NODISCARD zero_status zero_checkpoint_list(const zero_storage_dir *dir,
                                                int64_t **steps, int *n);

/* Removes what dead processes have left: to be called with the directory's lock held. */
ZERO_NODISCARD zero_status zero_checkpoint_clean(const zero_storage_dir *dir);

/* Removes all published ones but the newest `keep` >= 1. */
ZERO_NODISCARD zero_status zero_checkpoint_prune(const zero_storage_dir *dir, int64_t keep);

/* Gives one that does not verify another name, under which nobody looks for it. */
ZERO_NODISCARD zero_status zero_checkpoint_set_aside(const zero_storage_dir *dir,
                                                     int64_t step);

/* What a user means by a path: a checkpoint, or the newest in a directory of them. Writes its
 * path, cut to `size` bytes. ZERO_ERR_IO if it is neither. */
ZERO_NODISCARD zero_status zero_checkpoint_find(const char *path, char *found, size_t size);
