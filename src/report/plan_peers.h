/* plan_peers.h - who sends how much to whom in a training step: a row per sender.
 *
 *             to    0      1      2   |  3          from 0   o # . .
 *     from 0   .    8 KiB  8 KiB  4 KiB                  1   # o . .   squares of more
 *
 * Numbers are the matrix of lists/peers.h, of the data of one step; small messages are left
 * out. */
#pragma once

#include "report/plan_report.h"

/* *matrix[n][n] = bytes of a step by sender and receiver, over the ranks' own programs of
 * this stage; the caller frees it, also after a failure. ZERO_ERR_INVALID for more ranks
 * than are counted by peer. */
ZERO_NODISCARD zero_status zero_plan_peers_make(const zero_plan_report *report, int stage,
                                                int64_t **matrix);

/* The matrix as facts. */
json_t *zero_plan_peers_json(const zero_plan_report *report, const zero_plan_stage *stage);
