#include "cli/sweep_run.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/fail.h"
#include "cli/child.h"
#include "report/text.h"

/* ---- what is started ---- */

static zero_status add_program(zero_words *words)
{
    char path[ZERO_STORAGE_PATH];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    if (n <= 0 || n >= (ssize_t)sizeof path - 1)
        return zero_fail(ZERO_ERR_ENV, "/proc/self/exe: this program has no path: %s",
                         n < 0 ? strerror(errno) : "it is too long");
    path[n] = '\0';
    return zero_words_add(words, path);
}

static zero_status add_launch(const zero_sweep_options *o, int ranks, zero_words *words)
{
    if (!o->launch) return ZERO_OK;
    ZERO_TRY(zero_words_split(words, "launch", o->launch));
    if (zero_words_fill(words, ranks) >= 0) return ZERO_OK;
    return zero_fail(ZERO_ERR_NOMEM, "no memory for --launch");
}

static zero_status make_command(const zero_sweep_study *study, const zero_sweep_options *o,
                                const zero_sweep_point *point, zero_words *words)
{
    char path[ZERO_STORAGE_FILE_PATH], metrics[ZERO_STORAGE_FILE_PATH + 16];
    ZERO_TRY(add_launch(o, point->ranks, words));
    ZERO_TRY(add_program(words));
    ZERO_TRY(zero_words_add(words, "train"));
    ZERO_TRY(zero_sweep_point_words(o, point->stage, words));
    zero_sweep_study_path(study, point, ".jsonl", path);
    snprintf(metrics, sizeof metrics, "--metrics=%s", path);
    return zero_words_add(words, metrics);
}

static void note_start(zero_sweep_point *p)
{
    time_t now = time(NULL);
    struct tm utc;
    if (getloadavg(p->load, 3) != 3) p->load[0] = p->load[1] = p->load[2] = -1.0;
    if (gmtime_r(&now, &utc))
        strftime(p->started, sizeof p->started, "%Y-%m-%dT%H:%M:%SZ", &utc);
}

/* An earlier run's metrics would look like this one's. A log is made anew: where another user may add
 * names, one that is there may lead to any file. */
static zero_status clear(const zero_sweep_study *study, const zero_sweep_point *point,
                         zero_storage_file *log)
{
    char name[ZERO_SWEEP_NAME + 8];
    snprintf(name, sizeof name, "%s.jsonl", point->name);
    ZERO_TRY(zero_storage_remove_file(&study->points, name));
    snprintf(name, sizeof name, "%s.log", point->name);
    ZERO_TRY(zero_storage_remove_file(&study->points, name));
    ZERO_TRY(zero_storage_create(&study->points, name, 0, log));
    (void)fcntl(log->fd, F_SETFL, O_APPEND); /* a command may open its output again */
    return ZERO_OK;
}

static zero_status run(const zero_sweep_study *study, const zero_sweep_options *o,
                       const zero_sweep_point *point, zero_child_end *end)
{
    zero_words words = {0};
    zero_storage_file log = {0};
    zero_status st = make_command(study, o, point, &words);
    if (st == ZERO_OK) st = clear(study, point, &log);
    if (st == ZERO_OK) st = zero_child_run(words.words, log.fd, end);
    zero_storage_close_file(&log);
    zero_words_destroy(&words);
    return st;
}

/* ---- how it ended ---- */

/* The status whose exit code is the run's. */
static zero_status status_of(int code)
{
    switch (code) {
    case 2: return ZERO_ERR_INVALID;
    case 4: return ZERO_ERR_IO;
    case 86: return ZERO_ERR_STALLED;
    default: return ZERO_ERR_ENV;
    }
}

/* The run's own message, or else what its metrics or the launcher may have to do with it. */
static void explain(const char *log, const zero_child_end *end, int64_t steps,
                    const char *missing, char why[ZERO_SWEEP_WHY])
{
    bool is_well = end->code == 0 && !end->signal;
    zero_child_log_tell(log, why);
    if (is_well)
        snprintf(why, ZERO_SWEEP_WHY, "%.300s", missing);
    else if (!why[0] && steps == 0)
        snprintf(why, ZERO_SWEEP_WHY,
                 "the launch line may not be able to start that many ranks");
}

