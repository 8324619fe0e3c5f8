/* zero plan: what a run would take, from the program that it would run. */
#include "cli/plan_options.h"

#include "base/fail.h"
#include "cli/run_options.h"
#include "comm/launch.h"
#include "paper/paper.h"
#include "report/chart.h"
#include "report/json_put.h"
#include "report/models.h"
#include "report/plan_beside.h"
#include "report/plan_facts.h"
#include "report/plan_machine.h"
#include "report/plan_nodes.h"
#include "report/plan_peers.h"
#include "report/plan_pipeline.h"
#include "report/plan_program.h"

static zero_status show(const zero_plan_report *r, const zero_plan_options *options)
{
    zero_plan_nodes nodes;
    const zero_plan_request *asked = &r->request;
    if (options->n_per_node > 0) {
        ZERO_TRY(
            zero_plan_nodes_make(r, options->n_per_node, options->ranks_per_node, &nodes));
        return zero_plan_show_nodes(r, &nodes, options->json, stdout);
    }
    if (options->json) return zero_json_print(zero_plan_facts(r), JSON_INDENT(2), stdout);
    if (asked->ablation) return zero_plan_show(r, stdout);
    if (asked->pipeline > 0) return zero_plan_show_pipelines(r, stdout);
    if (asked->peers) return zero_plan_show_peers(r, stdout);
    if (options->chart || asked->show_schedule) {
        /* A step's memory, its instructions, or both. */
        if (options->chart) ZERO_TRY(zero_plan_show_chart(r, stdout));
        if (!r->request.show_schedule) return ZERO_OK;
        if (options->chart) fputc('\n', stdout);
        return r->n > 1 ? zero_plan_show_beside(r, stdout)
                        : zero_plan_show_programs(r, stdout);
    }
    return zero_plan_show(r, stdout);
}

static zero_status plan(const zero_plan_options *options, const zero_options *given)
{
    zero_plan_report report;
    const zero_plan_request *request = &options->request;
    ZERO_TRY(zero_plan_report_make(&report, request));
    if (!request->all_stages && zero_launch_rank_hint() == 0)
        zero_run_options_note(given, &report.config, report.collectives, 0);
    zero_status st = show(&report, options);
    zero_plan_report_destroy(&report);
    return st;
}

static zero_status run(void *options, const zero_options *given)
{
    const zero_plan_options *o = options;
    /* Tables for which nothing is planned. */
    if (o->paper) return zero_paper_show(o->paper, o->json, stdout);
    if (o->machines) return zero_plan_machines_show(stdout);
    if (!o->models) return plan(o, given);
    zero_models_show(stdout);
    return ZERO_OK;
}

const zero_command zero_command_plan = {
#include "cli/options/plan.command"
    .tables = zero_plan_tables,
    .n_tables = ZERO_PLAN_TABLES,
    .size = sizeof(zero_plan_options),
    .check = zero_plan_options_check,
    .run = run,
};
