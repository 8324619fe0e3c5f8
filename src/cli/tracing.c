#include "cli/tracing.h"

#include <limits.h>

#include "base/legible.h"
#include "base/quantity.h"
#include "cli/build.h"
#include "comm/deliver.h"
#include "course/narrate.h"
#include "engine/tell.h"
#include "report/text.h"
#include "trace/run_trace.h"
#include "zero/version.h"

/* ---- --trace-steps and --trace-ranks ---- */

/* "3-5", or "4". */
static bool read_steps(const char *text, int64_t *first, int64_t *last)
{
    char part[ZERO_LIST_PART];
    const char *list = text;
    if (!zero_list_take(&list, part) || list) return false;
    const char *end = zero_list_cut(part, '-');
    return zero_quantity_whole(part, first) &&
           zero_quantity_whole(end ? end : part, last) && *first >= 1 && *first <= *last;
}

/* What the options say of a trace of so many ranks. */
static zero_status read_options(const zero_config *c, int ranks, zero_tracing *t)
{
    int64_t last;
    zero_list_job job = {"a job of", ranks};
    t->window = (zero_trace_window){.keeps = ZERO_TRACED_STEPS, .last = INT64_MAX};
    t->ranks = (zero_trace_ranks){.n = 1, .range = {{0, ranks - 1}}};
    if (c->trace_steps) {
        ZERO_INVALID_IF(!read_steps(c->trace_steps, &t->first, &last),
                        "--trace-steps %.80s: expected a step or a range of steps "
                        "from 1 on, such as 3-5",
                        c->trace_steps);
        ZERO_INVALID_IF(c->steps > 0 && last > c->steps,
                        "--trace-steps %.80s: the run has steps 1 to %" PRId64
                        " (--steps): give steps among these",
                        c->trace_steps, c->steps);
        t->window = (zero_trace_window){.keeps = last - t->first + 1, .last = last};
    }
    return c->trace_ranks ? zero_list_trace_ranks(c->trace_ranks, &job, &t->ranks)
                          : ZERO_OK;
}

zero_status zero_tracing_check(const zero_config *c)
{
    zero_tracing t;
    return c->trace ? read_options(c, INT_MAX, &t) : ZERO_OK;
}

/* "step 3", "steps 3 to 5" */
static void name_steps(int64_t first, int64_t last, char text[ZERO_PLAN_TEXT])
{
    if (first == last)
        snprintf(text, ZERO_PLAN_TEXT, "step %" PRId64, first);
    else
        snprintf(text, ZERO_PLAN_TEXT, "steps %" PRId64 " to %" PRId64, first, last);
}

/* ---- --trace ---- */

/* Refused before step 1, not after the last one. From then on no other run writes the
 * file. */
static zero_status take_place(void *arg, zero_lock *lock,
                              ZERO_UNUSED char holder[ZERO_STORAGE_HOLDER_TEXT])
{
    zero_session *s = arg;
    zero_status st = zero_trace_file_place(&s->tracing.place, s->config.trace,
                                           ZERO_WHOLE_FILE_ALONE, lock);
    return *lock == ZERO_LOCK_BUSY ? ZERO_OK : st;
}

