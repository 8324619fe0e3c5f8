/* list.h - the names in a directory of checkpoints.
 *
 *     step-00000100/         published: complete
 *     .tmp-step-00000200/    being written, or left by a crash
 *     .del-step-00000050/    being removed, or left by a crash
 *     .tmp-step-00000200-2/  the same, beside one that cannot be removed
 *     broken-step-00000150/  failed verification; set aside by --resume-older
 *     .lock                  host and process id of the run that writes here
 *
 * The latest checkpoint is the highest published step; no file says so. Nothing here is
 * collective; rank 0 calls it. */
#pragma once

#include "base/listener.h"
#include "io/storage.h"

#define ZERO_CHECKPOINT_NAME 64

/* "step-00000100" */
void zero_checkpoint_name(int64_t step, char name[ZERO_CHECKPOINT_NAME]);
/* ".tmp-step-00000100", whose leftover is removed or, if that is not possible, the next
 * such name that is free. The caller holds the directory's lock. */
zero_status zero_checkpoint_temporary_name(const zero_storage_dir *dir, int64_t step,
                                           char name[ZERO_CHECKPOINT_NAME]);

/* True for the name of a published checkpoint; sets *step. */
bool zero_checkpoint_is_name(const char *name, int64_t *step);

/* The published steps, ascending; *steps is the caller's (free), or NULL if *n is 0. */
zero_status zero_checkpoint_list(const zero_storage_dir *dir, int64_t **steps, int *n);

/* Removes leftovers of crashed runs. One that cannot be removed stays: the listener is
 * told, and the others are removed. The caller holds the directory's lock. ZERO_ERR_IO if
 * the directory cannot be listed. */
zero_status zero_checkpoint_clean(const zero_storage_dir *dir,
                                  const zero_listener *listener);

/* Step `saved` was just published: of it and of earlier ones, removes all but the newest
 * `keep` >= 1. Later ones are not this run's and stay. One that cannot be removed stays,
 * and the others are removed. The listener is told of those above step *stuck, which
 * becomes the highest of them: begin with -1. ZERO_ERR_IO if the directory cannot be
 * listed. */
zero_status zero_checkpoint_prune(const zero_storage_dir *dir, int64_t saved, int64_t keep,
                                  int64_t *stuck, const zero_listener *listener);

/* Renames a checkpoint that fails verification so that --resume skips it. */
zero_status zero_checkpoint_set_aside(const zero_storage_dir *dir, int64_t step);

/* A user's path stands for a checkpoint, or for the newest in a directory of them. Writes
 * its path, cut to `size` bytes. ZERO_ERR_IO if it is neither. */
zero_status zero_checkpoint_find(const char *path, char *found, size_t size);

/* True if `found`, unless it is empty, was one of several and is not there any more: a run
 * has removed it since, and there is a newer one to find. */
bool zero_checkpoint_is_removed(const char *path, const char *found);
