#include "cli/plan_options.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "cli/option_value.h"
#include "cli/suggest.h"
#include "cli/usage.h"

enum {
    RANKS,
    RANK,
    STAGE, /* "all" only: numbers are train's */
    SHOW_SCHEDULE,
    CHART,
    FIT,
    NETWORK,
    FLOPS,
    PAPER,
    MODELS,
    JSON,
    N_OWN
};

/* clang-format off */
static const zero_option own[N_OWN] = {
    [RANKS] = {.group = "Options of plan alone", .name = "ranks", .kind = ZERO_OPTION_WHOLE, .argument = "N", .standard = "1",
               .help = "how many ranks the plan is for"},
    [RANK] = {.name = "rank", .kind = ZERO_OPTION_WHOLE, .argument = "R", .standard = "0", .help = "whose memory and messages are shown"},
    [STAGE] = {.name = "stage", .kind = ZERO_OPTION_TEXT, .argument = "all", .absent = "the one of --stage", .help = "all four stages side by side"},
    [SHOW_SCHEDULE] = {.name = "show-schedule", .kind = ZERO_OPTION_FLAG, .standard = "off", .help = "the programs, one instruction per line"},
    [CHART] = {.name = "chart", .kind = ZERO_OPTION_FLAG, .standard = "off", .help = "bytes live over a step, drawn; all stages without --stage"},
    [FIT] = {.name = "fit", .kind = ZERO_OPTION_WHOLE, .argument = "BYTES", .absent = "not asked", .help = "how many layers fit so many bytes per rank"},
    [NETWORK] = {.name = "network", .kind = ZERO_OPTION_TEXT, .argument = "LATENCY,BANDWIDTH", .absent = "no times",
                 .help = "seconds per message, bytes per second: 1e-6,12.5G"},
    [FLOPS] = {.name = "flops", .kind = ZERO_OPTION_TEXT, .argument = "RATE", .absent = "no times", .help = "of one rank, per second: 50G"},
    [PAPER] = {.name = "paper", .kind = ZERO_OPTION_TEXT, .argument = "NAME", .absent = "none", .help = "the ZeRO paper's table1, table2 or figure1 beside ours"},
    [MODELS] = {.name = "models", .kind = ZERO_OPTION_FLAG, .standard = "off", .help = "all models that --model knows"},
    [JSON] = {.name = "json", .kind = ZERO_OPTION_FLAG, .standard = "off", .help = "one JSON object instead of tables; sizes in bytes"},
};
/* clang-format on */

/* ---- sorting the arguments ---- */

/* The texts of our own options, NULL where one is not given; the others in their order. */
struct split {
    const char *text[N_OWN];
    int n_others;
    char **others; /* [n_others] */
};

static int find_own(const char *name, size_t length)
{
    for (int i = 0; i < N_OWN; i++)
        if (strlen(own[i].name) == length && memcmp(own[i].name, name, length) == 0)
            return i;
    return -1;
}

/* Where plan's own options are nearer than train's. */
static zero_status check_known(const char *name, size_t length)
{
    const char *names[N_OWN];
    char word[64] = "";
    int index;
    if (length >= sizeof word || zero_option_find(name, length, &index)) return ZERO_OK;
    memcpy(word, name, length);
    for (int i = 0; i < N_OWN; i++) names[i] = own[i].name;
    const char *ours = zero_suggest(word, N_OWN, names),
               *theirs = zero_option_nearest(word);
    if (!ours) return ZERO_OK;
    if (theirs && zero_suggest_distance(word, theirs) <= zero_suggest_distance(word, ours))
        return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID, "--%s: no such option; did you mean --%s?", word,
                     ours);
}

static bool is_ours(int index, const char *value)
{
    return index >= 0 && (index != STAGE || (value && strcmp(value, "all") == 0));
}

