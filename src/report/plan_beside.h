/* plan_beside.h - the step's programs of all stages side by side, an instruction per line.
 *
 *                              0 none        1 P_os        2 P_os+g      3 P_os+g+p
 *                         micro bytes  live   bytes  live   bytes  live   bytes  live
 *     GATHER      block 0                                                1.00K 2.02M
 *     BACKWARD    block 0     0 1.50K 2.10M   1.50K 2.10M   1.50K 2.10M  1.50K 2.10M*
 *     (freed)     block 0                                   1.50K        1.50K
 *
 * A stage has numbers where its program has the instruction, so that each line tells which
 * stages need it. */
#pragma once

#include "report/plan_report.h"

/* In 80 columns, but where instructions have long names: up to 84. Then a legend.
 * ZERO_ERR_NOMEM. */
ZERO_NODISCARD zero_status zero_plan_show_beside(const zero_plan_report *report, FILE *out);
