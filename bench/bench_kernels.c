/* bench_kernels - every kernel of a backend against its bound, and its share of a step.
 *
 * The measure of a kernel that passes over memory is a loop that scales the same number of bytes
 * in place, or only reads them for a kernel that only reads; that of attention and matrix products
 * is sgemm. On a device its library measures: copies of memory and products of factors that are
 * 16-bit already. Measure and kernel run one after the other, on all ranks at once. Bytes are those that
 * the kernel must read and write once, without lines that are read only because they will be
 * written. The model decides how many calls of each kernel a step has.
 *
 *     mpirun -n 2 build/bench_kernels --dtype bf16        (and zero train's options) */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/number.h"
#include "bench_fused.h"
#include "bench_kernel_table.h"
#include "bench_main.h"
#include "bench_products.h"
#include "bench_report.h"
#include "bench_step_options.h"
#include "cli/machine.h"
#include "comm/launch.h"
#include "data/tokenizer.h"
#include "math/backends.h"
#include "math/blas.h"
#include "math/device.h"
#include "math/peak.h"
#include "nn/shape.h"

#define LANE         (INT64_C(1) << 24) /* elements at most, 64 MiB */
#define PARAMS       (INT64_C(1) << 20) /* elements per call of the optimizer's kernels */
#define SAMPLE_BYTES 6.4e7              /* of one run, at least */
#define SAMPLE_FLOPS 2e9                /* likewise */
#define SMALL_SAMPLE 16                 /* calls at most: small models */
#define ON_DEVICE    64                 /* times as much: a device is that much faster */

#define PRODUCTS BENCH_KERNELS /* the row after those of the kernels */
#define ROWS     (BENCH_KERNELS + 1)

typedef struct {
    const char *name;
    double seconds;   /* in a step */
    double element;   /* seconds per element */
    double rate;      /* bytes or flops per second */
    double reference; /* the measure's rate */
    double ratio;     /* rate / reference */
    double of_peak;   /* rate / what the cores, or their memory, can do; NAN: unknown */
    bool is_flops;
    bench_series series; /* kernel, measure */
} row;

typedef struct {
    bench_step_options options;
    zero_comm world;
    zero_shape shape;
    bench_lanes lanes;
    bench_products plain, ours; /* one layer's part of all products: sgemm, our backend */
    int64_t per_call[BENCH_UNITS];
    double per_step[BENCH_UNITS];  /* elements of one unit in a step of this rank */
    double flops_peak, reads_peak; /* per second, of a rank, all at once; NAN on a device */
    bench_clock clock;
    bench_report report;
    row rows[ROWS];
} bench;

static bool is_on_device(const bench *b)
{
    return b->lanes.backend->memory != NULL;
}

/* ---- one kernel against its measure ---- */

typedef struct {
    bench *b;
    const bench_kernel *k;
    int64_t calls, elements, span, at;
    double bytes, flops; /* of a run; one is 0 */
} sample;

static zero_status run_kernel(void *arg)
{
    sample *s = arg;
    for (int64_t i = 0; i < s->calls; i++) {
        if (s->at + s->span > s->b->lanes.length) s->at = 0;
        s->k->call(&s->b->lanes, s->at, s->elements);
        s->at += s->span;
    }
    return s->b->lanes.backend->sync(&s->b->lanes.math);
}

static zero_status run_stream(void *arg)
{
    sample *s = arg;
    bench_lanes_stream(&s->b->lanes, s->bytes);
    return s->b->lanes.backend->sync(&s->b->lanes.math);
}

static zero_status run_reads(void *arg)
{
    sample *s = arg;
    bench_lanes_read(&s->b->lanes, s->bytes);
    return s->b->lanes.backend->sync(&s->b->lanes.math);
}

static double products_flops(const bench *b)
{
    zero_shape part = b->shape;
    part.layers = b->plain.layers;
    part.vocab = b->plain.vocab;
    return bench_products_flops(&part, b->plain.rows * b->plain.microbatches);
}

