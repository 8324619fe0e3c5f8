/* bench_step - training steps against sgemm, and where their time goes.
 *
 *     round   sgemm | engine 0 | sgemm | engine 1 | ... | sgemm
 *
 * Each engine is a stage and a dtype. In every round each takes its steps between two measurements
 * of the same steps' matrix products (bench_products.h) on the same ranks: `utilisation` is the
 * median, over the rounds, of the time of these over the time of the steps. Engines that do not fit
 * into memory together are opened and warmed up anew in each round.
 *
 *     mpirun -n 2 build/bench_step --help */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/number.h"
#include "base/topology.h"
#include "bench_main.h"
#include "bench_products.h"
#include "bench_report.h"
#include "bench_shares.h"
#include "bench_step_options.h"
#include "comm/launch.h"
#include "data/tokenizer.h"
#include "math/backends.h"
#include "math/blas.h"
#include "math/peak.h"
#include "nn/shape.h"
#include "plan/plan.h"

#define ENGINES (BENCH_STAGES * BENCH_DTYPES)

typedef struct {
    bench_step_options options;
    zero_comm world;
    zero_model model, cut; /* whole; with --tp-slices, in slices */
    const zero_model *part;
    const zero_shape *shape;
    zero_algorithm collectives;
    const zero_backend *backend;
    bench_products products;
    int n;
    zero_config configs[ENGINES]; /* which differ in stage and dtype */
    bench_engine engines[ENGINES];
    bench_engine *resident;
    bench_series series; /* work 2 i + 1 is engine i's, the others are sgemm */
    bench_clock clock;
    bench_report report;
} bench;

/* ---- engines ---- */

static void describe_engine(bench *b, int i)
{
    zero_config *c = &b->configs[i];
    *c = b->options.config;
    c->plan.stage = b->options.stages[i / b->options.n_dtypes];
    c->plan.type = b->options.dtypes[i % b->options.n_dtypes];
    zero_plan_input plan = zero_engine_place(c->plan, b->part, &b->world);
    plan.collectives = b->collectives;
    zero_config_plan(c, &plan);
    b->engines[i] = (bench_engine){
        .spec = {.plan = plan, .backend = b->backend, .seed = c->seed, .eval_batches = 1},
        .comm = &b->world,
        .config = c,
        .steps = (int)b->options.steps};
}

/* Bytes that all engines of this rank take together, and those of the largest. */
static zero_status needed_bytes(const bench *b, size_t *together, size_t *largest)
{
    *together = *largest = 0;
    for (int i = 0; i < b->n; i++) {
        zero_plan_ledger ledger;
        ZERO_TRY(zero_plan_measure(&b->engines[i].spec.plan, &ledger));
        *together += ledger.needed;
        *largest = zero_max_size(*largest, ledger.needed);
    }
    return ZERO_OK;
}

/* A fifth of the memory stays free for pages of files and other processes. */
static zero_status choose_residence(const bench *b, bool *together)
{
    zero_topology machine;
    size_t all, largest;
    ZERO_TRY(zero_topology_read(&machine));
    ZERO_TRY(needed_bytes(b, &all, &largest));
    size_t node_ranks = (size_t)zero_layout_local_size(&b->world.layout, b->world.rank);
    size_t limit = machine.memory_available / 5 * 4 / node_ranks;
    *together = all <= limit;
    if (largest <= limit) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_NOMEM,
        "a step needs %.2f GiB per rank, and %.2f GiB are available: use a smaller model "
        "or --micro-batch, or fewer ranks",
        (double)largest / 0x1p30, (double)limit / 0x1p30);
}

static zero_status describe_engines(bench *b)
{
    bool together = true, alone;
    b->n = b->options.n_stages * b->options.n_dtypes;
    for (int i = 0; i < b->n; i++) describe_engine(b, i);
    ZERO_TRY(zero_agree(&b->world, choose_residence(b, &together)));
    ZERO_TRY(zero_comm_any(&b->world, !together, &alone));
    for (int i = 0; alone && i < b->n; i++) b->engines[i].resident = &b->resident;
    if (alone) printf("engines do not fit into memory together: opened one at a time\n");
    return ZERO_OK;
}

