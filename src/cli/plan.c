/* zero plan: what a run would take, from the program that it would run. */
#include "cli/commands.h"

#include "cli/models.h"
#include "cli/paper.h"
#include "cli/plan_report.h"

static zero_status show(const zero_plan_report *r)
{
    if (r->options.json) return zero_plan_show_json(r, stdout);
    if (r->options.show_schedule)
        zero_plan_show_programs(r, stdout);
    else if (r->options.all_stages)
        zero_plan_show_stages(r, stdout);
    else
        zero_plan_show(r, stdout);
    return ZERO_OK;
}

static zero_status plan(zero_plan_options *options)
{
    zero_plan_report report;
    ZERO_TRY(zero_plan_report_make(&report, options));
    zero_status st = show(&report);
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
    if (!options.help && !options.models && !options.paper) return plan(&options);
    zero_status st = show_table(&options);
    zero_plan_options_destroy(&options);
    return st;
}
