/* zero simulate: a training step of all ranks over a network, without MPI. */
#include "cli/simulate_options.h"

#include "base/fail.h"
#include "cli/build.h"
#include "cli/run_options.h"
#include "cli/words.h"
#include "comm/launch.h"
#include "report/plan_machine.h"

static zero_status make_traced(const zero_simulate_options *o, const char *command,
                               zero_simulation_report *r)
{
    zero_simulation_trace_input input = {.path = o->trace,
                                         .ranks = o->traced,
                                         .command = command,
                                         .commit = zero_build_commit()};
    zero_simulation_request request = o->request;
    zero_simulation_trace *trace;
    ZERO_TRY(zero_simulation_trace_open(&trace, &input));
    zero_simulation_watcher watcher = zero_simulation_trace_watcher(trace);
    request.watcher = &watcher;
    zero_status st = zero_simulation_report_make(r, &request);
    if (st == ZERO_OK) r->request.watcher = NULL;
    zero_simulation_trace_close(trace);
    return st;
}

static zero_status simulate(zero_simulate_options *options, const zero_options *given,
                            const char *command)
{
    zero_simulation_report report;
    bool is_first = zero_launch_rank_hint() == 0;
    if (!is_first) options->trace = NULL; /* all ranks of a launcher do the same */
    ZERO_TRY(options->trace ? make_traced(options, command, &report)
                            : zero_simulation_report_make(&report, &options->request));
    if (report.plan.n == 1 && is_first)
        zero_run_options_note(given, &report.plan.config, report.plan.collectives, 0);
    zero_status st = ZERO_OK;
    if (options->json)
        st = zero_simulation_show_json(&report, stdout);
    else
        zero_simulation_show(&report, stdout);
    zero_simulation_report_destroy(&report);
    return st;
}

static zero_status run(void *options, const zero_options *given)
{
    zero_simulate_options *o = options;
    zero_bytes command = {0};
    if (o->machines) return zero_plan_machines_show(stdout);
    zero_status st =
        zero_words_command("zero simulate", given->argc, given->argv, &command);
    if (st == ZERO_OK) st = simulate(o, given, (const char *)command.bytes);
    zero_bytes_destroy(&command);
    return st;
}

const zero_command zero_command_simulate = {
#include "cli/options/simulate.command"
    .tables = zero_simulate_tables,
    .n_tables = ZERO_SIMULATE_TABLES,
    .size = sizeof(zero_simulate_options),
    .check = zero_simulate_options_check,
    .run = run,
};
