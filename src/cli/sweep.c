/* zero sweep: a scaling study, each point of which is a run of its own. */
#include <inttypes.h>
#include <stdio.h>

#include "base/fail.h"
#include "cli/child.h"
#include "cli/sweep_run.h"
#include "comm/launch.h"
#include "facts/facts.h"
#include "report/text.h"

static void say(const json_t *point, const char *what)
{
    int64_t ranks = zero_point_whole(point, "ranks");
    fprintf(stderr, "stage %" PRId64 ", %" PRId64 " rank%s: %s\n",
            zero_point_whole(point, "stage"), ranks, zero_text_plural(ranks), what);
}

static zero_status run_missing(zero_sweep_study *study, const zero_sweep_options *o)
{
    zero_failure first = {.status = ZERO_OK};
    size_t i;
    json_t *point;
    json_array_foreach(json_object_get(study->tree, "points"), i, point)
    {
        char text[64];
        bool is_there = zero_point_is(point, "measured");
        say(point, is_there ? "measured before" : "runs");
        if (is_there) continue;
        zero_status st = zero_sweep_run_point(study, o, point);
        if (st == ZERO_STOPPED || (st != ZERO_OK && !o->keep_going)) return st;
        snprintf(text, sizeof text, "%.4g ms a step",
                 1e3 * zero_fact_number(point, "step_seconds/median"));
        if (st == ZERO_OK) say(point, text);
        if (st != ZERO_OK && first.status == ZERO_OK) first = zero_failure_keep(st);
    }
    return zero_failure_restore(&first);
}

static zero_status run(void *options, const zero_options *given)
{
    const zero_sweep_options *o = options;
    (void)given; /* the options have it */
    zero_sweep_study study;
    zero_status st;
    ZERO_TRY(zero_sweep_study_open(&study, o));
    st = zero_sweep_run_check(&study, o);
    if (st == ZERO_OK) {
        zero_child_expect_stop();
        st = run_missing(&study, o);
        zero_failure failure = zero_failure_keep(st);
        bool is_through = st == ZERO_OK || (o->keep_going && st != ZERO_STOPPED);
        if (is_through) st = zero_sweep_study_write(&study);
        if (is_through && st == ZERO_OK)
            st = zero_study_show(study.tree, zero_sweep_has_plan(o),
                                 zero_sweep_has_simulation(o), stdout);
        if (st == ZERO_OK) st = zero_failure_restore(&failure);
    }
    zero_sweep_study_close(&study);
    return st;
}

const zero_command zero_command_sweep = {
    .name = "zero sweep",
    .summary = "a scaling study: runs on several numbers of ranks, as a table",
    .usage = "zero sweep --ranks LIST [--stage LIST] --weak --micro-batch N\n"
             "    --launch LINE --out DIR [options]\n"
             "zero sweep --ranks LIST [--stage LIST] --strong --global-batch N\n"
             "    --launch LINE --out DIR [options]",
    .about = "Runs zero train once for each stage and number of ranks, one run after "
             "another, and shows median and quartiles of the step time, efficiency "
             "relative to the fewest ranks, and the share of the time that waits for "
             "collectives. With --network and --flops planned and simulated times stand "
             "beside the measured ones. DIR/study.csv and DIR/study.json hold the same, "
             "and what was run where.\n"
             "Start it without mpirun: it needs no MPI itself. Points that DIR has already "
             "are not run again, so a study that was interrupted (Ctrl-C, SIGTERM, "
             "SIGUSR2, a killed job) continues with the same command; more --ranks and "
             "stages may be added to it. Other options are those of zero train, all of "
             "which are accepted but those that save, resume or print; --config holds "
             "them, too.",
    .example = "zero sweep --ranks 1,2,4 --stage 0,3 --weak --micro-batch 4 \\\n"
               "    --launch 'mpirun -n {} --map-by :OVERSUBSCRIBE' --out study",
    .exits =
        ZERO_EXIT_ENVIRONMENT | ZERO_EXIT_DATA | ZERO_EXIT_STOPPED | ZERO_EXIT_WATCHDOG,
    .tables = zero_sweep_tables,
    .n_tables = ZERO_SWEEP_TABLES,
    .size = sizeof(zero_sweep_options),
    .check = zero_sweep_options_check,
    .run = run,
};
