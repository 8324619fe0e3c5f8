/* zero simulate: a training step of all ranks over a network, without MPI. */
#include "cli/simulate_options.h"

#include "base/quantity.h"
#include "cli/build.h"
#include "cli/run_options.h"
#include "cli/words.h"
#include "comm/launch.h"
#include "report/plan_facts.h"
#include "trace/chakra.h"

#define FASTER 1000.0 /* a rank's factor, or that much slower */
#define TRACED 64     /* ranks, unless a list is given */

static const zero_option own[] = {
#include "cli/options/simulate.rows"
};

static const zero_option_table tables[] = {
    {.rows = zero_job_rows, .base = offsetof(zero_simulate_options, job)},
    {.rows = own},
    {.rows = zero_run_options,
     .base = offsetof(zero_simulate_options, request.plan.config),
     .in_file = true,
     .shown = ZERO_OPTION_PLANNED},
};

/* ---- --slow ---- */

static zero_status read_switch(zero_simulate_options *o)
{
    zero_simulate_input *in = &o->request.input;
    char nodes[ZERO_LIST_PART];
    const char *list = o->switches;
    in->switch_ratio = 1.0;
    if (!list) return ZERO_OK;
    bool is_read = zero_list_take(&list, nodes) && !list;
    const char *ratio = is_read ? zero_list_cut(nodes, ':') : NULL;
    is_read = is_read && zero_list_rank(nodes, &in->switch_nodes) && in->switch_nodes > 0 &&
              (!ratio ||
               (zero_quantity_real(ratio, &in->switch_ratio) && in->switch_ratio >= 1.0));
    ZERO_INVALID_IF(!is_read,
                    "--switch %.80s: expected NODES[:RATIO], nodes per switch from 1 on "
                    "and an oversubscription from 1 on, such as 16:2",
                    o->switches);
    return ZERO_OK;
}

static zero_status check(void *options, ZERO_UNUSED const zero_options *given)
{
    zero_simulate_options *o = options;
    zero_simulate_input *in = &o->request.input;
    o->machines = o->job.machine && zero_same_text(o->job.machine, "help");
    if (o->machines) return ZERO_OK;
    /* A machine that somebody wrote or measured is not replaced by a trace. */
    ZERO_INVALID_IF(o->trace && o->job.machine &&
                        zero_file_is_same(o->trace, o->job.machine),
                    "--trace %.300s is a file of --machine as well, which would be "
                    "overwritten: give another name",
                    o->trace);
    ZERO_TRY(zero_job_options_read(&o->job, &o->request.plan));
    if (in->adapter < 0.0) in->adapter = INFINITY;
    if (in->memory_bandwidth < 0.0) in->memory_bandwidth = INFINITY;
    if (in->memory_limit == 0) in->memory_limit = INT64_MAX;
    char part[ZERO_LIST_PART];
    for (const char *list = o->slow; list;) {
        zero_slow_rank slow;
        const char *factor = NULL;
        if (zero_list_take(&list, part)) factor = zero_list_cut(part, ':');
        ZERO_INVALID_IF(
            !factor || !zero_list_rank(part, &slow.rank) ||
                !zero_quantity_real(factor, &slow.factor) || slow.factor < 1.0 / FASTER ||
                slow.factor > FASTER,
            "--slow %.80s: expected RANK:FACTOR, or several with commas between "
            "them, with a factor from 0.001 to 1000, such as 5:0.8 for a rank 5 "
            "that computes 20 %% slower",
            o->slow);
        ZERO_TRY(zero_list_check_rank("slow", slow.rank,
                                      &(zero_list_job){"--ranks", o->job.ranks}));
        for (int k = 0; k < in->n_slow; k++)
            ZERO_INVALID_IF(in->slow[k].rank == slow.rank,
                            "--slow %.80s: rank %d is there twice; give it one factor",
                            o->slow, slow.rank);
        ZERO_INVALID_IF(in->n_slow == ZERO_SLOW_RANKS,
                        "--slow %.80s: expected at most %d ranks", o->slow,
                        ZERO_SLOW_RANKS);
        in->slow[in->n_slow++] = slow;
    }
    ZERO_TRY(read_switch(o));
    double *poll = &o->request.input.poll;
    ZERO_INVALID_IF(!zero_quantity_seconds(o->poll, poll) || *poll < 0.0,
                    "--poll %.80s: expected a time from 0 on, such as 1ms", o->poll);
    zero_trace_ranks *to = &o->traced;
    *to = (zero_trace_ranks){.n = 1, .range = {{0, TRACED - 1}}};
    return o->trace_ranks
               ? zero_list_trace_ranks(o->trace_ranks,
                                       &(zero_list_job){"--ranks", o->job.ranks}, to)
               : ZERO_OK;
}

static zero_status run(void *options, const zero_options *given)
{
    zero_simulate_options *o = options;
    ZERO_AT_END(zero_bytes_destroy) zero_bytes command = {0};
    ZERO_AT_END(zero_simulation_report_destroy) zero_simulation_report report = {0};
    bool is_first = zero_launch_rank_hint() == 0; /* all ranks of a launcher do the same */
    if (o->machines) return zero_plan_machines_show(stdout);
    ZERO_TRY(zero_words_command("zero simulate", given->argc, given->argv, &command));
    const zero_simulation_trace_input trace = {.path = o->trace,
                                               .ranks = o->traced,
                                               .command = (const char *)command.bytes,
                                               .commit = zero_build_commit()};
    ZERO_TRY(o->trace && is_first ? zero_simulation_trace_make(&trace, &o->request, &report)
                                  : zero_simulation_report_make(&report, &o->request));
    if (o->chakra && is_first)
        ZERO_TRY(zero_chakra_write(o->chakra, trace.command, &report));
    if (report.plan.n == 1 && is_first)
        zero_run_options_note(given, &report.plan.config, report.plan.collectives, 0);
    return zero_simulation_show(&report, o->json, stdout);
}

const zero_command zero_command_simulate = {
#include "cli/options/simulate.command"
    .tables = tables,
    .n_tables = 3,
    .size = sizeof(zero_simulate_options),
    .check = check,
    .run = run,
};