static zero_status fail_point(zero_sweep_study *study, zero_sweep_point *point,
                              const zero_child_end *end, int64_t steps, const char *missing)
{
    char log[ZERO_STORAGE_FILE_PATH], how[96], when[96], why[ZERO_SWEEP_WHY];
    zero_sweep_study_path(study, point, ".log", log);
    if (end->signal)
        snprintf(how, sizeof how, "was ended by signal %d", end->signal);
    else
        snprintf(how, sizeof how, "ended with exit code %d", end->code);
    snprintf(when, sizeof when, "after step %" PRId64, steps);
    explain(log, end, steps, missing, why);
    point->state = ZERO_SWEEP_FAILED;
    snprintf(point->why, sizeof point->why, "it %s %s%s%.300s", how,
             steps > 0 ? when : "before its first step", why[0] ? ": " : "", why);
    return zero_fail(status_of(end->code),
                     "stage %d on %d rank%s: %s; all that it printed: %s", point->stage,
                     point->ranks, zero_text_plural(point->ranks), point->why, log);
}

static zero_status stop(const zero_sweep_study *study, const zero_sweep_point *point,
                        const zero_child_end *end)
{
    char why[64] = "the run stopped on request";
    if (end->stopped) snprintf(why, sizeof why, "stopped by signal %d", end->stopped);
    return zero_fail(ZERO_STOPPED,
                     "%s, in stage %d on %d rank%s; %d of %d points are measured; the same "
                     "command continues",
                     why, point->stage, point->ranks, zero_text_plural(point->ranks),
                     zero_sweep_count(&study->sweep, ZERO_SWEEP_MEASURED), study->sweep.n);
}

static zero_status judge(zero_sweep_study *study, const zero_sweep_options *o,
                         zero_sweep_point *point, const zero_child_end *end)
{
    int64_t steps;
    char missing[ZERO_SWEEP_WHY];
    zero_status st = zero_sweep_study_measure(study, o, point, &steps);
    bool is_done = st == ZERO_OK && end->code == 0 && !end->signal;
    if (!is_done) point->state = ZERO_SWEEP_MISSING;
    if (st != ZERO_OK && st != ZERO_ERR_FORMAT && st != ZERO_ERR_IO) return st;
    snprintf(missing, sizeof missing, "%s", st == ZERO_OK ? "" : zero_last_error());
    if (end->stopped || end->code == zero_exit_code(ZERO_STOPPED))
        return stop(study, point, end);
    return is_done ? ZERO_OK : fail_point(study, point, end, steps, missing);
}

zero_status zero_sweep_run_point(zero_sweep_study *study, const zero_sweep_options *options,
                                 zero_sweep_point *point)
{
    zero_child_end end;
    note_start(point);
    ZERO_TRY(zero_sweep_study_write(study));
    ZERO_TRY(run(study, options, point, &end));
    zero_status st = judge(study, options, point, &end);
    zero_failure failure = zero_failure_keep(st);
    ZERO_TRY(zero_sweep_study_write(study));
    return zero_failure_restore(&failure);
}

/* ---- Slurm ---- */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* True if each task need not have a CPU of its own. */
static bool overcommits(const zero_words *words)
{
    for (int64_t i = 1; i < words->n; i++)
        if (strcmp(words->words[i], "-O") == 0 ||
            strcmp(words->words[i], "--overcommit") == 0)
            return true;
    return false;
}

/* The most ranks that a point needs which is still to be run. */
static int most_ranks(const zero_sweep *sweep)
{
    int most = 0;
    for (int i = 0; i < sweep->n; i++)
        if (sweep->points[i].state != ZERO_SWEEP_MEASURED && sweep->points[i].ranks > most)
            most = sweep->points[i].ranks;
    return most;
}

zero_status zero_sweep_run_check(const zero_sweep_study *study,
                                 const zero_sweep_options *options)
{
    const char *text = getenv("SLURM_NTASKS");
    int tasks = text && getenv("SLURM_JOB_ID") ? atoi(text) : 0;
    int needed = most_ranks(&study->sweep);
    zero_words words = {0};
    ZERO_TRY(add_launch(options, needed, &words));
    bool is_srun = words.n > 0 && strcmp(last_part(words.words[0]), "srun") == 0;
    bool is_enough = !is_srun || tasks <= 0 || needed <= tasks || overcommits(&words);
    zero_words_destroy(&words);
    if (is_enough) return ZERO_OK;
    return zero_fail(ZERO_ERR_ENV,
                     "--launch '%.200s': a point needs %d ranks, and this Slurm job has %d "
                     "tasks (SLURM_NTASKS): start the sweep in a job of --ntasks %d, leave "
                     "larger numbers out of --ranks, or add --overcommit to the line",
                     options->launch, needed, tasks, needed);
}
