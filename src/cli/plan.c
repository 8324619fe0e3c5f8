/* zero plan: what a run would take, from the program that it would run. */
#include "cli/best.h"

#include "base/quantity.h"
#include "cli/run_options.h"
#include "comm/launch.h"
#include "paper/paper.h"
#include "report/json_put.h"
#include "report/plan_program.h"

static const zero_option own[] = {
#include "cli/options/plan.rows"
};

static const zero_option_table tables[] = {
    {.rows = zero_job_rows, .base = offsetof(zero_plan_options, job)},
    {.rows = own},
    {.rows = zero_run_options,
     .base = offsetof(zero_plan_options, request.config),
     .in_file = true,
     .shown = ZERO_OPTION_PLANNED},
};

/* ---- values ---- */

static zero_status read_fit(zero_plan_options *o)
{
    zero_plan_request *r = &o->request;
    if (!o->fit) return ZERO_OK;
    r->fit_batch = zero_same_text(o->fit, "batch");
    if (r->fit_batch) {
        r->fit_memory = zero_config_has_device(&r->config) ? r->config.device_memory
                                                           : r->config.memory_limit;
        return ZERO_OK;
    }
    char memory[ZERO_LIST_PART];
    const char *disk = o->fit;
    ZERO_INVALID_IF(
        !zero_list_take(&disk, memory) || !zero_quantity_whole(memory, &r->fit) ||
            r->fit <= 0 ||
            (disk && (!zero_quantity_whole(disk, &r->fit_disk) || r->fit_disk <= 0)),
        "--fit %.80s: expected a whole number of bytes from 1 on, or two, "
        "DRAM,DISK, such as 4G,100G; or batch",
        o->fit);
    if (r->fit_disk == 0 || zero_config_directory(&r->config)) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_INVALID,
        "--fit %.80s: nothing lies on the disk; give --offload DIR as well, or one number",
        o->fit);
}

static zero_status check(void *options, ZERO_UNUSED const zero_options *given)
{
    zero_plan_options *o = options;
    zero_plan_request *r = &o->request;
    o->machines = o->job.machine && zero_same_text(o->job.machine, "help");
    if (o->machines) return ZERO_OK;
    const bool has_pipeline = zero_plan_stages(&r->config.plan) > 1;
    r->all_stages = o->job.stage == ZERO_OPTION_WORD ||
                    (o->chart && o->job.stage == -1 && !has_pipeline);
    /* "1,2,8"; whether the cores of a node have room for them is seen later. */
    char part[ZERO_LIST_PART];
    for (const char *list = o->per_node; list;) {
        int *to = &o->ranks_per_node[o->n_per_node];
        ZERO_INVALID_IF(o->n_per_node++ == ZERO_NODE_ROWS || !zero_list_take(&list, part) ||
                            !zero_list_rank(part, to),
                        "--ranks-per-node %.80s: expected up to %d numbers of ranks "
                        "with commas between them, such as 1,2,8",
                        o->per_node, ZERO_NODE_ROWS);
    }
    ZERO_TRY(read_fit(o));
    return zero_job_options_read(&o->job, r);
}

static zero_status run(void *options, const zero_options *given)
{
    const zero_plan_options *o = options;
    /* Tables for which nothing is planned. */
    if (o->paper) return zero_paper_show(o->paper, o->json, stdout);
    if (o->machines) return zero_plan_machines_show(stdout);
    if (o->models) return zero_models_show(stdout);
    if (o->best) return zero_best_show(o, given, stdout);
    const zero_plan_request *asked = &o->request;
    ZERO_AT_END(zero_plan_report_destroy) zero_plan_report report = {0};
    json_t *nodes;
    ZERO_TRY(zero_plan_report_make(&report, asked));
    if (!asked->all_stages && zero_launch_rank_hint() == 0)
        zero_run_options_note(given, &report.config, report.collectives, 0);
    if (o->n_per_node > 0) {
        ZERO_TRY(zero_plan_nodes_make(&report, o->n_per_node, o->ranks_per_node, &nodes));
        return o->json ? zero_json_print(nodes, JSON_INDENT(2), stdout)
                       : zero_report_print("nodes", nodes, stdout);
    }
    if (o->json) return zero_json_print(zero_plan_facts(&report), JSON_INDENT(2), stdout);
    if (asked->ablation) return zero_plan_show(&report, stdout);
    if (report.pipelines[0].pipeline.n_stages > 0)
        return zero_report_print("pipelines", zero_plan_facts(&report), stdout);
    if (asked->peers) return zero_report_print("peers", zero_plan_facts(&report), stdout);
    /* A step's memory, its instructions, or both. */
    if (o->chart) ZERO_TRY(zero_plan_show_chart(&report, stdout));
    if (o->chart && asked->show_schedule) fputc('\n', stdout);
    if (!asked->show_schedule) return o->chart ? ZERO_OK : zero_plan_show(&report, stdout);
    return report.n > 1 ? zero_plan_show_beside(&report, stdout)
                        : zero_plan_show_programs(&report, stdout);
}

const zero_command zero_command_plan = {
#include "cli/options/plan.command"
    .tables = tables,
    .n_tables = 3,
    .size = sizeof(zero_plan_options),
    .check = check,
    .run = run,
};
