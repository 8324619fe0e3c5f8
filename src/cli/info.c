/* zero info: this build and this machine, and what options are by default. A tree says it
 * all; forms/info.txt is its text. */

#include "base/clock.h"
#include "base/embedded.h"
#include "base/topology.h"
#include "cli/build.h"
#include "cli/help.h"
#include "comm/launch.h"
#include "facts/form.h"
#include "io/disk_trial.h"
#include "io/scratch_place.h"
#include "io/whole_file.h"
#include "math/backends.h"
#include "math/blas.h"
#include "math/device.h"
#include "math/peak.h"
#include "math/threads.h"
#include "report/json_put.h"
#include "sharding/stages.h"
#include "zero/version.h"

extern const zero_embedded zero_cli_forms[];

typedef struct {
    bool json, trial, measure;
    const char *defaults, *offload, *machine;
} info_options;

static zero_status print(json_t *info, const char *section)
{
    zero_status st = zero_form_print(zero_embedded_text(zero_cli_forms, "info"), section,
                                     info, NULL, stdout);
    json_decref(info);
    return st;
}

/* Bytes, or null where the system does not say. */
static json_t *known(size_t bytes)
{
    return bytes == 0 ? json_null() : json_integer((json_int_t)bytes);
}

/* The names that name_at(0), name_at(1), ... give, up to NULL. */
static json_t *names(const char *(*name_at)(int i))
{
    json_t *list = json_array();
    for (int i = 0; name_at(i); i++) json_array_append_new(list, json_string(name_at(i)));
    return list;
}

/* ---- products ---- */

/* Tokens, and a square weight: large enough that packing counts as it does in a step. */
#define ROWS   192
#define SIDE   768
#define ROUNDS 5

typedef struct {
    zero_math math;
    bool is_open;
    float *a, *c; /* [ROWS,SIDE] */
    void *b;      /* [SIDE,SIDE] of up to 4 bytes; zeros in all types */
} trial;

static double seconds(const trial *t, zero_type type, int rows)
{
    const zero_gemm g = {.factors = type,
                         .m = rows,
                         .n = SIDE,
                         .k = SIDE,
                         .a = t->a,
                         .b = t->b,
                         .b_type = type,
                         .c = t->c};
    const double begin = zero_clock_seconds();
    zero_backend_cpu.gemm(&t->math, &g);
    return zero_clock_seconds() - begin;
}

/* In whole cache lines, as kernels expect. */
static void *zeros(int64_t n, size_t bytes)
{
    const size_t all = (size_t)zero_round_up(n * (int64_t)bytes, 64);
    void *memory = aligned_alloc(64, all);
    return memory ? memset(memory, 0, all) : NULL;
}

static void close_trial(trial *t)
{
    if (t->is_open && zero_backend_cpu.close) zero_backend_cpu.close(&t->math);
    zero_free(t->math.scratch, t->c, t->b, t->a);
}

static zero_status open_trial(trial *t)
{
    *t = (trial){.a = zeros(ROWS * SIDE, sizeof(float)),
                 .b = zeros(SIDE * SIDE, sizeof(float)),
                 .c = zeros(ROWS * SIDE, sizeof(float))};
    t->math.scratch = zeros(zero_math_scratch(), sizeof(float));
    ZERO_FAIL_IF(!t->a || !t->b || !t->c || !t->math.scratch, ZERO_ERR_NOMEM,
                 "no memory to try products");
    ZERO_TRY(zero_backend_cpu.open(&t->math));
    t->is_open = true;
    return ZERO_OK;
}

/* The least of several, in turns, since another program on this machine disturbs all
 * alike. */
static zero_status try_products(int n, const zero_type types[], const int rows[],
                                double least[])
{
    ZERO_AT_END(close_trial) trial t = {.is_open = false};
    ZERO_TRY(open_trial(&t));
    for (int i = 0; i <= ROUNDS; i++)
        for (int k = 0; k < n; k++) {
            const double took = seconds(&t, types[k], rows[k]);
            least[k] = i == 0 ? took : fmin(least[k], took);
        }
    return ZERO_OK;
}

