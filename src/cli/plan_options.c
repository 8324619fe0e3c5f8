#include "cli/plan_options.h"

#include <string.h>

#include "base/fail.h"
#include "base/quantity.h"
#include "cli/run_options.h"
#include "sharding/stages.h"

#define FLAG          .kind = ZERO_OPTION_FLAG, .standard = "off"
#define TEXT          .kind = ZERO_OPTION_TEXT
#define WHOLE(lo, hi) .kind = ZERO_OPTION_WHOLE, .min = (lo), .max = (hi)
#define FIELD(name)   .offset = offsetof(zero_plan_options, name)

/* clang-format off */
static const zero_option own[] = {
    {.group = "Plan", .name = "ranks", WHOLE(1, ZERO_PLAN_RANKS), FIELD(ranks), .argument = "N", .standard = "1",
     .help = "how many ranks the plan is for"},
    {.name = "rank", WHOLE(0, ZERO_PLAN_RANKS), FIELD(rank), .argument = "R", .standard = "0", .help = "whose memory and messages are shown"},
    {.name = "stage", WHOLE(0, ZERO_STAGE_COUNT - 1), FIELD(stage), .argument = "N", .words = "all", .absent = "0, or --config's",
     .name_at = zero_stage_words, .help = "ZeRO: all stages side by side, or what ranks hold in shards"},
    {.name = "show-schedule", FLAG, FIELD(request.show_schedule), .help = "the programs, one instruction per line"},
    {.name = "chart", FLAG, FIELD(chart), .help = "bytes live over a step, drawn; all stages if --stage is not given"},
    {.name = "fit", WHOLE(1, INT64_MAX), FIELD(request.fit), .argument = "BYTES", .absent = "not asked",
     .help = "how many layers fit that many bytes per rank"},
    {.name = "network", TEXT, FIELD(network), .argument = "LATENCY,BANDWIDTH", .absent = "no times",
     .help = "seconds per message and bytes per second, such as 1e-6,12.5G; with --flops: the time of a step"},
    {.name = "flops", .kind = ZERO_OPTION_RATE, .low = 1, .high = 1e30, FIELD(flops), .argument = "RATE", .absent = "no times",
     .help = "floating-point operations per second of one rank, such as 50G"},
    {.name = "paper", TEXT, FIELD(paper), .argument = "NAME", .absent = "none", .help = "the ZeRO paper's table1, table2 or figure1 beside ours"},
    {.name = "models", FLAG, FIELD(models), .help = "all models that --model knows"},
    {.name = "json", FLAG, FIELD(json), .help = "one JSON object instead of tables; sizes in bytes"},
    {.name = NULL},
};
/* clang-format on */

const zero_option_table zero_plan_tables[ZERO_PLAN_TABLES] = {
    {.rows = own},
    {.rows = zero_run_options,
     .base = offsetof(zero_plan_options, request.config),
     .in_file = true,
     .shown = ZERO_OPTION_PLANNED},
};

zero_status zero_plan_options_complete(void *options)
{
    zero_plan_options *o = options;
    return zero_config_take_preset(&o->request.config);
}

/* ---- values ---- */

static zero_status check_rank(const zero_plan_options *o)
{
    if (o->rank < o->ranks) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID, "--rank %d: --ranks %d has ranks 0 to %d",
                     (int)o->rank, (int)o->ranks, (int)o->ranks - 1);
}

static bool parse_network(const char *text, zero_plan_machine *m)
{
    char latency[64];
    const char *comma = strchr(text, ',');
    size_t length = comma ? (size_t)(comma - text) : sizeof latency;
    if (length >= sizeof latency) return false;
    memcpy(latency, text, length);
    latency[length] = '\0';
    return zero_quantity_rate(latency, &m->latency) && m->latency >= 0.0 &&
           zero_quantity_rate(comma + 1, &m->bandwidth) && m->bandwidth > 0.0;
}

static zero_status read_machine(zero_plan_options *o)
{
    zero_plan_machine *m = &o->request.machine;
    bool has_flops = o->flops > 0.0;
    if (o->network && !parse_network(o->network, m))
        return zero_fail(
            ZERO_ERR_INVALID,
            "--network %.80s: expected LATENCY,BANDWIDTH in seconds per message and bytes "
            "per second, such as 1e-6,12.5G",
            o->network);
    if ((o->network != NULL) != has_flops)
        return zero_fail(ZERO_ERR_INVALID,
                         "--network and --flops go together: give --%s as well",
                         has_flops ? "network" : "flops");
    m->flops = o->flops;
    o->request.has_time = has_flops;
    return ZERO_OK;
}

/* --models and --paper are tables that no other option changes. */
static zero_status check_alone(const zero_options *given, const char *table)
{
    const zero_option_table *in;
    const zero_option *option;
    bool is_paper = strcmp(table, "paper") == 0;
    for (int i = 0; (option = zero_command_option(given->command, i, &in)); i++) {
        bool may_stand = strcmp(option->name, table) == 0 ||
                         (is_paper && strcmp(option->name, "json") == 0);
        if (given->set[i] && !may_stand)
            return zero_fail(ZERO_ERR_INVALID, "--%s takes no other options%s, found --%s",
                             table, is_paper ? " but --json" : "", option->name);
    }
    return ZERO_OK;
}

/* The chart shows memory over a step and nothing else. */
static zero_status check_chart(const zero_options *given)
{
    static const char *const others[] = {"show-schedule", "fit", "network", "flops",
                                         "json"};
    const zero_option_table *in;
    const zero_option *option;
    for (int i = 0; (option = zero_command_option(given->command, i, &in)); i++)
        for (size_t k = 0; given->set[i] && k < sizeof others / sizeof others[0]; k++)
            if (strcmp(option->name, others[k]) == 0)
                return zero_fail(ZERO_ERR_INVALID,
                                 "--chart with --%s: the chart shows memory alone; give "
                                 "one of them",
                                 others[k]);
    return ZERO_OK;
}

static zero_status check(zero_plan_options *o)
{
    zero_plan_request *r = &o->request;
    if (o->paper) ZERO_TRY(check_alone(&o->given, "paper"));
    if (o->models) ZERO_TRY(check_alone(&o->given, "models"));
    ZERO_TRY(check_rank(o));
    r->n_ranks = (int)o->ranks;
    r->rank = (int)o->rank;
    if (o->chart) ZERO_TRY(check_chart(&o->given));
    r->all_stages = o->stage == ZERO_OPTION_WORD || (o->chart && o->stage == -1);
    if (o->stage >= 0) r->config.stage = o->stage;
    if (r->all_stages && r->show_schedule)
        return zero_fail(ZERO_ERR_INVALID,
                         "--show-schedule with --stage all: programs are shown for one "
                         "stage, as in --stage 3");
    return read_machine(o);
}

zero_status zero_plan_options_parse(zero_plan_options *options, int argc, char **argv)
{
    zero_plan_options read = {.json = false};
    ZERO_TRY(zero_options_read(&zero_command_plan, argc, argv, &read, &read.given));
    zero_status st = check(&read);
    if (st == ZERO_OK)
        *options = read;
    else
        zero_options_destroy(&read.given);
    return st;
}

void zero_plan_options_destroy(zero_plan_options *options)
{
    zero_options_destroy(&options->given);
    *options = (zero_plan_options){0};
}