/* ---- measure ---- */

static zero_status measure(bench *b)
{
    bench_work works[BENCH_WORKS];
    for (int w = 0; w <= 2 * b->n; w++)
        works[w] = w % 2 ? bench_engine_work(&b->engines[w / 2])
                         : (bench_work){NULL, bench_products_run, &b->products};
    while (bench_series_wants_more(&b->series))
        ZERO_TRY(bench_series_add(&b->series, &b->clock, works, 1));
    return ZERO_OK;
}

/* Seconds of one step of engine i. */
static double step_seconds(const bench *b, int i)
{
    return bench_seconds(&b->series, 2 * i + 1) / (double)b->options.steps;
}

/* The rate of engine i's products over that of sgemm. */
static bench_spread share_of_sgemm(const bench *b, int i)
{
    int w = 2 * i + 1, steps = (int)b->options.steps;
    bench_spread x = bench_ratio_between(&b->series, w - 1, w + 1, w);
    return (bench_spread){x.median * steps, x.least * steps, x.most * steps};
}

/* ---- report ---- */

static int64_t positions(const bench *b)
{
    return b->options.config.global_batch * b->shape->seq;
}

static double products_flops(const bench *b)
{
    return bench_products_flops(b->shape, positions(b));
}

static double model_flops(const bench *b)
{
    return zero_shape_flops(b->shape) * (double)positions(b);
}

/* Gflop/s of one rank while all ranks work. */
static double rank_rate(const bench *b, double flops, double seconds)
{
    return 1e-9 * flops / seconds / b->world.size;
}

/* The rate of sgemm before and after the steps of engine i. */
static double sgemm_rate(const bench *b, int i)
{
    double seconds =
        bench_seconds(&b->series, 2 * i) + bench_seconds(&b->series, 2 * i + 2);
    return rank_rate(b, products_flops(b), 0.5 * seconds);
}

static void print_setup(const bench *b)
{
    const zero_shape *s = b->shape;
    const zero_config *c = &b->options.config;
    char blas[128];
    zero_blas_name(blas, sizeof blas);
    printf("%s: L %" PRId64 ", C %" PRId64 ", H %" PRId64 ", T %" PRId64 ", V %" PRId64
           "; %s backend, %s kernels; %s\n",
           c->model, s->layers, s->hidden, s->heads, s->seq, s->vocab, c->backend,
           zero_cpu_kernels_name(), blas);
    printf("step: %d ranks x %d microbatches x %" PRId64 " sequences x T %" PRId64
           " = %" PRId64 " tokens; %d steps per round; collectives %s\n",
           b->world.size, c->plan.accumulation, c->plan.micro_batch, s->seq, positions(b),
           (int)b->options.steps, zero_algorithm_name(b->collectives));
    printf("model flops = (6 N + 6 L T C) tokens = %.4g + %.4g Gflop per step; "
           "N = 12 L C^2 + V C = %.4g M\n"
           "utilisation = flops / (time of a step * sgemm's rate), of 6 N (the products) "
           "and of all flops;\n"
           "sgemm's rate is that of the same products before and after the steps, on all "
           "ranks at once;\nof the peak: all flops, beside multiply-adds between "
           "registers\n",
           1e-9 * products_flops(b), 1e-9 * (model_flops(b) - products_flops(b)),
           1e-6 * zero_shape_multiplied(s));
}

/* The peak of a rank's cores for this type in flops per second; NAN on a device. */
static double peak_of(const bench *b, const zero_config *c)
{
    const int threads = (int)zero_max(c->plan.threads, 1);
    return b->backend->memory ? NAN : zero_cpu_peak(c->plan.type, threads).flops;
}

static void print_table_header(const bench *b)
{
    printf(
        "\nrounds: %d%s; in the worst part of a round a rank had its core for %.0f %% of "
        "the time\n\n",
        b->series.kept, bench_mark(&b->series), 100.0 * bench_core_share(&b->series));
    printf("%*s%26s%31s\n", 31, "", "Gflop/s per rank", "utilisation");
    printf("%5s %5s%10s%10s%8s%8s%9s%11s%16s%8s%9s%9s%9s\n", "stage", "dtype", "ms",
           "tokens/s", "6 N", "all", "sgemm", "of 6 N", "(least..most)", "of all",
           "of peak", "x first", "exposed");
}

