/* zero info: this build and this machine, and what options are by default. */
#include "cli/help.h"

#include <string.h>

#include <jansson.h>

#include "base/fail.h"
#include "base/text.h"
#include "base/topology.h"
#include "base/type.h"
#include "cli/build.h"
#include "cli/info_devices.h"
#include "cli/info_disk.h"
#include "cli/info_products.h"
#include "comm/launch.h"
#include "lists/algorithm.h"
#include "math/backends.h"
#include "math/blas.h"
#include "math/threads.h"
#include "report/json_put.h"
#include "sharding/stages.h"
#include "zero/version.h"

typedef struct {
    bool json, trial;
    const char *defaults, *offload;
} info_options;

/* clang-format off */
static const zero_option rows[] = {
    {.group = "Output", .name = "json", .kind = ZERO_OPTION_FLAG, .offset = offsetof(info_options, json), .standard = "off",
     .help = "one JSON object; sizes in bytes, null where the system does not say"},
    {.name = "defaults", .kind = ZERO_OPTION_TEXT, .offset = offsetof(info_options, defaults), .argument = "MODEL",
     .absent = "not shown", .help = "instead: every option of zero train with its default for a model, such as gpt2"},
    {.group = "Disk", .name = "offload", .kind = ZERO_OPTION_TEXT, .offset = offsetof(info_options, offload), .argument = "DIR",
     .absent = "not shown", .help = "instead: what a directory can do as a place for scratch files"},
    {.name = "trial", .kind = ZERO_OPTION_FLAG, .offset = offsetof(info_options, trial), .standard = "off",
     .help = "with --offload: measure its rates, in 1 to 2 s and a file of 252 MiB"},
    {.name = NULL},
};
/* clang-format on */

static const zero_option_table table = {.rows = rows};

/* ---- as values ---- */

/* Bytes, or null where the system does not say. */
static json_t *bytes(size_t n)
{
    return n == 0 ? json_null() : json_integer((json_int_t)n);
}

static json_t *cores_and_threads(int cores, int threads)
{
    return json_pack("{s:i, s:i}", "cores", cores, "threads", threads);
}

/* The names that name_at(0), name_at(1), ... give, up to NULL. */
static json_t *names(const char *(*name_at)(int i))
{
    json_t *list = json_array();
    for (int i = 0; name_at(i); i++) json_array_append_new(list, json_string(name_at(i)));
    return list;
}

static void put_build(json_t *info)
{
    char mpi[128], blas[128];
    zero_launch_library(mpi, sizeof mpi);
    zero_blas_name(blas, sizeof blas);
    zero_blas_set_threads(1); /* as training has it unless told otherwise */
    json_object_set_new(info, "version", json_string(zero_version()));
    json_object_set_new(info, "commit", json_string(zero_build_commit()));
    json_object_set_new(info, "build", json_string(ZERO_BUILD));
    json_object_set_new(info, "mpi", json_string(mpi));
    json_object_set_new(info, "mpi_cuda", json_string(zero_launch_cuda()));
    json_object_set_new(info, "blas", json_string(blas));
    json_object_set_new(info, "backends", names(zero_backend_name_at));
    zero_info_put_devices(info);
    json_object_set_new(info, "cpu_kernels", json_string(zero_cpu_kernels_name()));
    json_object_set_new(info, "threads_in_a_rank", json_boolean(zero_cpu_has_threads()));
}

static void put_machine(json_t *info, const zero_topology *t)
{
    json_object_set_new(info, "cpu", json_string(t->cpu));
    json_object_set_new(info, "machine",
                        cores_and_threads(t->machine_cores, t->machine_threads));
    json_object_set_new(info, "usable",
                        cores_and_threads(t->usable_cores, t->usable_threads));
    json_object_set_new(info, "usable_cpus", json_string(t->usable_list));
    json_object_set_new(info, "bound",
                        json_boolean(t->usable_threads < t->allowed_threads));
    json_object_set_new(info, "numa_nodes", json_integer(t->numa_nodes));
    json_object_set_new(info, "memory_bytes", bytes(t->machine_memory));
    json_object_set_new(info, "memory_available_bytes", bytes(t->memory_available));
    json_object_set_new(info, "memory_limit_bytes", bytes(t->memory_limit));
    json_object_set_new(info, "shm_available_bytes", bytes(t->shm_available));
}

