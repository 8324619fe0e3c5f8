#include "cli/best.h"

#include "plan/pipeline.h"
#include "report/json_put.h"
#include "report/simulation_report.h"
#include "sharding/compile.h"

#define ROWS      10
#define SIMULATED 5    /* of them, from the first on */
#define WORDS     200  /* bytes of a setting */
#define BATCHES   2    /* micro batches of a setting: smaller ones only add passes, */
#define IN_PIPES  8    /* but in a pipeline they shorten the bubble */
#define CHOICES   5    /* of an axis, at most */
#define EQUAL     1e-3 /* of a step */

/* A simulation of more messages or ranks is one of fewer nodes. */
#define MOST_MESSAGES 1700000
#define MOST_RANKS    512
#define MOST_MEMORY   (INT64_C(4) << 30)

typedef struct {
    char words[WORDS];
    int64_t micro_batch, sent;
    size_t needed;
    zero_plan_time time;
    double simulated; /* seconds of a step; 0: not simulated */
    int ranks;        /* in that simulation */
} row;

typedef struct {
    const zero_plan_options *asked;
    const zero_options *given;
    char **argv; /* [given->argc + WORDS], owned */
    row rows[ROWS + 1];
    int n;
    int64_t global_batch, nodes;
    int64_t settings, impossible, too_large, too_long, slower; /* but settings: of plans */
    size_t least; /* bytes of those too large */
    char least_words[WORDS];
    char why[256]; /* the last setting that is not possible */
} search;

/* ---- one setting ---- */

/* A setting that cannot be is no failure: what it says stays in `why`. */
static zero_status pass_over(search *s, zero_status st)
{
    if (st != ZERO_ERR_INVALID && st != ZERO_ERR_UNSUPPORTED) return st;
    s->impossible++;
    zero_print(s->why, "%s", zero_last_error());
    return ZERO_OK;
}

/* The user's words, then the setting's; `words` is cut in pieces. */
static zero_status read_words(const search *s, char *words, zero_plan_options *o,
                              zero_options *given)
{
    int n = s->given->argc;
    zero_copy(s->argv, s->given->argv, n);
    for (char *rest = NULL, *w = strtok_r(words, " ", &rest); w;
         w = strtok_r(NULL, " ", &rest))
        s->argv[n++] = w;
    ZERO_TRY(zero_options_read(&zero_command_plan, n, s->argv, o, given));
    o->request.config.global_batch = s->global_batch;
    return ZERO_OK;
}

/* Keeps the fastest rows. Dropped is what another is as fast as with no more bytes of any
 * kind, and 16-bit activations, which are other numbers, that buy only memory. */
static void keep(search *s, const row *r)
{
    int at = s->n;
    for (int k = 0; k < s->n; k++) {
        const row *o = &s->rows[k];
        bool halves = o->micro_batch == r->micro_batch && strstr(r->words, "--activations");
        if (o->time.step <= r->time.step * (1.0 + EQUAL) && o->sent <= r->sent &&
            (halves || o->needed <= r->needed)) {
            s->slower++;
            return;
        }
    }
    while (at > 0 && r->time.step < s->rows[at - 1].time.step) at--;
    memmove(&s->rows[at + 1], &s->rows[at], (size_t)(s->n - at) * sizeof *r);
    s->rows[at] = *r;
    if (s->n < ROWS)
        s->n++;
    else
        s->slower++;
}

static void note_too_large(search *s, const row *r, size_t needed)
{
    s->too_large++;
    if (s->least > 0 && needed >= s->least) return;
    s->least = needed;
    zero_print(s->least_words, "%.150s --micro-batch %" PRId64, r->words, r->micro_batch);
}