/* How much faster products in bf16 are than in fp16. */
static zero_status try_halves(double *ratio)
{
    static const zero_type types[] = {ZERO_FP16, ZERO_BF16};
    static const int rows[] = {ROWS, ROWS};
    double least[2];
    ZERO_TRY(try_products(2, types, rows, least));
    *ratio = least[0] / least[1];
    return ZERO_OK;
}

/* The rates of cores, caches and memory, by one thread and by all usable ones at once. */
static zero_status measure(const zero_topology *t, json_t **found)
{
    static const zero_type types[] = {ZERO_FP32, ZERO_BF16};
    const int all = zero_cpu_has_threads() ? t->usable_threads : 1;
    const size_t line = 512, share = t->memory_available / 4 / (size_t)all;
    const struct {
        const char *from;
        size_t bytes; /* of each thread */
    } places[] = {{"L1 cache", 16 << 10},
                  {"L2 cache", t->l2 / 2},
                  {"memory", zero_min_size(zero_max_size(64 << 20, 4 * t->l3), share)}};
    json_t *peaks = json_array(), *reads = json_array();
    zero_status st = ZERO_OK;
    for (int i = 0; i < ZERO_COUNT(types); i++) {
        zero_cpu_rate one = zero_cpu_peak(types[i], 1),
                      of_all = zero_cpu_peak(types[i], all);
        zero_put_item(peaks, "{s:s, s:s, s:f, s:f}", "type", zero_type_name(types[i]), "by",
                      one.by, "one_thread", one.flops, "all", of_all.flops);
    }
    for (int i = 0; i < ZERO_COUNT(places); i++) {
        const size_t bytes = places[i].bytes / line * line;
        double one = 0.0, of_all = 0.0;
        if (bytes == 0) continue;
        if (st == ZERO_OK) st = zero_cpu_read_rate(bytes, 1, &one);
        if (st == ZERO_OK) st = zero_cpu_read_rate(bytes, all, &of_all);
        zero_put_item(reads, "{s:s, s:I, s:f, s:f}", "from", places[i].from, "bytes",
                      (json_int_t)bytes, "one_thread", one, "all", of_all);
    }
    *found =
        json_pack("{s:i, s:o, s:o}", "threads", all, "flops", peaks, "read_bytes", reads);
    return st;
}

/* ---- a machine file ---- */

#define FEW 32 /* tokens of a second product, for the rate of small ones */

/* One thread computes a product of t tokens at the rate most * t / (t + tokens). */
typedef struct {
    double fp32, bf16; /* most of each type, flops per second */
    double tokens;
} product_rates;

/* A core multiplies as much less while all compute as its multiply-adds get slower. Bytes of
 * a message are copied twice, each time by a read and a write. */
static zero_status write_machine(const info_options *o, const zero_topology *t)
{
    const int cores = t->usable_cores;
    const time_t now = time(NULL);
    product_rates products;
    zero_disk_rates disk = {.read = 0.0};
    json_t *measured;
    char date[16], cpu[81], *text = NULL;
    static const zero_type types[] = {ZERO_FP32, ZERO_FP32, ZERO_BF16};
    static const int rows[] = {FEW, ROWS, ROWS};
    double least[3], rate[3];
    ZERO_TRY(try_products(3, types, rows, least));
    for (int k = 0; k < 3; k++) rate[k] = 2.0 * rows[k] * SIDE * SIDE / least[k];
    /* 1 / rate = 1 / most + (tokens / most) / t, from two t. */
    const double slope =
        fmax((1.0 / rate[0] - 1.0 / rate[1]) / (1.0 / FEW - 1.0 / ROWS), 0.0);
    products.fp32 = 1.0 / (1.0 / rate[1] - slope / ROWS);
    products.tokens = slope * products.fp32;
    products.bf16 = rate[2] * (ROWS + products.tokens) / ROWS;
    if (o->offload) ZERO_TRY(zero_disk_trial(o->offload, &disk));
    ZERO_TRY(measure(t, &measured));
    const json_t *reads = json_object_get(measured, "read_bytes"),
                 *peak = json_array_get(json_object_get(measured, "flops"), 0),
                 *read = json_array_get(reads, json_array_size(reads) - 1);
    const double all = zero_get_number(peak, "all"),
                 one = zero_get_number(peak, "one_thread"),
                 each = one > 0.0 ? fmin(all / (cores * one), 1.0) : 1.0,
                 memory = zero_get_number(read, "all") / cores;
    zero_print(cpu, "%.80s", t->cpu); /* a line has an end */
    struct tm utc;
    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &utc));
    json_t *facts = json_pack("{s:s, s:s, s:i, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:f}",
                              "cpu", cpu, "date", date, "cores", cores, "memory",
                              (double)t->memory_available / cores, "memory_rate", memory,
                              "fp32", each * products.fp32, "bf16", each * products.bf16,
                              "tokens", products.tokens, "inside", memory / 4.0,
                              "disk_read", disk.read, "disk_write", disk.write);
    json_decref(measured);
    zero_status st = zero_form_text(zero_embedded_text(zero_cli_forms, "info"), "machine",
                                    facts, NULL, &text);
    json_decref(facts);
    if (st == ZERO_OK) st = zero_whole_file_put(o->machine, text, strlen(text));
    free(text);
    return st;
}

