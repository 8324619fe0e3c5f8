/* run_setup.h - opening and closing a runner: memory, tables, collectives. */
#pragma once

#include "state/runner.h"

/* The windows for the schedule's shared spaces: of the shard group, and of the TP group if there is
 * one; zeroed if nothing is shared. Collective over `comm`, one verdict: the status of
 * zero_window_init(). After a failure the caller destroys both. */
ZERO_NODISCARD zero_status zero_runner_share(const zero_schedule *schedule, zero_comm *comm,
                                             zero_window *window, zero_window *tp_window);

/* Where a runner computes and keeps its file. */
typedef struct {
    const zero_backend *backend;
    int device;                            /* which one, if the backend has several */
    const char *directory;                 /* of the file; NULL: no file */
    const zero_window *window, *tp_window; /* borrowed until the runner is destroyed */
} zero_runner_place;

/* Takes all memory, and the file if the schedule has one. Collective over `comm`, one verdict:
 * ZERO_ERR_UNSUPPORTED, with the reason, if the plan has ipc and devices do not reach each other, or
 * device_messages and MPI does not reach the device; ZERO_ERR_NOMEM; ZERO_ERR_ENV if the backend cannot
 * compute with the plan's type; or the status of the backend's open() or of zero_tier_open(). */
ZERO_NODISCARD zero_status zero_runner_init(zero_runner *r, const zero_schedule *schedule,
                                            const zero_runner_place *place,
                                            zero_comm *comm);
void zero_runner_destroy(zero_runner *r); /* accepts a zeroed runner */
