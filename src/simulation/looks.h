/* looks.h - a rank looks at its parts: which steps can run, and what they do. */
#pragma once

#include "simulation/parts.h"

/* Runs the part's steps as far as they are ready, until one does arithmetic; ends the part after
 * the last one. Returns the seconds of arithmetic, after which the rank should look again. */
double zero_looks_advance(zero_exchanges *x, int32_t part);

/* Something that the part may wait for has ended: stirs the rank if the part could go on. */
void zero_looks_notice(zero_exchanges *x, int32_t part);
/* The READ that is its next step has ended. */
void zero_looks_has_read(zero_exchanges *x, int32_t part);
