/* zero sweep: a scaling study, each point of which is a run of its own. */
#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "cli/child.h"
#include "cli/sweep.h"
#include "facts/facts.h"
#include "report/text.h"
#include "train/metrics.h"

#define WHY 512 /* bytes of why a point failed */

/* ---- what is started ---- */

static zero_status add_launch(const zero_sweep_options *o, int ranks, zero_words *words)
{
    if (!o->launch) return ZERO_OK;
    ZERO_TRY(zero_words_split(words, "launch", o->launch));
    ZERO_FAIL_IF(zero_words_fill(words, ranks) < 0, ZERO_ERR_NOMEM,
                 "no memory for --launch");
    return ZERO_OK;
}

/* ---- how it ended ---- */

/* The run's own message, or else what its metrics or the launcher may have to do with
 * it. */
static zero_status fail_point(const zero_sweep_study *study, json_t *point,
                              const zero_child_end *end, int64_t steps, const char *missing)
{
    char log[ZERO_STORAGE_FILE_PATH], how[96], when[96], words[ZERO_POINT_TEXT];
    char why[ZERO_CHILD_MESSAGE], all[WHY];
    bool is_well = end->code == 0 && !end->signal;
    /* The status whose exit code is the run's. */
    zero_status st = end->code == 2    ? ZERO_ERR_INVALID
                     : end->code == 4  ? ZERO_ERR_IO
                     : end->code == 86 ? ZERO_ERR_STALLED
                                       : ZERO_ERR_ENV;
    zero_sweep_study_path(study, point, ".log", log);
    if (end->signal)
        zero_print(how, "was ended by signal %d", end->signal);
    else
        zero_print(how, "ended with exit code %d", end->code);
    zero_print(when, steps > 0 ? "after step %" PRId64 : "before its first step", steps);
    zero_child_log_tell(log, why);
    if (is_well)
        zero_print(why, "%.299s", missing);
    else if (!why[0] && steps == 0)
        zero_print(why, "the launch line may not be able to start that many ranks");
    zero_print(all, "it %s %s%s%s", how, when, why[0] ? ": " : "", why);
    zero_put_string(point, "state", "failed");
    json_object_set_new(point, "why", zero_metrics_text(all));
    return zero_fail(st, "%s: %s; all that it printed: %s", zero_point_words(point, words),
                     all, log);
}

static zero_status judge(const zero_sweep_study *study, const zero_sweep_options *o,
                         json_t *point, const zero_child_end *end)
{
    int64_t steps;
    char missing[WHY], words[ZERO_POINT_TEXT], why[64] = "the run stopped on request";
    zero_status st = zero_sweep_study_measure(study, o, point, &steps);
    bool is_done = st == ZERO_OK && end->code == 0 && !end->signal;
    if (!is_done) zero_put_string(point, "state", "missing");
    if (st != ZERO_OK && st != ZERO_ERR_FORMAT && st != ZERO_ERR_IO) return st;
    zero_print(missing, "%s", st == ZERO_OK ? "" : zero_last_error());
    if (!end->stopped && end->code != zero_exit_code(ZERO_STOPPED))
        return is_done ? ZERO_OK : fail_point(study, point, end, steps, missing);
    if (end->stopped) zero_print(why, "stopped by signal %d", end->stopped);
    return zero_fail(ZERO_STOPPED,
                     "%s, in %s; %d of %zu points are measured; the same command continues",
                     why, zero_point_words(point, words),
                     zero_study_count(study->tree, "measured"),
                     json_array_size(json_object_get(study->tree, "points")));
}

/* Runs the point and measures it; the study's files have it before and after. A run that
 * fails is the point's failure and ours, with the last lines that it printed on stderr.
 * ZERO_STOPPED if we, or the run, were asked to stop. */