/* Plans one micro batch. *fits: nothing that follows from memory keeps it from running. */
static zero_status plan(search *s, const zero_plan_report *r, zero_plan_input in, row *made,
                        bool *fits)
{
    const size_t limit = (size_t)r->config.memory_limit;
    zero_plan_machine m = r->request.machine;
    ZERO_AT_END(zero_pipeline_destroy) zero_pipeline p = {0};
    zero_plan_bound least;
    in.micro_batch = made->micro_batch;
    in.accumulation = (int)(s->global_batch / in.n_ranks / in.micro_batch);
    in.bucket = zero_config_bucket(&r->config, &in);
    *fits = false;
    ZERO_TRY(zero_plan_least(&in, &least));
    if (least.bytes > limit) {
        note_too_large(s, made, least.bytes);
        return ZERO_OK;
    }
    if (least.instructions > ZERO_PLAN_QUICK) {
        s->too_long++;
        return ZERO_OK;
    }
    ZERO_TRY(zero_pipeline_make(&p, &in));
    made->needed = 0;
    made->sent = 0;
    for (int k = 0; k < p.n_stages; k++) { /* what the ranks need and send at most */
        const zero_plan_ledger *l = &p.stages[k].ledger;
        zero_plan_exchange data = zero_plan_data_of(l);
        zero_traffic_add(&data.traffic, 1, &l->join.traffic);
        zero_traffic_add(&data.traffic, 1, &l->collect.traffic);
        zero_traffic_add(&data.traffic, 1, &l->send.traffic);
        made->needed = zero_max_size(made->needed, l->needed);
        made->sent = zero_max(made->sent, zero_traffic_sent(&data.traffic));
    }
    if (made->needed > limit) {
        note_too_large(s, made, made->needed);
        return ZERO_OK;
    }
    *fits = true;
    if (r->filled.flops)
        m.flops = zero_machine_products(&r->request.file, in.type, &r->shape,
                                        (double)(in.micro_batch * in.seq) /
                                            (double)zero_max(r->config.tp.ranks, 1));
    ZERO_TRY(zero_plan_time_step(&p.stages[0].schedule, &m, &made->time));
    keep(s, made);
    return ZERO_OK;
}

/* All micro batches of a setting, the largest first. */
static zero_status plan_batches(search *s, const char *setting)
{
    zero_plan_options o;
    ZERO_AT_END(zero_options_destroy) zero_options given = {0};
    ZERO_AT_END(zero_plan_report_destroy) zero_plan_report r = {0};
    char words[WORDS];
    const int64_t asked = s->asked->request.config.plan.micro_batch;
    row made = {.needed = 0};
    s->settings++;
    zero_print(words, "%s", setting);
    zero_print(made.words, "%s", setting);
    zero_status st = read_words(s, words, &o, &given);
    if (st != ZERO_OK) return pass_over(s, st);
    if (asked == 0) o.request.config.plan.micro_batch = 1;
    st = zero_plan_report_open(&r, &o.request);
    if (st != ZERO_OK) return pass_over(s, st);
    zero_plan_input in =
        zero_plan_report_input(&r, r.part, &r.place, (int)r.config.plan.stage);
    const int64_t all = s->global_batch / in.n_ranks;
    const int most = zero_plan_stages(&in) > 1 ? IN_PIPES : BATCHES;
    for (int64_t parts = 1, fitting = 0;
         parts <= zero_min(all, ZERO_CONFIG_ACCUMULATION) && fitting < most; parts++) {
        bool fits = false;
        made.micro_batch = all / parts;
        if (all % parts != 0 || (asked > 0 && made.micro_batch != asked)) continue;
        st = plan(s, &r, in, &made, &fits);
        ZERO_TRY(st == ZERO_OK ? st : pass_over(s, st));
        fitting += fits;
    }
    return ZERO_OK;
}

/* ---- all settings ---- */

typedef struct {
    const char *option; /* which the user left open */
    char choices[CHOICES][48];
    int n;
} axis;

#define AXIS(id, option, ...) id,
/* The first OF_STAGE_3 axes say nothing in other stages. */
enum {
#include "cli/axes.def"
    AXES,
    OF_STAGE_3 = SHARD_RANKS
};
#undef AXIS
#define AXIS(id, option, ...) \
    [id] = {option, {__VA_ARGS__}, ZERO_COUNT(((const char *const[]){__VA_ARGS__}))},

