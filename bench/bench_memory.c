/* bench_memory - the paper's M_D: a plan's memory, laid out once, beside a caching allocator.
 *
 * The buffers of a schedule are taken and freed in the order of their lives
 * (memory_trace.h), by a model of PyTorch's caching allocator (caching_allocator.h). Beside
 * it stand the bytes alive at once, below which nothing can run, and the static layout of a
 * run (src/sharding/schedule_memory.h).
 * Nothing is measured in time, and no memory of the model's size is needed.
 *
 *     build/bench_memory */
#include <inttypes.h>
#include <stdio.h>

#include <jansson.h>

#include "base/fail.h"
#include "base/type.h"
#include "bench_lists.h"
#include "bench_main.h"
#include "cli/options.h"
#include "memory_trace.h"
#include "nn/shape.h"
#include "sharding/compile.h"
#include "sharding/stages.h"

typedef struct {
    const char *model_list, *stage_list, *dtype, *json;
    int64_t ranks, micro_batch;
    bool operand_order;
    int models[BENCH_LIST], stages[BENCH_LIST];
    int n_models, n_stages;
    zero_type type;
    json_t *rows; /* owned */
} bench;

/* A row of the table. */
typedef struct {
    const char *model;
    int stage;
    bool recompute;
    size_t layout; /* bytes of the static layout */
    memory_squeeze found;
} result;

/* ---- a row ---- */

static zero_status play(const bench *b, const zero_schedule *s, result *r)
{
    memory_trace trace;
    zero_status st = memory_trace_init(
        &trace, s, b->operand_order ? MEMORY_AS_OPERANDS : MEMORY_AS_LISTED);
    if (st == ZERO_OK) st = memory_trace_squeeze(&trace, &r->found);
    memory_trace_destroy(&trace);
    return st;
}

static zero_status measure(const bench *b, const zero_model *model, result *r)
{
    zero_schedule s;
    zero_plan_input in = zero_plan_input_standard(model, (int)b->ranks, 0);
    in.stage = r->stage;
    in.type = b->type;
    in.micro_batch = b->micro_batch;
    in.recompute = r->recompute;
    ZERO_TRY(zero_schedule_compile(&s, &in));
    r->layout = s.own_bytes;
    zero_status st = play(b, &s, r);
    zero_schedule_destroy(&s);
    return st;
}

/* ---- the table ---- */

static double percent_above(size_t bytes, size_t least)
{
    return 100.0 * ((double)bytes / (double)least - 1.0);
}

static double mib(size_t bytes)
{
    return (double)bytes / 0x1p20;
}

static void print_policy(const bench *b)
{
    printf(
        "static layout: a run's, laid out once. caching allocator: a model of PyTorch's:\n"
        "sizes are multiples of 512 bytes; up to 1 MiB from segments of 2 MiB, below 10 "
        "MiB\n"
        "from segments of 20 MiB, larger ones have a segment of their own, a multiple of\n"
        "2 MiB; the best fit, split if 512 bytes (small) or more than 1 MiB (large) "
        "remain;\n"
        "free neighbours merge; cached segments are returned before it fails.\n\n");
    printf("two steps and an evaluation; %s, %" PRId64 " ranks, %" PRId64
           " sequences per microbatch; an instruction's buffers %s\n\n",
           b->dtype, b->ranks, b->micro_batch,
           b->operand_order ? "as its operands" : "in the plan's order");
    printf("%-12s %9s %5s %11s %8s %20s %10s %8s %10s\n", "", "", "", "alive", "static",
           "caching allocator", "wanted", "free", "unlimited");
    printf("%-12s %9s %5s %11s %8s %10s %9s %10s %8s\n", "model", "recompute", "stage",
           "MiB", "layout", "MiB", "", "MiB", "");
}

static void print_row(const result *r)
{
    const memory_play *least = &r->found.least, *below = &r->found.below;
    size_t alive = r->found.unlimited.alive;
    printf("%-12s %9s %5d %11.1f %+7.2f%% %10.1f %+8.2f%%", r->model,
           r->recompute ? "yes" : "no", r->stage, mib(alive),
           percent_above(r->layout, alive), mib(least->limit),
           percent_above(least->limit, alive));
    if (below->fits)
        printf(" %10s %8s", "-", "-");
    else
        printf(" %10.1f %7.1f%%", mib(below->wanted),
               100.0 * (double)below->free / (double)below->limit);
    printf(" %+9.2f%%\n", percent_above(r->found.unlimited.reserved, alive));
}

static void print_words(void)
{
    printf("\nalive               the most bytes in use at once\n"
           "static layout       what a run takes, above that\n"
           "caching allocator   the least memory in which it runs, and that above alive\n"
           "wanted              the request that fails with 2 MiB less\n"
           "free                the share of that memory which no buffer has then\n"
           "unlimited           what the allocator takes if memory is not short\n");
}