static zero_status begin(zero_session *s)
{
    zero_tracing *t = &s->tracing;
    ZERO_TRY(zero_agree(&s->world, read_options(&s->config, s->world.size, t)));
    t->is_recorded = zero_trace_ranks_have(&t->ranks, s->world.rank);
    ZERO_TRY(zero_session_await(s, "--trace", s->config.trace, take_place));
    /* Steps before the one from which a run resumes were made by another run. */
    if (s->saving.start >= s->config.steps || t->window.last <= s->saving.start)
        return ZERO_OK;
    t->window.keeps = zero_min(t->window.keeps, s->config.steps - s->saving.start);
    char ranks[64] = "", remedy[160];
    zero_trace_counts mine = {0};
    zero_status st = ZERO_OK;
    if (t->is_recorded) st = zero_run_trace_count(&s->engine.schedule, &t->window, &mine);
    ZERO_TRY(zero_agree(&s->world, st));
    int64_t all[3] = {mine.spans, mine.flights, mine.samples};
    ZERO_TRY(zero_comm_sum(&s->world, 3, all));
    zero_trace_counts counts = {.spans = all[0], .flights = all[1], .samples = all[2]};
    if (s->world.size > 1)
        zero_print(ranks, "--trace-ranks with fewer of the %d ranks, or ", s->world.size);
    zero_print(remedy, "give %s--trace-steps with fewer than %" PRId64 " steps", ranks,
               t->window.keeps);
    ZERO_TRY(zero_agree(&s->world, zero_trace_file_check(&counts, remedy)));
    if (t->is_recorded) st = zero_trace_init(&t->trace, &s->engine.schedule, &t->window);
    ZERO_TRY(zero_agree(&s->world, st));
    ZERO_TRY(zero_clock_offset_read(&s->world, &t->clock, &t->uncertainty));
    if (t->is_recorded) zero_engine_record(&s->engine, &t->trace);
    t->is_open = true;
    return ZERO_OK;
}

zero_status zero_tracing_open(zero_session *s)
{
    zero_status st = s->config.trace ? begin(s) : ZERO_OK;
    if (!s->tracing.is_open) zero_whole_file_abandon(&s->tracing.place);
    return st;
}

/* ---- telling ---- */

void zero_tracing_tell(const zero_session *s)
{
    const zero_tracing *t = &s->tracing;
    char steps[ZERO_PLAN_TEXT], bytes[ZERO_PLAN_TEXT];
    if (!s->config.trace || s->config.quiet || !zero_comm_is_root(&s->world)) return;
    if (t->first == 0 && t->window.keeps == 1)
        snprintf(steps, ZERO_PLAN_TEXT, "the last step");
    else if (t->first == 0)
        snprintf(steps, ZERO_PLAN_TEXT, "the last %" PRId64 " steps", t->window.keeps);
    else
        name_steps(t->first, t->window.last, steps);
    printf("  %-14s", "trace");
    if (!t->is_open) {
        printf("none: this run makes none of %s\n", steps);
        return;
    }
    zero_trace_size size = zero_trace_measure(&s->engine.schedule, &t->window);
    zero_text_bytes((double)size.bytes, bytes);
    printf("%s of %s in %s, kept in %s per rank beside the plan\n", steps,
           s->config.trace_ranks ? "--trace-ranks" : "all ranks",
           ZERO_SHOWN(s->config.trace), bytes);
}

/* ---- steps ---- */

void zero_tracing_begin(zero_session *s, int64_t step, double now)
{
    if (s->tracing.is_recorded && s->tracing.is_open)
        zero_trace_step_begin(&s->tracing.trace, step, now);
    s->engine.runner.told =
        step - s->saving.start <= s->config.narrate_steps ? s->telling.mine : NULL;
}

/* ---- writing ---- */

static zero_run_trace_file file_of(zero_session *s, const char **names, zero_status st)
{
    /* Names of nodes: pretended ones are blocks of ranks of one machine, or of
     * several. */
    for (int k = 0; k < s->world.layout.n_nodes; k++)
        names[k] = !s->fake_nodes    ? s->hosts[k].name
                   : s->n_hosts == 1 ? s->hosts[0].name
                                     : "pretended";
    /* Why the file is not what one might expect. */
    const char *note =
        st == ZERO_ERR_STALLED
            ? "the watchdog has ended the job: these are the last steps of one rank"
        : st != ZERO_OK && st != ZERO_STOPPED
            ? "the run has failed: these are its last steps"
        : s->engine.runner.link.memory
            ? "instructions are the host's, which queues work for a device and seldom "
              "waits; the device's own times are in the profile"
        : st == ZERO_STOPPED ? "the run was stopped: these are its last steps"
                             : NULL;
    return (zero_run_trace_file){.place = &s->tracing.place,
                                 .head = {.layout = &s->world.layout,
                                          .hosts = names,
                                          .command = s->facts.command,
                                          .version = zero_version(),
                                          .commit = zero_build_commit(),
                                          .run = s->facts.run,
                                          .clock_uncertainty = s->tracing.uncertainty,
                                          .note = note,
                                          .class_peak = s->engine.schedule.class_peak}};
}