/* Of an element. */
static double bytes_of(const bench *b, const bench_kernel *k)
{
    const double typed = (double)zero_type_size(b->lanes.type);
    /* The gradient of logits, which are floats, may have 16 bits. */
    const double less =
        k->unit == BENCH_WORDS && b->lanes.backend->halves_logits ? 4.0 - typed : 0.0;
    return k->rows * (double)zero_type_size(b->lanes.rows_type) + 4.0 * k->floats +
           k->typed * typed - less;
}

static sample make_sample(bench *b, const bench_kernel *k)
{
    int64_t elements = k->width * b->per_call[k->unit];
    double flops = k->flops * (double)b->lanes.T * (double)elements;
    double bytes = bytes_of(b, k) * (double)elements;
    double calls = flops > 0.0 ? SAMPLE_FLOPS / flops : SAMPLE_BYTES / bytes;
    if (is_on_device(b)) calls *= ON_DEVICE;
    if (b->lanes.length < LANE && calls > SMALL_SAMPLE) calls = SMALL_SAMPLE;
    int64_t n = (int64_t)calls + 1;
    return (sample){.b = b,
                    .k = k,
                    .calls = n,
                    .elements = elements,
                    .span = k->span * b->per_call[k->unit],
                    .bytes = flops > 0.0 ? 0.0 : bytes * (double)n,
                    .flops = flops * (double)n};
}

static zero_status measure(bench *b, row *r, const bench_work works[2])
{
    ZERO_TRY(zero_agree(&b->world, bench_series_init(&r->series, &b->clock, 2)));
    while (bench_series_wants_more(&r->series))
        ZERO_TRY(bench_series_add(&r->series, &b->clock, works, 1));
    return ZERO_OK;
}

static bool is_in_step(const bench *b, const bench_kernel *k)
{
    if (k->when == BENCH_HALVES) return b->lanes.type != ZERO_FP32;
    return k->when == BENCH_ALWAYS || b->options.config.plan.accumulation > 1;
}

static double elements_of_step(const bench *b, const bench_kernel *k)
{
    if (!is_in_step(b, k)) return 0.0;
    return (k->layer * (double)b->shape.layers + k->once) * b->per_step[k->unit];
}

static bench_work measure_of(bench *b, const bench_kernel *k, sample *s)
{
    if (s->flops > 0.0) return (bench_work){NULL, bench_products_run, &b->plain};
    return (bench_work){NULL, k->reads ? run_reads : run_stream, s};
}

static zero_status measure_kernel(bench *b, const bench_kernel *k, row *r)
{
    sample s = make_sample(b, k);
    const bench_work works[2] = {{NULL, run_kernel, &s}, measure_of(b, k, &s)};
    double amount = s.flops + s.bytes;
    double reference = s.flops > 0.0 ? products_flops(b) : s.bytes;
    ZERO_TRY(zero_agree(&b->world, bench_lanes_fill(&b->lanes)));
    ZERO_TRY(measure(b, r, works));
    double seconds = bench_seconds(&r->series, 0);
    r->name = k->name;
    r->is_flops = s.flops > 0.0;
    r->element = seconds / (double)(s.calls * s.elements);
    r->seconds = r->element * elements_of_step(b, k);
    r->rate = amount / seconds;
    r->reference = reference / bench_seconds(&r->series, 1);
    r->ratio = amount / reference / bench_ratio(&r->series, 0, 1);
    r->of_peak = r->rate / (r->is_flops ? b->flops_peak : b->reads_peak);
    return ZERO_OK;
}

/* The rates of this rank's cores and of their memory, while all ranks measure at once. */
static zero_status find_peaks(bench *b)
{
    const int threads = (int)zero_max(b->lanes.math.threads, 1);
    const size_t of_all = 512 << 20; /* more than caches have */
    b->flops_peak = b->reads_peak = NAN;
    if (is_on_device(b)) return ZERO_OK;
    b->flops_peak = zero_cpu_peak(b->lanes.type, threads).flops;
    return zero_cpu_read_rate(of_all / (size_t)(b->world.size * threads), threads,
                              &b->reads_peak);
}