static zero_status run_point(zero_sweep_study *study, const zero_sweep_options *options,
                             json_t *point)
{
    zero_child_end end;
    time_t now = time(NULL);
    struct tm utc;
    double load[3];
    char started[24];
    json_object_del(point, "load");
    if (gmtime_r(&now, &utc) &&
        strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", &utc))
        zero_put_string(point, "started", started);
    if (getloadavg(load, 3) == 3)
        json_object_set_new(point, "load",
                            json_pack("[f, f, f]", load[0], load[1], load[2]));
    ZERO_TRY(zero_sweep_study_write(study));
    char metrics[ZERO_POINT_TEXT + 8], printed[ZERO_POINT_TEXT + 8], own[ZERO_POINT_TEXT];
    ZERO_AT_END(zero_words_destroy) zero_words words = {0};
    ZERO_AT_END(zero_storage_close_file) zero_storage_file log = {0};
    char program[ZERO_STORAGE_PATH], path[ZERO_STORAGE_FILE_PATH];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    ZERO_FAIL_IF(n <= 0 || n >= (ssize_t)sizeof program - 1, ZERO_ERR_ENV,
                 "/proc/self/exe: this program has no path: %s",
                 n < 0 ? strerror(errno) : "it is too long");
    ZERO_TRY(add_launch(options, (int)zero_point_whole(point, "ranks"), &words));
    ZERO_TRY(zero_words_add(&words, "%.*s", (int)n, program));
    ZERO_TRY(zero_words_add(&words, "train"));
    ZERO_TRY(
        zero_sweep_point_words(options, (int)zero_point_whole(point, "stage"), &words));
    zero_sweep_study_path(study, point, ".jsonl", path);
    ZERO_TRY(zero_words_add(&words, "--metrics=%s", path));
    zero_point_name(point, own);
    zero_print(metrics, "%s.jsonl", own);
    zero_print(printed, "%s.log", own);
    /* An earlier run's metrics would look like this one's. A log is made anew: where
     * another user may add names, one that is there may lead to any file. */
    ZERO_TRY(zero_storage_remove_file(&study->points, metrics));
    ZERO_TRY(zero_storage_remove_file(&study->points, printed));
    ZERO_TRY(zero_storage_create(&study->points, printed, 0, &log));
    (void)fcntl(log.fd, F_SETFL, O_APPEND); /* a command may open its output again */
    ZERO_TRY(zero_child_run(words.words, log.fd, &end));
    zero_status st = judge(study, options, point, &end);
    zero_failure failure = zero_failure_keep(st);
    ZERO_TRY(zero_sweep_study_write(study));
    return zero_failure_restore(&failure);
}

/* ---- Slurm ---- */

/* ---- the study ---- */

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
        zero_status st = run_point(study, o, point);
        if (st == ZERO_STOPPED || (st != ZERO_OK && !o->keep_going)) return st;
        zero_print(text, "%.4g ms a step",
                   1e3 * zero_fact_number(point, "step_seconds/median"));
        if (st == ZERO_OK) say(point, text);
        if (st != ZERO_OK && first.status == ZERO_OK) first = zero_failure_keep(st);
    }
    return zero_failure_restore(&first);
}

static zero_status run(void *options, ZERO_UNUSED const zero_options *given)
{
    const zero_sweep_options *o = options;
    ZERO_AT_END(zero_sweep_study_close) zero_sweep_study study = {.before = NULL};
    ZERO_TRY(zero_sweep_study_open(&study, o));
    /* ZERO_ERR_ENV if the launch line is an srun's inside a Slurm job, and the job has
     * fewer tasks than a point that is still to be run. */
    const char *text = getenv("SLURM_NTASKS");
    int tasks = text && getenv("SLURM_JOB_ID") ? atoi(text) : 0, needed = 0;
    ZERO_AT_END(zero_words_destroy) zero_words words = {0};
    size_t i;
    json_t *point;
    json_array_foreach(json_object_get(study.tree, "points"), i, point)
    {
        int ranks = (int)zero_point_whole(point, "ranks");
        if (!zero_point_is(point, "measured") && ranks > needed) needed = ranks;
    }
    ZERO_TRY(add_launch(o, needed, &words));
    const char *slash = words.n > 0 ? strrchr(words.words[0], '/') : NULL;
    bool is_srun =
        words.n > 0 && zero_same_text(slash ? slash + 1 : words.words[0], "srun");
    bool is_enough = !is_srun || tasks <= 0 || needed <= tasks;
    for (int64_t w = 1; w < words.n; w++) /* each task need not have a CPU of its own */
        is_enough = is_enough || zero_same_text(words.words[w], "-O") ||
                    zero_same_text(words.words[w], "--overcommit");
    ZERO_FAIL_IF(
        !is_enough, ZERO_ERR_ENV,
        "--launch '%.200s': a point needs %d ranks, and this Slurm job has %d tasks "
        "(SLURM_NTASKS): start the sweep in a job of --ntasks %d, leave larger numbers "
        "out of --ranks, or add --overcommit to the line",
        o->launch, needed, tasks, needed);
    zero_child_expect_stop();
    zero_status st = run_missing(&study, o);
    zero_failure failure = zero_failure_keep(st);
    if (st == ZERO_OK || (o->keep_going && st != ZERO_STOPPED)) {
        ZERO_TRY(zero_sweep_study_write(&study));
        ZERO_TRY(zero_study_show(study.tree, zero_sweep_has_plan(o),
                                 zero_sweep_has_simulation(o), stdout));
    }
    return zero_failure_restore(&failure);
}

const zero_command zero_command_sweep = {
#include "cli/options/sweep.command"
    .tables = zero_sweep_tables,
    .n_tables = ZERO_SWEEP_TABLES,
    .size = sizeof(zero_sweep_options),
    .check = zero_sweep_options_check,
    .run = run,
};
