#include "cli/plan_options.h"

#include <string.h>

#include "base/fail.h"
#include "base/quantity.h"
#include "cli/list.h"
#include "cli/run_options.h"

#define FLAG          .kind = ZERO_OPTION_FLAG, .standard = "off"
#define TEXT          .kind = ZERO_OPTION_TEXT
#define WHOLE(lo, hi) .kind = ZERO_OPTION_WHOLE, .min = (lo), .max = (hi)
#define FIELD(name)   .offset = offsetof(zero_plan_options, name)

/* clang-format off */
static const zero_option own[] = {
    {.group = "Plan", .name = "rank", WHOLE(0, ZERO_PLAN_RANKS), FIELD(rank),
     .argument = "R", .standard = "0", .help = "whose memory and messages are shown"},
    {.name = "show-schedule", FLAG, FIELD(request.show_schedule),
     .help = "the programs, one instruction per line; with --stage all the step's of all "
         "stages side by side"},
    {.name = "chart", FLAG, FIELD(chart),
     .help = "bytes live over a step, drawn; all stages if --stage is not given"},
    {.name = "peers", FLAG, FIELD(request.peers),
     .help = "bytes that each rank sends to each other in a step, drawn; up to 64 ranks"},
    {.name = "ablation", FLAG, FIELD(request.ablation),
     .help = "what the plan would take without one part of ZeRO and ZeRO-R: --recompute, "
         "P_a, a stage, small buckets, C_B"},
    {.name = "fit", TEXT, FIELD(fit), .argument = "DRAM[,DISK]|batch",
     .absent = "not asked",
     .help = "how many layers fit that many bytes of memory per rank (with --device: of "
         "the device's) and, with --offload, of its file; batch: the largest "
         "--micro-batch that fits --memory-limit (with --device: --device-memory)"},
    {.name = "pipeline", WHOLE(2, ZERO_MOST_LAYERS), FIELD(pipeline), .argument = "P",
     .absent = "none",
     .help = "GPipe and 1F1B of P stages beside ZeRO, for the same model, ranks and "
         "batch; with --show-schedule: their programs"},
    {.name = "ranks-per-node", TEXT, FIELD(per_node), .argument = "N,...",
     .absent = "not asked",
     .help = "the same plan with N ranks on each node, of as many --threads as its cores "
         "have room for: memory, messages and bytes of a node, and with --network and "
         "--flops the time"},
    {.name = "paper", TEXT, FIELD(paper), .argument = "NAME", .absent = "none",
     .help = "the ZeRO paper's table1, table2, fig1, fig2, fig3, fig4, fig6, fig7, fig8, "
         "turing-nlg or trillion beside ours"},
    {.name = "models", FLAG, FIELD(models), .help = "all models that --model knows"},
    {.name = "json", FLAG, FIELD(json),
     .help = "one JSON object instead of tables; sizes in bytes"},
    {.name = NULL},
};
/* clang-format on */

const zero_option_table zero_plan_tables[ZERO_PLAN_TABLES] = {
    {.rows = zero_job_rows, .base = offsetof(zero_plan_options, job)},
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

static bool parse_fit(const char *text, zero_plan_request *r)
{
    char memory[ZERO_JOB_PART];
    const char *disk = zero_job_cut(text, memory);
    if (!disk) return zero_quantity_whole(text, &r->fit) && r->fit > 0;
    return zero_quantity_whole(memory, &r->fit) && r->fit > 0 &&
           zero_quantity_whole(disk, &r->fit_disk) && r->fit_disk > 0;
}

/* The memory that a batch has to fit: --memory-limit (with --device: --device-memory), or
 * else that of --machine. */
static zero_status read_fit_batch(zero_plan_options *o)
{
    zero_plan_request *r = &o->request;
    bool has_device = zero_config_has_device(&r->config);
    bool is_open = has_device ? r->config.device_memory == 0 : r->config.memory_limit < 0;
    r->fit_batch = true;
    r->fit_memory = has_device ? r->config.device_memory : r->config.memory_limit;
    if (r->fit_memory > 0 || (o->job.machine && is_open)) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "--fit batch needs the memory that a batch has to fit: give --%s "
                     "BYTES, such as 32G, or --machine NAME",
                     has_device ? "device-memory" : "memory-limit");
}

static zero_status read_fit(zero_plan_options *o)
{
    zero_plan_request *r = &o->request;
    if (!o->fit) return ZERO_OK;
    if (strcmp(o->fit, "batch") == 0) return read_fit_batch(o);
    if (!parse_fit(o->fit, r))
        return zero_fail(ZERO_ERR_INVALID,
                         "--fit %.80s: expected a whole number of bytes from 1 on, or two, "
                         "DRAM,DISK, such as 4G,100G; or batch",
                         o->fit);
    if (r->fit_disk == 0 || zero_config_directory(&r->config)) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_INVALID,
        "--fit %.80s: nothing lies on the disk; give --offload DIR as well, or one number",
        o->fit);
}

