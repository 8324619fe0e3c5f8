/* run.h - the interpreter that executes a schedule.
 *
 * It walks a program's array and does what each instruction says; it knows neither layers nor
 * stages. While the backend computes, it calls back between tiles, and collectives in flight
 * progress (MPI does not progress them by itself). */
#pragma once

#include "engine/walk.h"
#include "state/runner.h"

/* Walks one program. Collective over the runner's ranks. */
ZERO_NODISCARD zero_status zero_runner_run(zero_runner *r, const zero_run_input *input,
                                           zero_run_output *output);