/* ---- devices ---- */

/* Lists GPUs until one cannot be opened. `about` is the versions of CUDA, or why there are
 * no GPUs. */
static json_t *gpus(char *text, size_t size)
{
    const zero_backend *backend = NULL;
    const zero_plugin *plugin = NULL;
    json_t *list = json_array();
    int n = 0;
    zero_status st = zero_device_find("cuda", &backend, &plugin);
    if (st == ZERO_OK) st = plugin->count(&n);
    for (int i = 0; st == ZERO_OK && i < n; i++) {
        zero_device_about about;
        char type[16];
        st = plugin->describe(i, &about);
        if (st != ZERO_OK) break;
        zero_print(type, "sm_%d", about.capability);
        zero_put_item(list, "{s:i, s:s, s:s, s:s, s:I, s:I}", "device", i, "name",
                      about.name, "bus", about.bus, "type", type, "memory_bytes",
                      (json_int_t)about.bytes, "memory_free_bytes",
                      (json_int_t)about.bytes_free);
        snprintf(text, size, "driver for CUDA %d.%d, runtime %d.%d, cuBLAS %d.%d.%d",
                 about.driver / 1000, about.driver % 1000 / 10, about.runtime / 1000,
                 about.runtime % 1000 / 10, about.products / 10000,
                 about.products / 100 % 100, about.products % 100);
    }
    if (st != ZERO_OK) snprintf(text, size, "%s", zero_last_error());
    return list;
}

/* ---- this build and this machine ---- */

/* ---- what a directory can do for --offload ---- */

/* "1.17G", as options read it: decimal, three digits. */
static void write_rate(double rate, char text[16])
{
    static const struct {
        double unit;
        const char *suffix;
    } units[] = {{1e9, "G"}, {1e6, "M"}, {1e3, "K"}, {1.0, ""}};
    size_t u = 0;
    while (u < 3 && rate < 0.9995 * units[u].unit) u++;
    double number = rate / units[u].unit;
    int decimals = number < 9.995 ? 2 : number < 99.95 ? 1 : 0;
    snprintf(text, 16, "%.*f%s", decimals, number, units[u].suffix);
}

static zero_status show_disk(const char *directory, bool with_trial, bool json)
{
    zero_scratch_place p;
    zero_disk_rates r;
    json_t *rates = json_null();
    ZERO_TRY(zero_scratch_place_read(directory, &p));
    if (with_trial && zero_launch_rank_hint() <= 0) {
        char read[16], write[16], option[33];
        ZERO_TRY(zero_disk_trial(directory, &r));
        write_rate(r.read, read);
        write_rate(r.write, write);
        zero_print(option, "%s,%s", read, write);
        rates = json_pack("{s:I, s:i, s:f, s:f, s:f, s:s}", "file_bytes",
                          (json_int_t)r.bytes, "threads", ZERO_DISK_TRIAL_THREADS,
                          "read_bytes_per_second", r.read, "write_bytes_per_second",
                          r.write, "mixed_bytes_per_second", r.mixed, "disk", option);
    }
    json_t *name = json ? json_string(directory) : json_string_nocheck(directory);
    json_t *info = json_pack(
        "{s:o, s:s?, s:I, s:b, s:o, s:o, s:b, s:o}", "directory", name, "file_system",
        *p.file_system ? p.file_system : NULL, "free_bytes", (json_int_t)p.bytes_free,
        "direct", (int)p.file.is_direct, "memory_align_bytes", known(p.file.memory_align),
        "offset_align_bytes", known(p.file.offset_align), "nameless",
        (int)p.file.had_no_name, "trial", rates);
    ZERO_INVALID_IF(!info, "--offload %s: expected a name in UTF-8 for --json", directory);
    if (json) return zero_json_print(info, JSON_INDENT(2) | JSON_REAL_PRECISION(6), stdout);
    zero_put_whole(info, "used", ZERO_SCRATCH_ALIGN);
    return print(info, "disk");
}

