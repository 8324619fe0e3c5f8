/* run_setup.h - opening and closing a runner: memory, tables, collectives. */
#pragma once

#include "engine/runner.h"

/* The window for the schedule's shared spaces. Collective over `comm`, one verdict: the status of
 * zero_window_init(). */
ZERO_NODISCARD zero_status zero_runner_share(const zero_schedule *schedule, zero_comm *comm,
                                             zero_window *window);

/* Takes all memory, and the file if the schedule has one. Collective over `comm`, one verdict:
 * ZERO_ERR_NOMEM, or the status of zero_tier_open(). */
ZERO_NODISCARD zero_status zero_runner_init(zero_runner *r, const zero_schedule *schedule,
                                            const zero_backend *backend, zero_comm *comm,
                                            const zero_window *window,
                                            const char *directory);
void zero_runner_destroy(zero_runner *r); /* accepts a zeroed runner */