static zero_status report_engine(bench *b, int i, const bench_shares *shares)
{
    const zero_config *c = &b->configs[i];
    double seconds = step_seconds(b, i);
    bench_spread products = share_of_sgemm(b, i);
    double model = products.median * model_flops(b) / products_flops(b);
    double flops = model_flops(b);
    double ratio = bench_ratio(&b->series, 2 * i + 1, 1);
    double of_peak = 1e9 * rank_rate(b, flops, seconds) / peak_of(b, c);
    printf("%5d %5s", c->plan.stage, zero_type_name(c->plan.type));
    bench_print_number("%*.2f", 10, 1e3 * seconds);
    bench_print_number("%*.0f", 10, (double)positions(b) / seconds);
    bench_print_number("%*.1f", 8, rank_rate(b, products_flops(b), seconds));
    bench_print_number("%*.1f", 8, rank_rate(b, flops, seconds));
    bench_print_number("%*.1f", 9, sgemm_rate(b, i));
    bench_print_number("%*.3f", 11, products.median);
    bench_print_number("%*.3f..", 9, products.least);
    bench_print_number("%-*.3f", 5, products.most);
    bench_print_number("%*.3f", 8, model);
    bench_print_number("%*.3f", 9, of_peak);
    bench_print_number("%*.3f", 9, ratio);
    printf("%8.2f%%\n", 100.0 * shares->slowest.exposed);
    return bench_report_add(
        &b->report,
        json_pack("{s:I, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:i, "
                  "s:i, s:i, s:o, s:o}",
                  "stage", (json_int_t)c->plan.stage, "dtype", zero_type_name(c->plan.type),
                  "step_seconds", bench_number(seconds), "tokens_per_second",
                  bench_number((double)positions(b) / seconds), "model_flops_per_step",
                  bench_number(flops), "sgemm_flops_per_second",
                  bench_number(1e9 * sgemm_rate(b, i)), "products_of_sgemm",
                  bench_number(products.median), "model_of_sgemm", bench_number(model),
                  "products_of_sgemm_least", bench_number(products.least),
                  "products_of_sgemm_most", bench_number(products.most), "core_share",
                  bench_number(bench_core_share(&b->series)), "over_first",
                  bench_number(ratio), "of_peak", bench_number(of_peak), "kept",
                  b->series.kept, "taken", b->series.taken, "slowest_rank",
                  shares->slowest_rank, "share_rank_0", bench_share_object(&shares->first),
                  "share_slowest_rank", bench_share_object(&shares->slowest)));
}

static zero_status report(bench *b)
{
    bench_shares shares[ENGINES];
    for (int i = 0; i < b->n; i++)
        ZERO_TRY(bench_shares_gather(&b->engines[i], &shares[i]));
    print_table_header(b);
    for (int i = 0; i < b->n; i++) ZERO_TRY(report_engine(b, i, &shares[i]));
    for (int i = 0; i < b->n; i++) bench_shares_print(&shares[i], &b->configs[i]);
    fflush(stdout);
    return ZERO_OK;
}

/* ---- start and end ---- */

static zero_status choose_collectives(bench *b)
{
    const char *why, *wanted = b->options.config.collectives;
    b->collectives = zero_algorithm_choose(&b->world.layout, &why);
    bool found = zero_algorithm_find(wanted, &b->collectives);
    if (!found && strcmp(wanted, "auto") != 0)
        return zero_fail(ZERO_ERR_INVALID, "--collectives %s: no such algorithm", wanted);
    return ZERO_OK;
}

/* Beside sgemm a step with --tp would look slow for what it does not do: products of other
 * shapes. Slices cost what they cost on one rank. */