static zero_status measure_products(bench *b, row *r)
{
    const bench_work works[2] = {{NULL, bench_products_run, &b->ours},
                                 {NULL, bench_products_run, &b->plain}};
    double flops = products_flops(b);
    ZERO_TRY(measure(b, r, works));
    double seconds = bench_seconds(&r->series, 0);
    int64_t positions = b->plain.rows * b->plain.microbatches;
    *r = (row){.name = "products of matrices",
               .is_flops = true,
               .element = seconds / flops,
               .seconds = seconds / flops * bench_products_flops(&b->shape, positions),
               .rate = flops / seconds,
               .reference = flops / bench_seconds(&r->series, 1),
               .ratio = 1.0 / bench_ratio(&r->series, 0, 1),
               .of_peak = flops / seconds / b->flops_peak,
               .series = r->series};
    return ZERO_OK;
}

/* ---- report ---- */

static int longer(const void *a, const void *b)
{
    double x = ((const row *)a)->seconds, y = ((const row *)b)->seconds;
    return (x < y) - (x > y);
}

static zero_status report_row(bench *b, const row *r, double all)
{
    const char *what = r->is_flops ? "Gflop/s" : "GB/s";
    printf("%-22s%12.4f%10.1f%10.1f %-8s%8.2f", r->name, 1e9 * r->element, 1e-9 * r->rate,
           1e-9 * r->reference, what, r->ratio);
    bench_print_number("%*.2f", 9, r->of_peak);
    printf("%12.2f%9.2f\n", 1e3 * r->seconds, 100.0 * r->seconds / all);
    return bench_report_add(
        &b->report,
        json_pack("{s:s, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:o}", "kernel", r->name,
                  "seconds_per_element", bench_number(r->element), "rate",
                  bench_number(r->rate), "reference", bench_number(r->reference), "unit",
                  r->is_flops ? "flop/s" : "bytes/s", "of_reference",
                  bench_number(r->ratio), "of_peak", bench_number(r->of_peak),
                  "seconds_per_step", bench_number(r->seconds), "share",
                  bench_number(r->seconds / all)));
}

static zero_status report(bench *b)
{
    double all = 0.0, share = 0.0;
    for (int i = 0; i < ROWS; i++) {
        all += b->rows[i].seconds;
        share += bench_core_share(&b->rows[i].series);
    }
    qsort(b->rows, ROWS, sizeof b->rows[0], longer);
    printf("\n%-22s%12s%10s%10s %-8s%8s%9s%12s%9s\n", "", "ns/element", "rate", "measure",
           "", "ratio", "of peak", "ms in step", "% of sum");
    for (int i = 0; i < ROWS; i++) ZERO_TRY(report_row(b, &b->rows[i], all));
    printf("%-22s%71.2f\n", "sum", 1e3 * all);
    if (!is_on_device(b))
        printf(
            "\npeak of a rank: %.1f Gflop/s between registers, %.1f GB/s read from memory",
            1e-9 * b->flops_peak, 1e-9 * b->reads_peak);
    printf(
        "\nproducts of matrices: ns per flop; measure: %s; in the\nworst part of a round a "
        "rank had its core for %.0f %% of the time (all kernels together)\n",
        is_on_device(b) ? "copies and products of the device's library"
                        : "sgemm, or scaling in place, or reading",
        100.0 * share / ROWS);
    return ZERO_OK;
}

/* Products and what follows them as one call, beside two. Backends that only have two print nothing. */
static zero_status report_fused(bench *b)
{
    bench_fused one = {&b->lanes, false}, two = {&b->lanes, true};
    const bench_work works[2] = {{NULL, bench_fused_run, &one},
                                 {NULL, bench_fused_run, &two}};
    row r = {0};
    if (!b->lanes.backend->fused) return ZERO_OK;
    ZERO_TRY(zero_agree(&b->world, bench_lanes_fill(&b->lanes)));
    zero_status st = measure(b, &r, works);
    if (st == ZERO_OK)
        printf(
            "products of a block with what follows them: %.3f ms, %.2f times the rate of "
            "two calls\n",
            1e3 * bench_seconds(&r.series, 0), 1.0 / bench_ratio(&r.series, 0, 1));
    bench_series_destroy(&r.series);
    return st;
}

