/* plan_nodes.h - few ranks of many threads beside many ranks of few, on the same cores.
 *
 *     cores of a node = ranks per node * threads of a rank        the same in every row
 *     sequences of a node, arithmetic and links of a node         likewise
 *
 * Each row is a plan of its own. Its numbers are sums over the ranks of node 0. */
#pragma once

#include <stdio.h>

#include "report/plan_report.h"

#define ZERO_NODE_ROWS 8

/* The plan with this many ranks on each node. */
typedef struct {
    int ranks;   /* per node */
    int threads; /* per rank */
    int64_t micro_batch;
    bool is_possible;
    char why_not[256];
    /* Sums over the ranks of node 0; data of a step, without small messages. */
    int64_t needed;           /* bytes of memory */
    int64_t across, messages; /* bytes and messages sent to other nodes */
    int64_t inside;      /* bytes sent within the node, or read there through a window */
    zero_plan_time time; /* of rank 0, if the report has times */
} zero_node_row;

typedef struct {
    int n;
    int cores;                              /* of a node */
    zero_node_row rows[ZERO_NODE_ROWS + 1]; /* the first is the report's own plan */
} zero_plan_nodes;

/* Plans the report's one stage with ranks[n] ranks per node. ZERO_ERR_INVALID if the nodes
 * do not have equally many ranks, if such a number does not divide the cores of a node, or
 * with tensor parallelism or a device, where threads do not stand for ranks. */
ZERO_NODISCARD zero_status zero_plan_nodes_make(const zero_plan_report *report, int n,
                                                const int *ranks, zero_plan_nodes *nodes);

ZERO_NODISCARD zero_status zero_plan_show_nodes(const zero_plan_report *report,
                                                const zero_plan_nodes *nodes, bool json,
                                                FILE *out);