/* Takes argv[*i], and the next where the value stands apart. */
static zero_status sort_argument(int argc, char **argv, int *i, struct split *s)
{
    char *argument = argv[*i];
    const char *name = argument + strspn(argument, "-");
    const char *equals = strchr(name, '='), *next = *i + 1 < argc ? argv[*i + 1] : NULL;
    size_t length = equals ? (size_t)(equals - name) : strlen(name);
    bool is_option = strncmp(argument, "--", 2) == 0;
    int index = is_option ? find_own(name, length) : -1;
    const char *value = equals ? equals + 1 : next;
    if (!is_ours(index, value)) {
        s->others[s->n_others++] = argument;
        return is_option && index < 0 ? check_known(name, length) : ZERO_OK;
    }
    bool is_flag = own[index].kind == ZERO_OPTION_FLAG;
    if (is_flag && !equals) value = "on";
    if (!value || (!is_flag && !equals && strncmp(value, "--", 2) == 0))
        return zero_fail(ZERO_ERR_INVALID, "--%s: expected a value behind it, found %s",
                         own[index].name, value ? value : "the end of the line");
    if (s->text[index])
        return zero_fail(ZERO_ERR_INVALID,
                         "--%s is given twice, as %.80s and as %.80s; keep one",
                         own[index].name, s->text[index], value);
    s->text[index] = value;
    if (!equals && !is_flag) ++*i;
    return ZERO_OK;
}

static zero_status sort_arguments(int argc, char **argv, struct split *s)
{
    *s = (struct split){.others = calloc((size_t)argc + 1, sizeof *s->others)};
    if (!s->others) return zero_fail(ZERO_ERR_NOMEM, "no memory for %d arguments", argc);
    for (int i = 0; i < argc; i++) ZERO_TRY(sort_argument(argc, argv, &i, s));
    return ZERO_OK;
}

/* ---- values ---- */

static zero_status read_flag(const struct split *s, int index, bool *on)
{
    const char *text = s->text[index];
    *on = text && strcmp(text, "on") == 0;
    if (!text || *on || strcmp(text, "off") == 0) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID, "--%s %.80s: expected on or off", own[index].name,
                     text);
}

static zero_status read_whole(const struct split *s, int index, int64_t least, int64_t most,
                              int64_t *number)
{
    const char *text = s->text[index];
    char where[128];
    if (!text) return ZERO_OK;
    snprintf(where, sizeof where, "--%s %.80s", own[index].name, text);
    return zero_option_read_whole(text, where, least, most, number);
}

static zero_status read_ranks(const struct split *s, zero_plan_options *o)
{
    int64_t ranks = 1, rank = 0;
    ZERO_TRY(read_whole(s, RANKS, 1, ZERO_PLAN_RANKS, &ranks));
    ZERO_TRY(read_whole(s, RANK, 0, ZERO_PLAN_RANKS, &rank));
    if (rank >= ranks)
        return zero_fail(
            ZERO_ERR_INVALID,
            "--rank %d: ranks are numbered from 0, so that of --ranks %d the last "
            "is %d",
            (int)rank, (int)ranks, (int)ranks - 1);
    o->request.n_ranks = (int)ranks;
    o->request.rank = (int)rank;
    return ZERO_OK;
}

static bool parse_network(const char *text, zero_plan_machine *m)
{
    char latency[64];
    const char *comma = strchr(text, ',');
    size_t length = comma ? (size_t)(comma - text) : sizeof latency;
    if (length >= sizeof latency) return false;
    memcpy(latency, text, length);
    latency[length] = '\0';
    return zero_option_parse_rate(latency, &m->latency) && m->latency >= 0.0 &&
           zero_option_parse_rate(comma + 1, &m->bandwidth) && m->bandwidth > 0.0;
}

static zero_status read_machine(const struct split *s, zero_plan_options *o)
{
    const char *network = s->text[NETWORK], *flops = s->text[FLOPS];
    o->request.has_time = network && flops;
    if (network && !parse_network(network, &o->request.machine))
        return zero_fail(
            ZERO_ERR_INVALID,
            "--network %.80s: expected LATENCY,BANDWIDTH in seconds per message "
            "and bytes per second, such as 1e-6,12.5G",
            network);
    if (flops && (!zero_option_parse_rate(flops, &o->request.machine.flops) ||
                  !(o->request.machine.flops > 0.0)))
        return zero_fail(
            ZERO_ERR_INVALID,
            "--flops %.80s: expected floating-point operations per second of one "
            "rank, such as 50G",
            flops);
    if (o->request.has_time || (!network && !flops)) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID, "--%s needs --%s: a time follows from both only",
                     network ? "network" : "flops", network ? "flops" : "network");
}