static void print_arithmetic(const bench *b)
{
    char blas[128];
    zero_blas_name(blas, sizeof blas);
    if (is_on_device(b))
        printf("device %s\n", b->options.config.device);
    else
        printf("%s backend, %s kernels; %s\n", b->options.config.backend,
               zero_cpu_kernels_name(), blas);
}

static void print_setup(const bench *b)
{
    const zero_shape *s = &b->shape;
    const zero_config *c = &b->options.config;
    printf("%s, stage %d, %s: L %" PRId64 ", C %" PRId64 ", H %" PRId64 ", V %" PRId64
           "; per rank %d x %" PRId64 " x T %" PRId64 " tokens; ",
           c->model, c->plan.stage, zero_type_name(c->plan.type), s->layers, s->hidden,
           s->heads, s->vocab, c->plan.accumulation, c->plan.micro_batch, s->seq);
    if (b->lanes.rows_type != ZERO_FP32) printf("activations of 16 bits; ");
    if (b->lanes.dropout > 0.0f) printf("dropout %g; ", c->dropout);
    print_arithmetic(b);
}

/* ---- start and end ---- */

/* A lane holds the largest call; except for small models, it is larger than caches. */
static int64_t lane_length(const bench *b)
{
    int64_t most = zero_max(12 * b->per_call[BENCH_CHANNELS], b->per_call[BENCH_WORDS]);
    most = zero_max(most, 4 * b->per_call[BENCH_PARAMETERS]);
    most = zero_max(most, b->shape.seq * b->shape.hidden);
    most = zero_max(most, 4 * b->shape.hidden * b->shape.hidden);
    if (most <= LANE / 4) return most;
    return zero_max(is_on_device(b) ? 4 * LANE : LANE, most);
}

static void count_elements(bench *b)
{
    const zero_config *c = &b->options.config;
    const zero_shape *s = &b->shape;
    int64_t rows = c->plan.micro_batch * s->seq, psi = zero_shape_count(s);
    double M = (double)c->plan.accumulation, updated = (double)psi;
    if (zero_stage_at((int)c->plan.stage)->optimizer == ZERO_HOLD_PIECE)
        updated /= b->world.size;
    b->per_call[BENCH_CHANNELS] = rows * s->hidden;
    const zero_logits_chunk chunk = zero_device_logits(c->device);
    b->per_call[BENCH_WORDS] =
        zero_min(rows, chunk.rows) * zero_round_up(s->vocab, chunk.step);
    b->per_call[BENCH_PARAMETERS] =
        zero_min(psi, is_on_device(b) ? ON_DEVICE / 4 * PARAMS : PARAMS);
    b->per_step[BENCH_CHANNELS] = M * (double)(rows * s->hidden);
    b->per_step[BENCH_WORDS] = M * (double)rows * (double)s->vocab;
    b->per_step[BENCH_PARAMETERS] = updated;
}

static zero_status init_lanes(bench *b)
{
    const zero_shape *s = &b->shape;
    const zero_config *c = &b->options.config;
    int64_t length = lane_length(b);
    b->lanes =
        (bench_lanes){.type = c->plan.type,
                      .rows_type = zero_config_activations(c),
                      .rows = c->plan.micro_batch * s->seq,
                      .T = s->seq,
                      .C = s->hidden,
                      .H = s->heads,
                      .V = s->vocab,
                      .stride = zero_round_up(s->vocab, zero_device_logits(c->device).step),
                      .dropout = (float)c->dropout,
                      .words = zero_min(length / s->hidden, s->vocab),
                      .length = length,
                      .backend = b->lanes.backend,
                      .math.device = b->lanes.math.device};
    return bench_lanes_init(&b->lanes);
}

/* One layer and the same part of the vocabulary: products in a step's proportions. */
static zero_status init_products(bench *b)
{
    const zero_config *c = &b->options.config;
    zero_shape part = b->shape;
    part.layers = 1;
    part.vocab = zero_max(b->shape.vocab / b->shape.layers, 1);
    int64_t rows = c->plan.micro_batch * b->shape.seq;
    const bench_products_by ours = {.backend = b->lanes.backend,
                                    .math = &b->lanes.math,
                                    .type = b->lanes.type,
                                    .rows_type = b->lanes.rows_type,
                                    .logits = zero_device_logits(c->device)};
    bench_products_by measure = {.logits = ours.logits};
    if (is_on_device(b)) {
        measure = ours;
        measure.by_yardstick = true;
        measure.logits.rows = rows;
    }
    ZERO_TRY(bench_products_init(&b->plain, &measure, &part, rows, c->plan.accumulation));
    return bench_products_init(&b->ours, &ours, &part, rows, c->plan.accumulation);
}