static const axis standard[AXES] = {
#include "cli/axes.def"
};

/* ---- simulated ---- */

/* On all nodes, or on as few as it takes, each with the same work. A row stays as it was if
 * even that is too much. */
static zero_status simulate(search *s, row *r)
{
    zero_plan_options o;
    ZERO_AT_END(zero_options_destroy) zero_options given = {0};
    zero_simulation_request request = {.input = {.adapter = INFINITY,
                                                 .memory_bandwidth = INFINITY,
                                                 .switch_ratio = 1.0,
                                                 .steps = 2,
                                                 .memory_limit = MOST_MEMORY,
                                                 .most_messages = MOST_MESSAGES}};
    char words[WORDS];
    zero_print(words, "%s", r->words);
    ZERO_TRY(read_words(s, words, &o, &given));
    request.plan = o.request;
    zero_config *c = &request.plan.config;
    c->plan.micro_batch = r->micro_batch;
    for (int64_t n = o.request.n_ranks, nodes = s->nodes; n > 0; n /= 2, nodes /= 2) {
        ZERO_AT_END(zero_simulation_report_destroy) zero_simulation_report report = {0};
        request.plan.n_ranks = (int)n;
        if (c->fake_nodes > 0 || o.request.has_file) c->fake_nodes = nodes;
        c->global_batch = s->global_batch / (o.request.n_ranks / n);
        bool is_least = n % 2 != 0 || nodes % 2 != 0 || nodes <= 2;
        if (n > MOST_RANKS && !is_least) continue;
        zero_status st = zero_simulation_report_make(&report, &request);
        if (st == ZERO_OK) {
            const zero_simulated *of = &report.results[0];
            r->simulated = r->time.step * of->step / of->plan.step;
            r->ranks = (int)n;
            return ZERO_OK;
        }
        if (st != ZERO_ERR_INVALID && st != ZERO_ERR_UNSUPPORTED) return st;
        if (is_least) return ZERO_OK;
    }
    return ZERO_OK;
}

static int by_simulated(const void *a, const void *b)
{
    const double of[] = {((const row *)a)->simulated, ((const row *)b)->simulated};
    return zero_order(of[0], of[1]);
}

/* ---- shown ---- */

static json_t *facts(const search *s, const zero_plan_report *r)
{
    json_t *rows = json_array();
    for (int k = 0; k < s->n; k++) {
        const row *o = &s->rows[k];
        json_t *one = json_pack(
            "{s:s, s:I, s:I, s:I, s:f, s:f, s:f, s:f}", "setting", o->words, "micro_batch",
            o->micro_batch, "needed", o->needed, "bytes_sent", o->sent, "step_seconds",
            o->time.step, "compute_seconds", o->time.compute, "exposed_seconds",
            o->time.exposed, "disk_exposed_seconds", o->time.disk_exposed);
        if (o->ranks > 0) {
            zero_put_real(one, "simulated_step_seconds", o->simulated);
            zero_put_whole(one, "simulated_ranks", o->ranks);
        }
        json_array_append_new(rows, one);
    }
    return json_pack(
        "{s:s, s:I, s:i, s:I, s:s, s:I, s:I, s:s*, s:I, s:I, s:I, s:I, s:I, s:o}", "model",
        r->config.model, "parameters", r->model.n_params, "ranks", r->request.n_ranks,
        "nodes", s->nodes, "dtype", zero_type_name(r->config.plan.type), "global_batch",
        s->global_batch, "memory_limit", r->config.memory_limit, "machine",
        r->request.has_file ? r->request.file.name : NULL, "settings", s->settings,
        "impossible", s->impossible, "too_large", s->too_large, "too_long", s->too_long,
        "slower", s->slower, "rows", rows);
}

