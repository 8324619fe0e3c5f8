/* plan_facts.h - a plan as one tree of facts, and the texts that show it.
 *
 * plan_facts.c puts every number into the tree once: `zero plan --json` prints that tree,
 * and forms/report.txt says which of it a text shows. */
#pragma once

#include "report/plan_report.h"

/* A new tree: all of the report. Sizes are bytes. NULL without memory, as below. */
json_t *zero_plan_facts(const zero_plan_report *report);
/* What the plan is for: model, ranks, batch, options. */
json_t *zero_plan_setup_facts(const zero_plan_report *report);
/* The data of a step, by kind of exchange. */
json_t *zero_plan_communication_facts(const zero_schedule *s, const zero_plan_ledger *l);
/* A stage of a pipeline. */
json_t *zero_plan_pipe_facts(const zero_schedule *s);
/* A step of alpha-beta. */
json_t *zero_plan_time_facts(const zero_plan_report *report, const zero_plan_time *time);

/* One stage in full, with advice if it does not fit; or all side by side; in 100
 * columns. */
zero_status zero_plan_show(const zero_plan_report *report, FILE *out);
/* The memory of a plan that belongs to no report. `context`: bytes that a device's library
 * takes there. */
zero_status zero_plan_show_memory(const zero_schedule *schedule,
                                  const zero_plan_ledger *ledger, size_t context,
                                  FILE *out);

/* ---- chart.c ----
 *
 * The staircase of memory: bytes live at each instruction of a training step.
 *
 *     28.37 GiB|    oooooo.         ...
 *              | oooooooooooo
 *              |################   ################
 *              |################   ################
 *             0+-------^--------   ------^---------    ^ the peak
 *               fffffffbbbbbbbbu   ffffffbbbbbbbbuu    forward, backward, update
 *
 * Stages stand side by side on one scale, so that the steps between them are seen. */

#define ZERO_CHART_COLUMNS 80

/* All stages of the report in plain ASCII. A column shows the worst of its instructions.
 * Under each stage stand its peak, where it is, and what it consists of. */
zero_status zero_plan_show_chart(const zero_plan_report *report, FILE *out);

/* ---- models.c ----
 *
 * The models that --model knows. */

/* A table of every preset: shape, parameters, model states without ZeRO, and its source; at
 * most 100 columns. */
zero_status zero_models_show(FILE *out);

/* ---- plan_beside.c ----
 *
 * The step's programs of all stages side by side, an instruction per line.
 *
 *                              0 none        1 P_os        2 P_os+g      3 P_os+g+p
 *                         micro bytes  live   bytes  live   bytes  live   bytes  live
 *     GATHER      block 0                                                1.00K 2.02M
 *     BACKWARD    block 0     0 1.50K 2.10M   1.50K 2.10M   1.50K 2.10M  1.50K 2.10M*
 *     (freed)     block 0                                   1.50K        1.50K
 *
 * A stage has numbers where its program has the instruction, so that each line tells which
 * stages need it. */

/* In 80 columns, but where instructions have long names: up to 84. Then a legend.
 * ZERO_ERR_NOMEM. */
zero_status zero_plan_show_beside(const zero_plan_report *report, FILE *out);

/* ---- plan_machine.c ----
 *
 * What a machine file (--machine) gives a plan: whatever the user left
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

/* Fills in r->config and r->request.machine of a plan whose shape is known and whose layout
 * is not; nothing without a machine file. ZERO_ERR_INVALID if the machine lacks the type,
 * or has fewer devices than a node of --fake-nodes has ranks. */
zero_status zero_plan_machine_fill(zero_plan_report *report);

/* All machines of the program, a few lines each, for --machine help. */
zero_status zero_plan_machines_show(FILE *out);

/* ---- plan_nodes.c ----
 *
 * Few ranks of many threads beside many ranks of few, on the same cores.
 *
 *     cores of a node = ranks per node * threads of a rank        the same in every row
 *     sequences of a node, arithmetic and links of a node         likewise
 *
 * Each row is a plan of its own. Its numbers are sums over the ranks of node 0. */

#define ZERO_NODE_ROWS 8 /* that are asked for, at most */

/* Plans the report's one stage with ranks[n] ranks per node: *facts, a new tree, has them
 * after the report's own plan, "per_node". ZERO_ERR_INVALID if the nodes do not have
 * equally many ranks, if such a number does not divide the cores of a node, or with tensor
 * parallelism or a device, where threads do not stand for ranks. */
zero_status zero_plan_nodes_make(const zero_plan_report *report, int n, const int *ranks,
                                 json_t **facts);

/* ---- plan_peers.c ----
 *
 * Who sends how much to whom in a training step: a row per sender.
 *
 *             to    0      1      2   |  3          from 0   o # . .
 *     from 0   .    8 KiB  8 KiB  4 KiB                  1   # o . .   squares of more
 *
 * Numbers are the matrix of lists/peers.h, of the data of one step; small messages are left
 * out. */

/* *matrix[n][n] = bytes of a step by sender and receiver, over the ranks' own programs of
 * this stage; the caller frees it, also after a failure. ZERO_ERR_INVALID for more ranks
 * than are counted by peer. */
zero_status zero_plan_peers_make(const zero_plan_report *report, int stage,
                                 int64_t **matrix);

/* The matrix as facts. */
json_t *zero_plan_peers_json(const zero_plan_report *report, const zero_plan_stage *stage);