/* The chart shows memory over a step and nothing else. */
static zero_status read_chart(const struct split *s, zero_plan_options *o)
{
    static const int others[] = {SHOW_SCHEDULE, FIT, NETWORK, FLOPS, JSON};
    ZERO_TRY(read_flag(s, CHART, &o->chart));
    for (size_t i = 0; o->chart && i < sizeof others / sizeof others[0]; i++)
        if (s->text[others[i]])
            return zero_fail(ZERO_ERR_INVALID,
                             "--chart with --%s: the chart shows memory alone; give one of "
                             "them",
                             own[others[i]].name);
    for (int i = 0; i < s->n_others; i++)
        if (strncmp(s->others[i], "--stage", strlen("--stage")) == 0) return ZERO_OK;
    o->request.all_stages = o->request.all_stages || o->chart;
    return ZERO_OK;
}

static zero_status read_values(const struct split *s, zero_plan_options *o)
{
    ZERO_TRY(read_flag(s, SHOW_SCHEDULE, &o->request.show_schedule));
    ZERO_TRY(read_flag(s, MODELS, &o->models));
    ZERO_TRY(read_flag(s, JSON, &o->json));
    ZERO_TRY(read_ranks(s, o));
    ZERO_TRY(read_whole(s, FIT, 1, INT64_MAX, &o->request.fit));
    ZERO_TRY(read_machine(s, o));
    o->paper = s->text[PAPER];
    o->request.all_stages = s->text[STAGE] != NULL;
    if (o->request.all_stages && o->request.show_schedule)
        return zero_fail(
            ZERO_ERR_INVALID,
            "--show-schedule with --stage all: a stage's programs are shown for "
            "one stage, as in --stage 3");
    return read_chart(s, o);
}

/* --models and --paper are tables that no other option changes. */
static zero_status check_alone(const struct split *s)
{
    int table = s->text[PAPER] ? PAPER : MODELS, others = s->n_others;
    for (int i = 0; i < N_OWN; i++)
        others += s->text[i] && i != table && (i != JSON || table == MODELS);
    if (!s->text[table] || others == 0) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID, "--%s takes no other options%s", own[table].name,
                     table == PAPER ? " but --json" : "");
}

static bool asks_for_help(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) return true;
    return false;
}

static zero_status parse_train(zero_plan_options *o, const struct split *s)
{
    for (int i = 0; o->request.all_stages && i < s->n_others; i++)
        if (strncmp(s->others[i], "--stage", strlen("--stage")) == 0)
            return zero_fail(ZERO_ERR_INVALID,
                             "--stage is given twice, once as all; keep one");
    return zero_options_parse(&o->train, s->n_others, s->others);
}

zero_status zero_plan_options_parse(zero_plan_options *options, int argc, char **argv)
{
    struct split s = {0};
    zero_plan_options read = {.help = asks_for_help(argc, argv), .request = {.n_ranks = 1}};
    zero_status st = ZERO_OK;
    if (!read.help) st = sort_arguments(argc, argv, &s);
    if (!read.help && st == ZERO_OK) st = check_alone(&s);
    if (!read.help && st == ZERO_OK) st = read_values(&s, &read);
    if (!read.help && st == ZERO_OK) st = parse_train(&read, &s);
    read.others = s.others;
    read.request.config = read.train.config;
    if (st == ZERO_OK)
        *options = read;
    else
        free(s.others);
    return st;
}

void zero_plan_options_destroy(zero_plan_options *options)
{
    zero_options_destroy(&options->train);
    free(options->others);
    *options = (zero_plan_options){0};
}

void zero_plan_help(FILE *out)
{
    fputs(
        "zero plan says what a run would take, without running it: memory, messages, "
        "time.\n"
        "It takes the options of zero train and starts no MPI: the ranks are --ranks N, "
        "and\n"
        "--fake-nodes K says on how many nodes, in blocks; without it each has its own.\n",
        out);
    zero_usage_rows(N_OWN, own, out);
    fputs("\nOptions of train\n\n", out);
    zero_options_help(out);
}
