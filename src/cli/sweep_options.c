#include "cli/sweep.h"

#include "base/quantity.h"
#include "cli/overwriting.h"
#include "cli/run_options.h"
#include "report/text.h"

static const zero_option own[] = {
#include "cli/options/sweep.rows"
};

const zero_option_table zero_sweep_tables[ZERO_SWEEP_TABLES] = {
    {.rows = own},
    {.rows = zero_job_rows, .base = offsetof(zero_sweep_options, job)},
    {.rows = zero_run_options,
     .base = offsetof(zero_sweep_options, request.config),
     .in_file = true,
     .shown = ZERO_OPTION_PLANNED},
};

/* ---- lists ---- */

static int by_size(const void *a, const void *b)
{
    int x = *(const int *)a, y = *(const int *)b;
    return zero_order(x, y);
}

/* Numbers with commas between them, sorted; each once. */
static zero_status read_list(const char *option, const char *list, int least, int most,
                             int *numbers, int room, int *n)
{
    char one[ZERO_LIST_PART];
    int64_t value;
    bool is_right = true;
    *n = 0;
    for (const char *rest = list; rest && is_right;) {
        is_right = zero_list_take(&rest, one) && *n < room &&
                   zero_quantity_whole(one, &value) && value >= least && value <= most;
        if (is_right) numbers[(*n)++] = (int)value;
    }
    zero_sort(numbers, *n, by_size);
    for (int i = 1; i < *n; i++) is_right = is_right && numbers[i] != numbers[i - 1];
    ZERO_INVALID_IF(!is_right,
                    "--%s %.80s: expected up to %d different numbers from %d to %d, with "
                    "commas between them",
                    option, list, room, least, most);
    return ZERO_OK;
}

/* ---- points ---- */

zero_status zero_sweep_point_words(const zero_sweep_options *o, int stage,
                                   zero_words *words)
{
    static const char *const ours[] = {"stage", "steps", "eval-every", "sample", "config"};
    char value[ZERO_OPTION_TEXT_BYTES];
    for (const zero_option *row = zero_run_options; row->name; row++) {
        const char *text = zero_option_value(row, &o->request.config, value);
        bool is_ours = false; /* the sweep itself decides it */
        for (int i = 0; i < ZERO_COUNT(ours); i++)
            is_ours |= zero_same_text(ours[i], row->name);
        if (text && !is_ours && zero_options_is_set(o->given, row->name))
            ZERO_TRY(zero_words_add(words, "--%s=%s", row->name, text));
    }
    ZERO_TRY(zero_words_add(words, "--stage=%d", stage));
    ZERO_TRY(zero_words_add(words, "--steps=%" PRId64, o->steps));
    ZERO_TRY(zero_words_add(words, "--eval-every=%" PRId64, o->request.config.eval_every));
    return zero_words_add(words, "--sample=0");
}

/* Refuses a point that zero train would refuse. Imported weights decide a shape that is not
 * known here. */
static zero_status check_point(const zero_sweep_options *o, int stage, int ranks)
{
    zero_config c = o->request.config;
    c.plan.stage = stage;
    ZERO_TRY(zero_config_check(&c));
    ZERO_INVALID_IF(c.fake_nodes > ranks, "--fake-nodes %" PRId64 " are more than ranks",
                    c.fake_nodes);
    ZERO_TRY(zero_tp_check_ranks(&c.tp, ranks));
    ZERO_TRY(zero_config_check_shard_ranks(&c, ranks));
    return c.init_from ? ZERO_OK : zero_config_complete(&c, ranks);
}

/* ---- models of time ---- */

#define SIMULATED_STEPS  2
#define SIMULATED_MEMORY INT64_C(2000000000) /* bytes */

bool zero_sweep_has_plan(const zero_sweep_options *options)
{
    return options->request.has_time || options->request.has_file;
}

/* MPI's own collectives have no step lists, and copies to a device are not simulated. */
bool zero_sweep_has_simulation(const zero_sweep_options *options)
{
    const zero_config *c = &options->request.config;
    return zero_sweep_has_plan(options) && options->simulation.most_messages > 0 &&
           !zero_same_text(c->collectives, "mpi") && !zero_config_has_device(c);
}

/* ---- all of it ---- */

zero_status zero_sweep_options_check(void *options, const zero_options *given)
{
    zero_sweep_options *o = options;
    o->given = given;
    ZERO_TRY(read_list("ranks", o->ranks_list, 1, ZERO_PLAN_RANKS, o->ranks,
                       ZERO_SWEEP_RANKS, &o->n_ranks));
    o->stages[0] = (int)o->request.config.plan.stage;
    o->n_stages = 1;
    if (o->stage_list)
        ZERO_TRY(read_list("stage", o->stage_list, 0, ZERO_STAGE_COUNT - 1, o->stages,
                           ZERO_STAGE_COUNT, &o->n_stages));
    /* The file's steps, if the command line has none. */
    zero_config *c = &o->request.config;
    int row = zero_command_find_option(given->command, "steps");
    if (!given->set[row] && c->steps >= 0) o->steps = c->steps;
    c->steps = o->steps;
    if (c->eval_every < 0) c->eval_every = 0;
    c->sample = 0;
    ZERO_INVALID_IF(o->warm_up >= o->steps,
                    "--warm-up %" PRId64 ": --steps %" PRId64
                    " leaves no step to measure; give more steps",
                    o->warm_up, o->steps);
    ZERO_INVALID_IF(!o->launch && o->ranks[o->n_ranks - 1] > 1,
                    "--ranks %.80s without --launch: only one rank needs no launcher; "
                    "give --launch 'mpirun -n {}'",
                    o->ranks_list);
    /* {} may be missing, or the line need a shell. */
    ZERO_AT_END(zero_words_destroy) zero_words words = {0};
    if (o->launch) ZERO_TRY(zero_words_split(&words, "launch", o->launch));
    ZERO_INVALID_IF(o->launch && (zero_words_fill(&words, 1) == 0 || words.n == 0),
                    "--launch '%.200s': expected {} where the number of ranks goes, "
                    "as in 'mpirun -n {}'",
                    o->launch);
    ZERO_TRY(zero_overwriting_check(&o->request.config, o->out));
    for (int s = 0; s < o->n_stages; s++)
        for (int r = 0; r < o->n_ranks; r++) {
            zero_status st = check_point(o, o->stages[s], o->ranks[r]);
            ZERO_FAIL_IF(st != ZERO_OK, st, "stage %d on %d rank%s: %s", o->stages[s],
                         o->ranks[r], zero_text_plural(o->ranks[r]), zero_last_error());
        }
    zero_simulate_input *in = &o->simulation;
    o->job.stage = -1;
    if (in->adapter < 0.0) in->adapter = INFINITY;
    if (in->memory_bandwidth < 0.0) in->memory_bandwidth = INFINITY;
    in->steps = SIMULATED_STEPS;
    in->switch_ratio = 1.0;
    in->memory_limit = SIMULATED_MEMORY;
    ZERO_INVALID_IF(!zero_quantity_seconds(o->poll, &in->poll) || in->poll < 0.0,
                    "--poll %.80s: expected a time from 0 on, such as 1ms", o->poll);
    return zero_job_options_read(&o->job, &o->request);
}
