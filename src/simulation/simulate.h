/* simulate.h - a training step of all ranks, simulated: no MPI, no payload.
 *
 * Each rank walks its program, the same array that a run executes. It computes for the time that
 * plan_time.h gives a unit, and communicates through the step lists of its collectives
 * (exchange.h), over links that ranks share. So it shows what the alpha-beta model cannot: ranks
 * that wait for a slow one, links that several groups use, polls that come late.
 *
 * Deterministic: the same input gives the same numbers, to the last bit. */
#pragma once

#include "simulation/simulated.h"

/* Simulates the job of which `s` is the schedule of rank 0: s->input.n_ranks times the TP group's
 * ranks. ZERO_ERR_NOMEM; ZERO_ERR_INVALID if it would take more messages or memory than allowed,
 * with both numbers and a remedy; ZERO_ERR_UNSUPPORTED for what cannot be simulated. */
ZERO_NODISCARD zero_status zero_simulate(const zero_schedule *s,
                                         const zero_simulate_input *input,
                                         zero_simulated *result);