static zero_status write_file(zero_session *s, zero_status st, bool is_alone,
                              const char **names)
{
    zero_tracing *t = &s->tracing;
    zero_lock lock;
    zero_run_trace_result result;
    /* Rank 0 cannot be asked for the place that it has. */
    if (is_alone && !zero_comm_is_root(&s->world))
        ZERO_TRY(zero_trace_file_place(&t->place, s->config.trace, ZERO_WHOLE_FILE_BESIDE,
                                       &lock));
    zero_run_trace mine = {.schedule = &s->engine.schedule,
                           .trace = t->is_recorded ? &t->trace : NULL,
                           .comm = &s->world,
                           .clocks = {t->clock, t->clock},
                           .is_alone = is_alone};
    if (!is_alone) {
        /* The second reading of the clocks; the worse of both counts. */
        zero_clock_reading *last = &mine.clocks[1];
        double worst;
        ZERO_TRY(zero_clock_offset_read(&s->world, last, &worst));
        if (worst > s->tracing.uncertainty) s->tracing.uncertainty = worst;
    }
    zero_run_trace_file file = file_of(s, names, st);
    ZERO_TRY(zero_run_trace_write(&mine, &file, &result));
    if (is_alone || zero_comm_is_root(&s->world)) {
        char steps[ZERO_PLAN_TEXT];
        if (result.first_step == 0)
            snprintf(steps, ZERO_PLAN_TEXT, "no step");
        else
            name_steps(result.first_step, result.last_step, steps);
        if (is_alone)
            fprintf(stderr, "zero: note: --trace %s: %s of rank %d alone\n",
                    ZERO_SHOWN(s->config.trace), steps, s->world.rank);
        else if (!s->config.quiet)
            printf("trace: %s in %s\n", steps, ZERO_SHOWN(s->config.trace));
        if (result.left_out > 0)
            fprintf(stderr,
                    "zero: warning: the trace lacks %" PRId64
                    " transfers of the scratch file: more were in flight at once than it "
                    "has rows for\n",
                    result.left_out);
        fflush(stdout);
    }
    return ZERO_OK;
}

static zero_status write_trace(zero_session *s, zero_status st)
{
    /* Failures that all ranks have, so that all of them come here and can be asked. */
    bool is_alone =
        st != ZERO_OK && st != ZERO_STOPPED && st != ZERO_ERR_DIVERGED &&
        st != ZERO_ERR_DIFFERENT &&
        !(st != ZERO_ERR_STALLED && st != ZERO_ERR_MPI && zero_failure_keep(st).is_agreed);
    bool speaks =
        zero_comm_is_root(&s->world) || st == ZERO_ERR_STALLED || st == ZERO_ERR_MPI;
    if (is_alone && !speaks) return ZERO_OK;
    const char **names = calloc((size_t)s->world.layout.n_nodes, sizeof *names);
    zero_status made = ZERO_OK;
    if (!names) made = zero_fail(ZERO_ERR_NOMEM, "no memory for the names of nodes");
    if (!is_alone) made = zero_agree(&s->world, made);
    if (made == ZERO_OK) made = write_file(s, st, is_alone, names);
    free(names);
    return made;
}

