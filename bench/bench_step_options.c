#include "bench_step_options.h"

#include "base/fail.h"
#include "base/type.h"

#define SEQUENCES 4 /* over all ranks: 1024 tokens at T 256, 256 at T 64 */

#define FIELD(name) .offset = offsetof(bench_step_options, name)
#define LIST        .kind = ZERO_OPTION_TEXT, .argument = "LIST"
#define WHOLE       .kind = ZERO_OPTION_WHOLE, .argument = "N", .min = 1, .max = 1000

/* clang-format off */
static const zero_option own[] = {
    {.group = "Measurement", .name = "stages", LIST, FIELD(stage_list), .absent = "--stage", .help = "some stages, such as 0,3: compared, alternately in every round"},
    {.name = "dtypes", LIST, FIELD(dtype_list), .absent = "--dtype", .help = "some of fp32,bf16,fp16: likewise"},
    {.name = "rounds", WHOLE, FIELD(rounds), .standard = "4", .help = "rounds to take the medians of"},
    {.name = "steps", WHOLE, FIELD(steps), .standard = "2", .help = "steps of each engine in a round"},
    {.name = "json", .kind = ZERO_OPTION_TEXT, FIELD(json), .argument = "FILE", .absent = "no file", .help = "also write the rows there"},
    {.name = NULL},
};
/* clang-format on */

const zero_option_table bench_step_tables[BENCH_STEP_TABLES] = {
    {.rows = own},
    {.rows = zero_run_options,
     .base = offsetof(bench_step_options, config),
     .in_file = true},
};

/* The benchmark's defaults. */
static void take_standard(bench_step_options *o)
{
    if (!zero_options_is_set(o->given, "model")) o->config.model = "gpt2";
    if (!zero_options_is_set(o->given, "seq")) o->config.shape.seq = 256;
}

zero_status bench_step_options_complete_help(void *options)
{
    bench_step_options *o = options;
    o->config.model = "gpt2";
    o->config.shape.seq = 256;
    return zero_config_take_preset(&o->config);
}

static const char *stage_at(int i)
{
    static const char names[][2] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    _Static_assert(BENCH_STAGES <= sizeof names / sizeof names[0], "a digit per stage");
    return i < BENCH_STAGES ? names[i] : NULL;
}

zero_status bench_step_options_take(bench_step_options *o, const zero_options *given)
{
    int types[BENCH_LIST];
    o->given = given;
    if (o->stage_list)
        ZERO_TRY(
            bench_list_read("stages", o->stage_list, stage_at, o->stages, &o->n_stages));
    if (o->dtype_list)
        ZERO_TRY(bench_list_read("dtypes", o->dtype_list, zero_type_name_at, types,
                                 &o->n_dtypes));
    for (int i = 0; i < o->n_dtypes; i++) o->dtypes[i] = (zero_type)types[i];
    return ZERO_OK;
}

zero_status bench_step_options_complete(bench_step_options *options, int n_ranks)
{
    zero_config *c = &options->config;
    bool is_given = zero_options_is_set(options->given, "micro-batch") ||
                    zero_options_is_set(options->given, "global-batch");
    take_standard(options);
    if (!is_given) c->plan.micro_batch = n_ranks < SEQUENCES ? SEQUENCES / n_ranks : 1;
    if (options->n_stages == 0) options->stages[options->n_stages++] = c->plan.stage;
    if (options->n_dtypes == 0) options->dtypes[options->n_dtypes++] = c->plan.type;
    ZERO_TRY(zero_config_check(c));
    return zero_config_complete(c, n_ranks);
}
