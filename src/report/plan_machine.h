/* plan_machine.h - what a machine file (--machine) gives a plan: whatever the user left
 * open.
 *
 *     nodes           enough for the ranks, one device each
 *     flops           products of the model's shape and micro batch (machine_file.h), in
 *                     --dtype
 *     network         on one node a device's link; on several its share of the node's link
 *     node network    on several nodes: a device's link inside
 *     memory          to hold the plan against: of a device, or with --device of
 *                     --device-memory
 *
 * Numbers that the user gave stay as they are. */
#pragma once

#include "report/plan_report.h"

/* Fills in r->config and r->request.machine of a plan whose shape is known and whose layout
 * is not; nothing without a machine file. ZERO_ERR_INVALID if the machine lacks the type,
 * or has fewer devices than a node of --fake-nodes has ranks. */
ZERO_NODISCARD zero_status zero_plan_machine_fill(zero_plan_report *report);

/* All machines of the program, a few lines each, for --machine help. */
ZERO_NODISCARD zero_status zero_plan_machines_show(FILE *out);