zero_status zero_tracing_close(zero_session *s, zero_status st)
{
    zero_failure kept = zero_failure_keep(st);
    if (!s->tracing.is_open) return st;
    if (s->tracing.is_recorded) zero_trace_stop(&s->tracing.trace);
    zero_status made = write_trace(s, st);
    if (st != ZERO_OK && made != ZERO_OK)
        fprintf(stderr, "zero: warning: no trace: %s\n", zero_last_error());
    zero_engine_record(&s->engine, NULL);
    zero_trace_destroy(&s->tracing.trace);
    zero_whole_file_abandon(&s->tracing.place);
    s->tracing.is_open = false;
    if (st != ZERO_OK) return zero_failure_restore(&kept);
    if (made == ZERO_OK || made == ZERO_ERR_STALLED || made == ZERO_ERR_MPI) return made;
    return zero_fail(ZERO_ERR_ENV, "the run is complete, but it has no trace: %s",
                     zero_last_error());
}

/* ---- --narrate ---- */

static zero_status check(const zero_session *s)
{
    ZERO_TRY(zero_narrate_check(&s->model, s->world.size));
    const char *option = s->config.quiet                      ? "quiet"
                         : zero_config_has_device(&s->config) ? "device"
                         : s->engine.runner.replicas          ? "shard-ranks"
                                                              : NULL;
    ZERO_FAIL_IF(option, ZERO_ERR_UNSUPPORTED, "--narrate with --%s: give one, not both",
                 option);
    return ZERO_OK;
}

zero_status zero_telling_open(zero_session *s)
{
    int64_t longest;
    zero_telling *t = &s->telling;
    if (!s->config.narrate) return ZERO_OK;
    ZERO_TRY(zero_agree(&s->world, check(s)));
    t->length = s->engine.schedule.programs[ZERO_PROGRAM_STEP].length;
    ZERO_TRY(zero_comm_most(&s->world, t->length, &longest));
    size_t all = zero_comm_is_root(&s->world) ? (size_t)(longest * s->world.size) : 0;
    t->tale = (zero_tale){.n_ranks = s->world.size, .length = (int)longest};
    t->tale.list = calloc(all + 1, sizeof *t->tale.list);
    zero_status st = zero_tell_open(&s->engine.schedule, &t->mine);
    if (st == ZERO_OK && !t->tale.list)
        st = zero_fail(ZERO_ERR_NOMEM, "no memory to tell of %d instructions", t->length);
    return zero_agree(&s->world, st);
}

void zero_telling_close(zero_session *s)
{
    s->engine.runner.told = NULL;
    free(s->telling.mine);
    free(s->telling.tale.list);
    s->telling = (zero_telling){0};
}

static zero_status take(void *arg, int rank, const void *data, size_t bytes)
{
    zero_tale_take(arg, rank, data, (int)(bytes / sizeof(zero_told)));
    return ZERO_OK;
}

zero_status zero_tracing_end(zero_session *s, double now)
{
    zero_telling *t = &s->telling;
    if (s->tracing.is_recorded && s->tracing.is_open)
        zero_trace_step_end(&s->tracing.trace, now);
    if (!s->engine.runner.told) return ZERO_OK;
    ZERO_TRY(zero_comm_deliver(&s->world, t->mine, (size_t)t->length * sizeof *t->mine,
                               take, &t->tale));
    zero_progress_view_erase(&s->progress);
    if (!zero_comm_is_root(&s->world)) return ZERO_OK;
    zero_narrator narrator = {&s->model, s->dataset.corpus.tokenizer};
    /* The stages of a pipeline have programs of their own. */
    const int n = zero_schedule_stage_ranks(&s->engine.schedule);
    for (int first = 0; first < s->world.size; first += n) {
        const zero_tale tale = {t->tale.list + (int64_t)first * t->tale.length, n,
                                t->tale.length, first};
        json_auto_t *step = zero_narrate_tree(&narrator, &tale);
        if (n < s->world.size) printf("pipeline stage %d, ", first / n);
        ZERO_TRY(zero_narrate_step(step, stdout));
    }
    return ZERO_OK;
}