static void put_choices(json_t *info)
{
    json_t *stages = json_array();
    for (int s = 0; s < ZERO_STAGE_COUNT; s++)
        json_array_append_new(stages, json_integer(s));
    json_object_set_new(info, "stages", stages);
    json_object_set_new(info, "types", names(zero_type_name_at));
    json_object_set_new(info, "collectives", names(zero_algorithm_name_at));
}

/* ---- as a table ---- */

static void print_value(const char *key, json_t *value)
{
    const char *member;
    json_t *one;
    size_t i;
    if (json_is_string(value)) printf("%s", json_string_value(value));
    if (json_is_null(value)) printf("-");
    if (json_is_boolean(value)) printf("%s", json_is_true(value) ? "yes" : "no");
    if (json_is_integer(value) && zero_ends_in(key, "_bytes"))
        printf("%.1f GiB", (double)json_integer_value(value) / 0x1p30);
    else if (json_is_integer(value))
        printf("%d", (int)json_integer_value(value));
    if (json_is_real(value)) printf("%.1f", json_real_value(value));
    if (json_is_array(value) && json_array_size(value) == 0) printf("none");
    json_array_foreach(value, i, one)
    {
        printf("%s", i > 0 ? " " : "");
        print_value(key, one);
    }
    bool first = true;
    json_object_foreach(value, member, one)
    {
        printf("%s%d %s", first ? "" : ", ", (int)json_integer_value(one), member);
        first = false;
    }
}

/* Keys as words: memory_available_bytes is "memory available". */
static void print_key(const char *key)
{
    char words[64];
    size_t length = strlen(key);
    if (zero_ends_in(key, "_bytes")) length -= strlen("_bytes");
    snprintf(words, sizeof words, "%.*s", (int)length, key);
    for (char *c = words; *c; c++)
        if (*c == '_') *c = ' ';
    printf("%-18s ", words);
}

static void print_gpus(json_t *gpus)
{
    size_t i;
    json_t *gpu;
    json_array_foreach(gpus, i, gpu)
    {
        print_key("gpu");
        zero_info_print_gpu(gpu);
        putchar('\n');
    }
}

static void print_table(json_t *info)
{
    const char *key;
    json_t *value;
    json_object_foreach(info, key, value)
    {
        if (strcmp(key, "gpus") == 0) continue;
        print_key(key);
        print_value(key, value);
        putchar('\n');
        if (strcmp(key, "cuda_about") == 0) print_gpus(json_object_get(info, "gpus"));
    }
}

/* ---- the command ---- */

static zero_status describe(bool json)
{
    zero_topology topology;
    ZERO_TRY(zero_topology_read(&topology));
    json_t *info = json_object();
    put_build(info);
    zero_status st = zero_info_put_products(info);
    put_machine(info, &topology);
    put_choices(info);
    if (st != ZERO_OK) {
        json_decref(info);
        return st;
    }
    if (json) return zero_json_print(info, JSON_INDENT(2), stdout);
    print_table(info);
    json_decref(info);
    return ZERO_OK;
}

static zero_status check(const info_options *o)
{
    if (o->trial && !o->offload)
        return zero_fail(ZERO_ERR_INVALID, "--trial needs --offload DIR");
    if (o->offload && o->defaults)
        return zero_fail(ZERO_ERR_INVALID, "give --offload or --defaults, not both");
    return ZERO_OK;
}

static zero_status run(int argc, char **argv)
{
    info_options options;
    zero_options given;
    ZERO_TRY(zero_options_read(&zero_command_info, argc, argv, &options, &given));
    ZERO_TRY(check(&options));
    if (options.offload)
        return zero_info_disk(options.offload, options.trial, options.json);
    if (!options.defaults) return describe(options.json);
    return zero_help_show_defaults(&zero_command_train, options.defaults, options.json,
                                   stdout);
}

const zero_command zero_command_info = {
    .name = "zero info",
    .summary = "this build and this machine",
    .usage = "zero info [options]",
    .about = "Shows versions, what computes, cores and memory, and what can be chosen; or "
             "what a directory can do for --offload.",
    .example = "zero info\nzero info --defaults gpt2\nzero info --offload . --trial",
    .exits = ZERO_EXIT_ENVIRONMENT,
    .tables = &table,
    .n_tables = 1,
    .size = sizeof(info_options),
    .run = run,
};