static zero_status cut_model(bench *b, const zero_shape *shape)
{
    const zero_tp *tp = &b->options.config.tp;
    if (tp->ranks > 1)
        return zero_fail(ZERO_ERR_INVALID,
                         "--tp %" PRId64 ": bench_step measures beside whole products; "
                         "give --tp-slices for what slices cost, or compare runs of zero "
                         "train --metrics",
                         tp->ranks);
    ZERO_TRY(zero_tp_check(tp, shape));
    return zero_tp_cut(tp, &b->model, b->world.rank, &b->cut, &b->part);
}

static zero_status prepare_local(bench *b)
{
    zero_shape shape;
    const zero_config *c = &b->options.config;
    ZERO_TRY(bench_step_options_complete(&b->options, b->world.size));
    if (zero_config_has_device(c))
        return zero_fail(
            ZERO_ERR_INVALID,
            "--device %s: bench_step measures beside the CPU's BLAS; a device's "
            "kernels have bench_kernels, its steps zero train --metrics",
            c->device);
    ZERO_TRY(zero_backend_find(c->backend, &b->backend));
    ZERO_TRY(zero_config_shape(c, ZERO_VOCAB_BYTES, &shape));
    ZERO_TRY(zero_model_build(&shape, &b->model));
    ZERO_TRY(cut_model(b, &shape));
    b->shape = b->model.shape;
    zero_blas_set_threads(c->plan.threads > 0 ? (int)c->plan.threads : 1);
    b->clock = (bench_clock){.comm = &b->world, .rounds = (int)b->options.rounds};
    ZERO_TRY(bench_series_init(&b->series, &b->clock,
                               2 * b->options.n_stages * b->options.n_dtypes + 1));
    return bench_products_init(&b->products, &(bench_products_by){0}, b->shape,
                               c->plan.micro_batch * b->shape->seq, c->plan.accumulation);
}

static zero_status run(bench *b)
{
    const zero_config *c = &b->options.config;
    if (c->fake_nodes > 0)
        ZERO_TRY(zero_comm_pretend_blocks(&b->world, (int)c->fake_nodes));
    ZERO_TRY(zero_agree(&b->world, prepare_local(b)));
    ZERO_TRY(zero_agree(&b->world, choose_collectives(b)));
    const bench_options where = {.fake_nodes = (int)c->fake_nodes, .json = b->options.json};
    ZERO_TRY(bench_report_open(&b->report, &b->clock, &where,
                               "sgemm before and after each engine's steps"));
    print_setup(b);
    ZERO_TRY(describe_engines(b));
    fflush(stdout);
    ZERO_TRY(measure(b));
    ZERO_TRY(report(b));
    return zero_agree(&b->world, bench_report_close(&b->report));
}

static void destroy(bench *b)
{
    for (int i = 0; i < b->n; i++) bench_engine_close(&b->engines[i]);
    bench_series_destroy(&b->series);
    bench_products_destroy(&b->products);
    zero_model_destroy(&b->cut);
    zero_model_destroy(&b->model);
    zero_comm_destroy(&b->world);
}

static zero_status bench_steps(void *options, const zero_options *given);

static const zero_command command = {
    .name = "bench_step",
    .usage = "mpirun -n RANKS bench_step [options]",
    .about =
        "Measures training steps against sgemm on the same ranks at the same time: step "
        "time by class of instructions, tokens/s, the model's flops and their rate "
        "beside sgemm's (utilisation). Model flops are (6 N + 6 L T C) per token, "
        "N = 12 L C^2 + V C.\n"
        "Without options it runs one engine of GPT-2 124M with --seq 256 and 4 sequences "
        "per step over all ranks: about a minute on two cores of 150 Gflop/s, two if "
        "they are shared. Each further stage and dtype takes as long.",
    .example = "mpirun -n 2 build/bench_step --stages 0,1 --rounds 5",
    .exits = ZERO_EXIT_OTHER | ZERO_EXIT_ENVIRONMENT | ZERO_EXIT_DATA | ZERO_EXIT_WATCHDOG,
    .tables = bench_step_tables,
    .n_tables = BENCH_STEP_TABLES,
    .size = sizeof(bench_step_options),
    .complete = bench_step_options_complete_help,
    .run = bench_steps,
};

static zero_status bench_steps(void *options, const zero_options *given)
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
