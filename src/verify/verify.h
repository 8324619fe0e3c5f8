/* verify.h - a step of a file, computed again, and compared. Collective over the engine's
 * ranks, one verdict. */
#pragma once

#include "verify/states.h"

/* Bytes of a rank besides those of the engine's plan, if bits of a file differ: two
 * gradients of what it owns. */
int64_t zero_step_judge_bytes(const zero_engine *e);

/* Computes the file's step with an engine for its model, whose states it sets, and tells
 * what was found, as zero verify --json prints it: the caller's. *is_right: all is equal or
 * within the tolerance. */
zero_status zero_step_verify(zero_step_file *file, zero_engine *e, json_t **found,
                             bool *is_right);

/* ZERO_ERR_DIFFERENT, naming what differs, unless both are of one model. */
zero_status zero_step_same_model(const zero_step_file *a, const zero_step_file *b);
/* Two files of one model, number by number: if bits differ, the engine computes both
 * steps, and the distances of results from what was computed are compared. The engine has
 * room for the samples of either. Told as zero compare --json
 * prints it: the caller's. *is_same: all is equal or within the tolerance. */
zero_status zero_step_compare(zero_step_file *a, zero_step_file *b, zero_engine *e,
                              json_t **found, bool *is_same);
