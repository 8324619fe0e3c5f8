/* walker_stream.h - transfers of a rank on its walk, and the stream of optimizer states, which runs
 * ahead of it (engine/run_offload.c). */
#pragma once

#include "simulation/walker.h"

void zero_walker_begin_transfer(zero_walkers *w, int rank, const zero_action *a);
bool zero_walker_transfer_is_over(const zero_walkers *w, int rank, const zero_action *a);

/* Executes actions of the stream before the walk comes to them, in their order, as far as that
 * needs no waiting. */
void zero_walker_run_ahead(zero_walkers *w, int rank);
