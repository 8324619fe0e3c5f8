/* zero plan: what a run would take, from the program that it would run. */
#include "base/fail.h"
#include "cli/commands.h"

#include "cli/plan_options.h"
#include "report/chart.h"
#include "report/models.h"
#include "report/paper.h"
#include "report/plan_json.h"
#include "report/plan_program.h"
#include "report/plan_show.h"
#include "report/plan_stages.h"

static zero_status show(const zero_plan_report *r, const zero_plan_options *options)
{
    if (options->json) return zero_plan_show_json(r, stdout);
    if (options->chart)
        zero_plan_show_chart(r, stdout);
    else if (r->request.show_schedule)
        zero_plan_show_programs(r, stdout);
    else if (r->request.all_stages)
        zero_plan_show_stages(r, stdout);
    else
        zero_plan_show(r, stdout);
    return ZERO_OK;
}

static zero_status plan(const zero_plan_options *options)
{
    zero_plan_report report;
    ZERO_TRY(zero_plan_report_make(&report, &options->request));
    zero_status st = show(&report, options);
    zero_plan_report_destroy(&report);
    return st;
}

/* Tables for which nothing is planned. */
static zero_status show_table(const zero_plan_options *options)
{
    if (options->paper) return zero_paper_show(options->paper, options->json, stdout);
    if (options->models)
        zero_models_show(stdout);
    else
        zero_plan_help(stdout);
    return ZERO_OK;
}

zero_status zero_command_plan(int argc, char **argv)
{
    zero_plan_options options;
    ZERO_TRY(zero_plan_options_parse(&options, argc, argv));
    bool is_table = options.help || options.models || options.paper;
    zero_status st = is_table ? show_table(&options) : plan(&options);
    zero_plan_options_destroy(&options);
    return st;
}
