/* verify.h - a step of a file, computed again, and compared. Collective over the engine's
 * ranks, one verdict. */
#pragma once

#include <jansson.h>

#include "verify/states.h"

/* Computes the file's step with an engine for its model, whose states it sets, and tells
 * what was found, as zero verify --json prints it: the caller's. *is_right: all is equal or
 * within the tolerance. */
ZERO_NODISCARD zero_status zero_step_verify(zero_step_file *file, zero_engine *e,
                                            json_t **found, bool *is_right);