/* --models, --paper and --machine help are tables that no other option changes. */
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

/* Some options replace the tables of a plan. Refuses others whose numbers would not be
 * shown. */
static zero_status check_picture(const zero_options *given, const char *picture,
                                 const char *const *others, const char *why)
{
    const char *other = zero_options_find_given(given, others);
    if (!other) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID, "--%s with --%s: %s; give one of them", picture,
                     other, why);
}

static zero_status check_pictures(const zero_plan_options *o)
{
    static const char *const not_drawn[] = {"peers", "fit",   "network", "machine",
                                            "disk",  "flops", "json",    NULL};
    static const char *const not_told[] = {"show-schedule", "chart",   "peers",
                                           "fit",           "network", "machine",
                                           "disk",          "flops",   NULL};
    static const char *const not_counted[] = {
        "show-schedule", "fit", "network", "machine", "disk", "flops", NULL};
    if (o->chart)
        ZERO_TRY(
            check_picture(&o->given, "chart", not_drawn, "the chart shows memory alone"));
    if (o->request.peers && !o->json)
        ZERO_TRY(check_picture(&o->given, "peers", not_counted,
                               "without --json it shows bytes between ranks alone"));
    if (!o->request.ablation) return ZERO_OK;
    ZERO_TRY(check_picture(&o->given, "ablation", not_told,
                           "the ablation shows memory with and without a part"));
    if (!o->request.all_stages) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_INVALID,
        "--ablation with --stage all: it is shown for one stage, as in --stage 2");
}

static zero_status check_per_node(zero_plan_options *o)
{
    static const char *const others[] = {"show-schedule", "chart",    "peers",
                                         "fit",           "disk",     "ablation",
                                         "rank",          "pipeline", NULL};
    if (!o->per_node) return ZERO_OK;
    ZERO_TRY(check_picture(&o->given, "ranks-per-node", others,
                           "it shows plans with other ranks per node alone"));
    if (!o->request.all_stages) {
        /* "1,2,8"; whether the cores of a node have room for them is seen later. */
        const char *list = o->per_node;
        char part[ZERO_LIST_PART];
        while (list) {
            int *to = &o->ranks_per_node[o->n_per_node];
            if (o->n_per_node++ == ZERO_NODE_ROWS || !zero_list_take(&list, part) ||
                !zero_list_rank(part, to))
                return zero_fail(ZERO_ERR_INVALID,
                                 "--ranks-per-node %.80s: expected up to %d numbers of "
                                 "ranks with commas between them, such as 1,2,8",
                                 o->per_node, ZERO_NODE_ROWS);
        }
        return ZERO_OK;
    }
    return zero_fail(
        ZERO_ERR_INVALID,
        "--ranks-per-node with --stage all: it is shown for one stage, as in --stage 2");
}

static zero_status check(zero_plan_options *o)
{
    zero_plan_request *r = &o->request;
    if (o->paper) ZERO_TRY(check_alone(&o->given, "paper"));
    if (o->models) ZERO_TRY(check_alone(&o->given, "models"));
    o->machines = o->job.machine && strcmp(o->job.machine, "help") == 0;
    if (o->machines) return check_alone(&o->given, "machine");
    if (o->rank >= o->job.ranks)
        return zero_fail(ZERO_ERR_INVALID, "--rank %d: --ranks %d has ranks 0 to %d",
                         (int)o->rank, (int)o->job.ranks, (int)o->job.ranks - 1);
    r->rank = (int)o->rank;
    r->all_stages = o->job.stage == ZERO_OPTION_WORD || (o->chart && o->job.stage == -1);
    ZERO_TRY(check_pictures(o));
    ZERO_TRY(check_per_node(o));
    if (o->pipeline > 0) {
        /* Refuses what a table of pipelines and all stages cannot show. */
        static const char *const others[] = {"stage", "chart",        "peers",    "fit",
                                             "disk",  "memory-limit", "ablation", NULL};
        const char *other = zero_options_find_given(&o->given, others);
        if (other)
            return zero_fail(ZERO_ERR_INVALID,
                             "--pipeline with --%s: it shows pipelines beside all stages "
                             "of ZeRO; leave out --%s",
                             other, other);
    }
    r->pipeline = (int)o->pipeline;
    r->all_stages = r->all_stages || o->pipeline > 0;
    ZERO_TRY(read_fit(o));
    return zero_job_options_read(&o->job, r);
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