static zero_status find(search *s, const zero_plan_report *r)
{
    axis axes[AXES];
    /* The choices that this job has on each axis. */
    const int nodes = r->layout.n_nodes, sharers = r->layout.size / nodes;
    const zero_type type = r->config.plan.type;
    int R = 1;
    while (2 * R <= sharers && r->layout.size % (2 * R) == 0) R *= 2;
    memcpy(axes, standard, sizeof standard);
    if (nodes == 1 || R == 1)
        axes[NODE_PARAMETERS].n = 1;
    else
        zero_print(axes[SHARD_RANKS].choices[axes[SHARD_RANKS].n++], " --shard-ranks %d",
                   R);
    if (type != ZERO_FP32)
        zero_print(axes[ACTIVATIONS].choices[axes[ACTIVATIONS].n++], " --activations %s",
                   zero_type_name(type));
    if (r->request.machine.disk_read <= 0.0) axes[OFFLOAD].n = 1;
    for (int T = 2; T <= sharers && axes[TP].n < CHOICES; T *= 2)
        zero_print(axes[TP].choices[axes[TP].n++], " --tp %d", T);
    for (int P = 2;
         P <= r->model.n_units - 2 && r->layout.size % P == 0 && axes[PP].n < CHOICES;
         P *= 2)
        zero_print(axes[PP].choices[axes[PP].n++], " --pp %d", P);
    for (int k = 0; k < AXES; k++)
        if (zero_options_is_set(s->given, axes[k].option)) axes[k].n = 1;
    ZERO_TRY(zero_new(&s->argv, s->given->argc + WORDS, "words of settings"));
    /* Counts through all choices, the first axis fastest. */
    const int given = (int)s->asked->request.config.plan.stage;
    for (int at[AXES] = {0}, k = 0; k < AXES;) {
        char words[WORDS] = "";
        bool is_of_stage_3 = false;
        for (k = AXES; k-- > 0;) {
            size_t used = strlen(words);
            snprintf(words + used, sizeof words - used, "%s", axes[k].choices[at[k]]);
            is_of_stage_3 = is_of_stage_3 || (k < OF_STAGE_3 && at[k] > 0);
        }
        const int stage = axes[STAGE].n > 1 ? at[STAGE] : given;
        if ((!is_of_stage_3 || stage == 3) && (at[PP] == 0 || stage < 2))
            ZERO_TRY(plan_batches(s, words));
        for (k = 0; k < AXES && ++at[k] == axes[k].n; k++) at[k] = 0;
    }
    ZERO_INVALID_IF(s->n == 0 && s->least > 0,
                    "--best: of %" PRId64 " settings none fits %" PRId64
                    " bytes per rank; the least needs %zu:%s; give more ranks or "
                    "another --global-batch",
                    s->settings, r->config.memory_limit, s->least, s->least_words);
    ZERO_INVALID_IF(s->n == 0 && s->too_long > 0,
                    "--best: every plan has more than %d instructions; give a smaller "
                    "--global-batch",
                    ZERO_PLAN_QUICK);
    ZERO_INVALID_IF(s->n == 0, "--best: no setting is possible: %s", s->why);
    const int n = s->n < SIMULATED ? s->n : SIMULATED;
    int known = 0;
    for (int k = 0; k < n; k++) ZERO_TRY(simulate(s, &s->rows[k]));
    while (known < n && s->rows[known].ranks > 0) known++;
    zero_sort(s->rows, known, by_simulated);
    return ZERO_OK;
}

zero_status zero_best_show(const zero_plan_options *options, const zero_options *given,
                           FILE *out)
{
    ZERO_AT_END(zero_plan_report_destroy) zero_plan_report base = {0};
    search s = {.asked = options, .given = given};
    ZERO_TRY(zero_plan_report_open(&base, &options->request));
    s.global_batch = base.config.global_batch;
    s.nodes = base.layout.n_nodes;
    zero_status st = find(&s, &base);
    free(s.argv);
    ZERO_TRY(st);
    return options->json ? zero_json_print(facts(&s, &base), JSON_INDENT(2), out)
                         : zero_report_print("best", facts(&s, &base), out);
}