static zero_status add_row(bench *b, const result *r)
{
    const memory_play *least = &r->found.least, *below = &r->found.below;
    json_t *row = json_pack(
        "{s:s, s:b, s:i, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "model", r->model,
        "recompute", r->recompute, "stage", r->stage, "alive_bytes",
        (json_int_t)r->found.unlimited.alive, "layout_bytes", (json_int_t)r->layout,
        "caching_bytes", (json_int_t)least->limit, "caching_unlimited_bytes",
        (json_int_t)r->found.unlimited.reserved, "returns", (json_int_t)least->returns,
        "failed_request_bytes",
        below->fits ? json_null() : json_integer((json_int_t)below->wanted), "free_bytes",
        below->fits ? json_null() : json_integer((json_int_t)below->free));
    if (row && json_array_append_new(b->rows, row) == 0) return ZERO_OK;
    return zero_fail(ZERO_ERR_NOMEM, "no memory for a row");
}

static zero_status run_row(bench *b, const zero_model *model, result *r)
{
    ZERO_TRY(measure(b, model, r));
    print_row(r);
    return add_row(b, r);
}

static zero_status run_model(bench *b, const char *name)
{
    zero_shape shape;
    zero_model model;
    ZERO_TRY(zero_model_preset(name, &shape));
    if (shape.vocab == 0) shape.vocab = 256; /* bytes */
    ZERO_TRY(zero_model_build(&shape, &model));
    zero_status st = ZERO_OK;
    for (int k = 0; st == ZERO_OK && k < 2 * b->n_stages; k++) {
        result r = {.model = name,
                    .stage = b->stages[k % b->n_stages],
                    .recompute = k >= b->n_stages};
        st = run_row(b, &model, &r);
    }
    zero_model_destroy(&model);
    return st;
}

static zero_status write_json(const bench *b)
{
    const size_t flags = JSON_INDENT(1);
    if (!b->json || json_dump_file(b->rows, b->json, flags) == 0) return ZERO_OK;
    return zero_fail(ZERO_ERR_IO, "--json %s: cannot be written", b->json);
}

static zero_status run_all(bench *b)
{
    print_policy(b);
    for (int m = 0; m < b->n_models; m++)
        ZERO_TRY(run_model(b, zero_model_presets(NULL)[b->models[m]].name));
    print_words();
    return write_json(b);
}

/* ---- options ---- */

static const char *model_at(int i)
{
    int n;
    const zero_preset *rows = zero_model_presets(&n);
    return i < n ? rows[i].name : NULL;
}

static const char *stage_at(int i)
{
    static const char names[][2] = {"0", "1", "2", "3"};
    _Static_assert(sizeof names / sizeof *names == ZERO_STAGE_COUNT, "a digit per stage");
    return i < ZERO_STAGE_COUNT ? names[i] : NULL;
}

#define FIELD(name) .offset = offsetof(bench, name)
#define TEXT        .kind = ZERO_OPTION_TEXT
#define WHOLE(most) .kind = ZERO_OPTION_WHOLE, .argument = "N", .min = 1, .max = (most)

/* clang-format off */
static const zero_option rows[] = {
    {.group = "Plans", .name = "models", TEXT, FIELD(model_list), .argument = "LIST", .standard = "gpt2,gpt2-medium,gpt2-xl",
     .help = "some of zero plan --models"},
    {.name = "stages", TEXT, FIELD(stage_list), .argument = "LIST", .standard = "1,2,3", .help = "some of 0,1,2,3"},
    {.name = "ranks", WHOLE(65536), FIELD(ranks), .standard = "8", .help = "ranks, each with a node of its own"},
    {.name = "micro-batch", WHOLE(4096), FIELD(micro_batch), .standard = "4", .help = "sequences per microbatch; one microbatch per step"},
    {.name = "dtype", .kind = ZERO_OPTION_CHOICE, FIELD(dtype), .standard = "bf16", .name_at = zero_type_name_at, .help = "of parameters and gradients"},
    {.name = "operand-order", .kind = ZERO_OPTION_FLAG, FIELD(operand_order), .standard = "off",
     .help = "an instruction takes its buffers in the order of its operands, not of the plan's list"},
    {.group = "Output", .name = "json", TEXT, FIELD(json), .argument = "FILE", .absent = "no file", .help = "also write the rows there, in bytes"},
    {.name = NULL},
};
/* clang-format on */

static const zero_option_table table = {.rows = rows};

static zero_status run(void *options, const zero_options *given);

static const zero_command command = {
    .name = "bench_memory",
    .usage = "bench_memory [options]",
    .about =
        "Plays the buffers of a schedule through a model of a caching allocator, beside "
        "the static layout of a run and what is alive at once.",
    .example = "build/bench_memory --models gpt2 --stages 3",
    .exits = ZERO_EXIT_ENVIRONMENT | ZERO_EXIT_DATA,
    .tables = &table,
    .n_tables = 1,
    .size = sizeof(bench),
    .run = run,
};

static zero_status run(void *options, const zero_options *given)
{
    bench b = *(const bench *)options;
    (void)given;
    zero_status st =
        bench_list_read("models", b.model_list, model_at, b.models, &b.n_models);
    if (st == ZERO_OK)
        st = bench_list_read("stages", b.stage_list, stage_at, b.stages, &b.n_stages);
    if (st == ZERO_OK && !zero_type_find(b.dtype, &b.type))
        st = zero_fail(ZERO_ERR_INVALID, "--dtype %s: no such type", b.dtype);
    b.rows = json_array();
    if (st == ZERO_OK) st = run_all(&b);
    json_decref(b.rows);
    return st;
}

int main(int argc, char **argv)
{
    return bench_main(&command, argc, argv);
}
