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
/* A program, an object for each instruction. */
json_t *zero_plan_program_facts(const zero_schedule *s, zero_program_kind kind,
                                bool of_pipeline);
/* A step of alpha-beta. */
json_t *zero_plan_time_facts(const zero_plan_report *report, const zero_plan_time *time);

/* One stage in full, with advice if it does not fit; or all side by side; in 100
 * columns. */
ZERO_NODISCARD zero_status zero_plan_show(const zero_plan_report *report, FILE *out);
/* The memory of a plan that belongs to no report. `context`: bytes that a device's library
 * takes there. */
ZERO_NODISCARD zero_status zero_plan_show_memory(const zero_schedule *schedule,
                                                 const zero_plan_ledger *ledger,
                                                 size_t context, FILE *out);