static zero_status run(void *options, ZERO_UNUSED const zero_options *given)
{
    const info_options *o = options;
    if (o->machine) {
        zero_topology here;
        ZERO_TRY(zero_topology_read(&here));
        zero_blas_set_threads(1);
        return zero_launch_rank_hint() <= 0 ? write_machine(o, &here) : ZERO_OK;
    }
    if (o->offload) return show_disk(o->offload, o->trial, o->json);
    if (!o->defaults) {
        zero_topology t;
        char mpi[128], blas[128], cuda[1024] = "";
        double ratio = 0.0;
        ZERO_TRY(zero_topology_read(&t));
        zero_launch_library(mpi, sizeof mpi);
        zero_blas_name(blas, sizeof blas);
        zero_blas_set_threads(1); /* as training has it unless told otherwise */
        if (zero_cpu_bf16_name()) ZERO_TRY(try_halves(&ratio));
        json_t *measured = json_null();
        if (o->measure) ZERO_TRY(measure(&t, &measured));
        json_t *found = gpus(cuda, sizeof cuda), *stages = json_array();
        for (int s = 0; s < ZERO_STAGE_COUNT; s++)
            json_array_append_new(stages, json_integer(s));
        json_t *devices = json_array();
        for (int i = 0; zero_device_name_at(i); i++) {
            const zero_backend *device = NULL;
            const zero_plugin *plugin;
            if (zero_device_find(zero_device_name_at(i), &device, &plugin) == ZERO_OK &&
                device)
                json_array_append_new(devices, json_string(zero_device_name_at(i)));
        }
        json_t *info = json_pack(
            "{s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:b, s:s, s:o, s:s, s:b, s:s?, s:s?, "
            "s:o, s:s, s:{s:i, s:i}, s:{s:i, s:i}, s:s, s:b, s:i, s:o, s:o, s:o, s:o, s:o, "
            "s:o, s:o, s:o}",
            "version", zero_version(), "commit", zero_build_commit(), "build", ZERO_BUILD,
            "mpi", mpi, "mpi_cuda", zero_launch_cuda(), "blas", blas, "backends",
            names(zero_backend_name_at), "devices", devices, "cuda",
            (int)(json_array_size(found) > 0), "cuda_about", cuda, "gpus", found,
            "cpu_kernels", zero_cpu_kernels_name(), "threads_in_a_rank",
            (int)zero_cpu_has_threads(), "fp32_products", zero_cpu_fp32_name(),
            "bf16_products", zero_cpu_bf16_name(), "bf16_over_fp16",
            ratio > 0.0 ? json_real(ratio) : json_null(), "cpu", t.cpu, "machine", "cores",
            t.machine_cores, "threads", t.machine_threads, "usable", "cores",
            t.usable_cores, "threads", t.usable_threads, "usable_cpus", t.usable_list,
            "bound", (int)(t.usable_threads < t.allowed_threads), "numa_nodes",
            t.numa_nodes, "memory_bytes", known(t.machine_memory), "memory_available_bytes",
            known(t.memory_available), "memory_limit_bytes", known(t.memory_limit),
            "shm_available_bytes", known(t.shm_available), "stages", stages, "types",
            names(zero_type_name_at), "collectives", names(zero_algorithm_name_at),
            "measured", measured);
        return o->json ? zero_json_print(info, JSON_INDENT(2), stdout)
                       : print(info, "build");
    }
    return zero_help_show_defaults(&zero_command_train, o->defaults, o->json, stdout);
}

const zero_command zero_command_info = {
#include "cli/options/info.command"
    .run = run,
};
