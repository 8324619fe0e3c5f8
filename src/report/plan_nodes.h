/* plan_nodes.h - few ranks of many threads beside many ranks of few, on the same cores.
 *
 *     cores of a node = ranks per node * threads of a rank        the same in every row
 *     sequences of a node, arithmetic and links of a node         likewise
 *
 * Each row is a plan of its own. Its numbers are sums over the ranks of node 0. */
#pragma once

#include "report/plan_report.h"

#define ZERO_NODE_ROWS 8 /* that are asked for, at most */

/* Plans the report's one stage with ranks[n] ranks per node: *facts, a new tree, has them
 * after the report's own plan, "per_node". ZERO_ERR_INVALID if the nodes do not have
 * equally many ranks, if such a number does not divide the cores of a node, or with tensor
 * parallelism or a device, where threads do not stand for ranks. */
ZERO_NODISCARD zero_status zero_plan_nodes_make(const zero_plan_report *report, int n,
                                                const int *ranks, json_t **facts);
