/* sweep_model.h - what models of time say about a point of a study that is measured.
 *
 * The job is the one that ran: shape, collectives and nodes are those of its metrics,
 * whatever its options left open. */
#pragma once

#include "cli/sweep_options.h"
#include "pages/study.h"

/* The alpha-beta time, and the simulated one, as far as the options ask for them. A time
 * that a model refuses stays unknown, with a warning on stderr: it must not cost a
 * measurement. */
void zero_sweep_model_point(const zero_sweep_options *options, json_t *point);