/* Collective. */
static zero_status find_backend(bench *b)
{
    const zero_config *c = &b->options.config;
    zero_device_place place;
    ZERO_TRY(zero_backend_find(c->backend, &b->lanes.backend));
    ZERO_TRY(zero_machine_place(c->device, &b->world, &place));
    if (!place.backend) return ZERO_OK;
    b->lanes.backend = place.backend;
    b->lanes.math.device = place.device;
    if (place.backend->yardstick) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "--device %s: it has no library of its own to measure against",
                     c->device);
}

static zero_status prepare(bench *b)
{
    const zero_config *c = &b->options.config;
    if (b->options.n_stages > 0 || b->options.n_dtypes > 0)
        return zero_fail(ZERO_ERR_INVALID,
                         "bench_kernels takes one --stage and one --dtype; --stages and "
                         "--dtypes are for bench_step");
    ZERO_TRY(bench_step_options_complete(&b->options, b->world.size));
    ZERO_TRY(zero_config_shape(c, ZERO_VOCAB_BYTES, &b->shape));
    zero_blas_set_threads(1);
    b->clock = (bench_clock){.comm = &b->world, .rounds = (int)b->options.rounds};
    count_elements(b);
    ZERO_TRY(init_lanes(b));
    ZERO_TRY(find_peaks(b));
    return init_products(b);
}

static void destroy(bench *b)
{
    for (int i = 0; i < ROWS; i++) bench_series_destroy(&b->rows[i].series);
    bench_products_destroy(&b->plain);
    bench_products_destroy(&b->ours);
    bench_lanes_destroy(&b->lanes);
    zero_comm_destroy(&b->world);
}

static zero_status run(bench *b)
{
    const bench_options where = {.json = b->options.json};
    ZERO_TRY(find_backend(b));
    ZERO_TRY(zero_agree(&b->world, prepare(b)));
    ZERO_TRY(
        bench_report_open(&b->report, &b->clock, &where, "each kernel beside its measure"));
    print_setup(b);
    fflush(stdout);
    for (int i = 0; i < BENCH_KERNELS; i++)
        ZERO_TRY(measure_kernel(b, &bench_kernels[i], &b->rows[i]));
    ZERO_TRY(measure_products(b, &b->rows[PRODUCTS]));
    ZERO_TRY(report(b));
    ZERO_TRY(report_fused(b));
    return zero_agree(&b->world, bench_report_close(&b->report));
}

static zero_status measure_all(void *options, const zero_options *given);

static const zero_command command = {
    .name = "bench_kernels",
    .usage = "mpirun -n RANKS bench_kernels [options]",
    .about = "Measures each kernel of a training step against its bound: memory, or sgemm. "
             "Without options the step is one of GPT-2 124M with --seq 256 and 4 sequences "
             "over all ranks.",
    .example = "mpirun -n 2 build/bench_kernels --dtype bf16",
    .exits = ZERO_EXIT_OTHER | ZERO_EXIT_ENVIRONMENT | ZERO_EXIT_DATA | ZERO_EXIT_WATCHDOG,
    .tables = bench_step_tables,
    .n_tables = BENCH_STEP_TABLES,
    .size = sizeof(bench_step_options),
    .complete = bench_step_options_complete_help,
    .run = measure_all,
};

static zero_status measure_all(void *options, const zero_options *given)
{
    bench b = {.options = *(const bench_step_options *)options};
    ZERO_TRY(bench_step_options_take(&b.options, given));
    ZERO_TRY(zero_launch_start(NULL, NULL));
    ZERO_TRY(zero_comm_world(&b.world));
    ZERO_TRY(run(&b));
    destroy(&b);
    return zero_launch_stop();
}

int main(int argc, char **argv)
{
    return bench_main(&command, argc, argv);
}
