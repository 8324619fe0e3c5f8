/* run_setup.h - opening and closing a runner: memory, tables, collectives. */
#pragma once

#include "engine/runner.h"

/* The window for the schedule's shared spaces. Collective over `comm`, one verdict: the status of
 * zero_window_init(). */
ZERO_NODISCARD zero_status zero_runner_share(const zero_schedule *schedule, zero_comm *comm,
                                             zero_window *window);

/* Where a runner computes and keeps its file. */
typedef struct {
    const zero_backend *backend;
    int device;            /* which one, if the backend has several */
    const char *directory; /* of the file; NULL: no file */
} zero_runner_place;

/* Takes all memory, and the file if the schedule has one. Collective over `comm`, one verdict:
 * ZERO_ERR_NOMEM, ZERO_ERR_ENV if the backend cannot compute with the plan's type, or the
 * status of the backend's open() or of zero_tier_open(). */
ZERO_NODISCARD zero_status zero_runner_init(zero_runner *r, const zero_schedule *schedule,
                                            const zero_runner_place *place, zero_comm *comm,
                                            const zero_window *window);
void zero_runner_destroy(zero_runner *r); /* accepts a zeroed runner */
