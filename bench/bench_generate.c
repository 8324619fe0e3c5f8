/* bench_generate - tokens per second of GPT-2 124M (random weights), with the cache of keys and values
 * and without.
 *
 * A row is a context, the number of tokens that a text has when the next one is computed. `cached` walks
 * the program of a token, for N texts at one time; `whole` computes one text anew, as generation without
 * a cache does for each token, and as one with a cache does once for a prompt. Medians of ROUNDS rounds,
 * in which both follow each other. With one thread it is the thread's CPU time: other processes then
 * show less. `weights` is what reading all parameters once takes of the cached time at the speed at which
 * these threads read memory, which stands in the first line.
 *
 * With --activations bf16 or fp16 the parameters are of that type, too, and so is the cache.
 *
 *     build/bench_generate [--texts N] [--threads N] [--no-whole] [--activations TYPE] */
#include <stddef.h>
#include <stdio.h>
#include <time.h>

#include "base/fail.h"
#include "base/type.h"
#include "bench_main.h"
#include "bench_median.h"
#include "cli/options.h"
#include "comm/divide.h"
#include "comm/launch.h"
#include "engine/engine.h"
#include "math/threads.h"
#include "nn/shape.h"

enum { ROUNDS = 5, TOKENS = 8 };

static const int64_t contexts[] = {32, 512, 990};
enum { CONTEXTS = sizeof contexts / sizeof contexts[0] };

typedef struct {
    int64_t layers, hidden, heads, vocab;
    int64_t texts, threads, context; /* context 0: all */
    bool no_whole;
    const char *activations;
} wish;

typedef struct {
    const wish *w;
    zero_model model;
    zero_comm world;
    zero_engine engine;
    double read; /* seconds that reading all parameters takes */
} bench;

static double seconds_of(const bench *b)
{
    struct timespec t;
    clock_gettime(b->w->threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static zero_status run(bench *b, const zero_run_input *in, int times, double *seconds)
{
    double start = seconds_of(b);
    for (int i = 0; i < times; i++) {
        zero_run_output out;
        ZERO_TRY(zero_runner_run(&b->engine.runner, in, &out));
    }
    *seconds = (seconds_of(b) - start) / times;
    return ZERO_OK;
}

/* The time does not depend on what the cache has. */
static zero_status time_token(bench *b, int64_t context, double *seconds)
{
    int32_t last[ZERO_TEXTS] = {0};
    int64_t past[ZERO_TEXTS];
    for (int64_t t = 0; t < ZERO_TEXTS; t++) past[t] = context - 1;
    const zero_run_input in = {
        .program = ZERO_PROGRAM_TOKEN, .prompt = last, .past = past, .loss_scale = 1.0};
    return run(b, &in, TOKENS, seconds);
}

static zero_status time_whole(bench *b, int64_t context, double *seconds)
{
    static const int32_t tokens[1024];
    const zero_run_input in = {.program = ZERO_PROGRAM_GENERATE,
                               .prompt = tokens,
                               .T = context,
                               .loss_scale = 1.0};
    return run(b, &in, 1, seconds);
}

/* ---- the speed of memory ---- */

typedef struct {
    const bench *b;
    size_t bytes; /* of all parameters */
} reading;

/* A thread's share of each buffer, 64 bytes at a time: no calculation is faster. */
static void read_share(int index, void *arg)
{
    const reading *all = arg;
    const zero_runner *r = &all->b->engine.runner;
    static volatile uint64_t sink;
    uint64_t sum[8] = {0};
    for (int g = 0; g < all->b->model.n_groups; g++) {
        const int id = r->schedule->groups[g].param;
        const uint64_t *x = zero_runner_buffer(r, id);
        const size_t n = r->schedule->buffers[id].bytes / 8,
                     threads = (size_t)all->b->w->threads;
        const size_t first = n * (size_t)index / threads,
                     end = n * ((size_t)index + 1) / threads;
        for (size_t i = first; i + 8 <= end; i += 8)
            for (int k = 0; k < 8; k++) sum[k] += x[i + (size_t)k];
    }
    for (int k = 0; k < 8; k++) sink += sum[k];
}

static double time_reading(const bench *b, size_t *bytes)
{
    const zero_schedule *schedule = b->engine.runner.schedule;
    reading all = {.b = b};
    double seconds[ROUNDS];
    for (int g = 0; g < b->model.n_groups; g++)
        all.bytes += schedule->buffers[schedule->groups[g].param].bytes;
    for (int round = -1; round < ROUNDS; round++) {
        const double start = seconds_of(b);
        zero_cpu_each_thread((int)b->w->threads, read_share, &all);
        if (round >= 0) seconds[round] = seconds_of(b) - start;
    }
    *bytes = all.bytes;
    return bench_median(seconds, ROUNDS);
}

/* ---- texts ---- */

static zero_status measure(bench *b, const char *type, int64_t context)
{
    double cached[ROUNDS], whole[ROUNDS], ratio[ROUNDS];
    for (int round = -1; round < ROUNDS; round++) { /* the first one warms up */
        double token, all = 0.0;
        ZERO_TRY(time_token(b, context, &token));
        if (!b->w->no_whole) ZERO_TRY(time_whole(b, context, &all));
        if (round < 0) continue;
        cached[round] = token / (double)b->w->texts;
        whole[round] = all;
        ratio[round] = all / cached[round];
    }
    double token = bench_median(cached, ROUNDS), all = bench_median(whole, ROUNDS);
    printf("%-5s %7lld %11.1f", type, (long long)context, 1.0 / token);
    if (b->w->no_whole)
        printf(" %11s %8s", "-", "-");
    else
        printf(" %11.2f %8.1f", 1.0 / all, bench_median(ratio, ROUNDS));
    printf(" %10.2f\n", b->read / (token * (double)b->w->texts));
    return ZERO_OK;
}

static zero_status measure_type(bench *b, zero_type type, zero_type activations)
{
    ZERO_TRY(zero_model_activate(&b->model, activations));
    zero_plan_input plan = zero_plan_input_standard(&b->model, 1, 0);
    plan = zero_engine_place(plan, &b->model, &b->world);
    plan.forward_only = true;
    plan.type = type;
    plan.texts = b->w->texts;
    plan.threads = b->w->threads;
    const zero_engine_spec spec = {
        .plan = plan, .backend = &zero_backend_cpu, .eval_batches = 1};
    ZERO_TRY(zero_engine_init(&b->engine, &spec, &b->world));
    size_t bytes;
    b->read = time_reading(b, &bytes);
    printf("%-5s %7s reads %.1f GB/s\n", zero_type_name(type), "-",
           1e-9 * (double)bytes / b->read);
    for (int i = 0; i < CONTEXTS; i++)
        if (b->w->context == 0 || b->w->context == contexts[i])
            ZERO_TRY(measure(b, zero_type_name(type), contexts[i]));
    zero_engine_destroy(&b->engine);
    return ZERO_OK;
}

static zero_status measure_all(const wish *w)
{
    const zero_shape shape = {.layers = w->layers,
                              .hidden = w->hidden,
                              .heads = w->heads,
                              .seq = 1024,
                              .vocab = w->vocab};
    bench b = {.w = w};
    ZERO_TRY(zero_launch_start(NULL, NULL));
    ZERO_TRY(zero_comm_world(&b.world));
    ZERO_TRY(zero_comm_divide(&b.world, 1, 0, 1));
    if (b.world.size > 1)
        return zero_fail(ZERO_ERR_INVALID, "%d ranks: expected one", b.world.size);
    ZERO_TRY(zero_model_build(&shape, &b.model));
    printf("%lld texts at one time, %lld threads\n"
           "type  context  cached t/s   whole t/s    ratio    weights\n",
           (long long)w->texts, (long long)w->threads);
    zero_type activations = ZERO_FP32;
    (void)zero_type_find(w->activations, &activations); /* an option's name is valid */
    if (activations == ZERO_FP32) {
        ZERO_TRY(measure_type(&b, ZERO_FP32, ZERO_FP32));
        ZERO_TRY(measure_type(&b, ZERO_BF16, ZERO_FP32));
    } else {
        ZERO_TRY(measure_type(&b, activations, activations));
    }
    zero_model_destroy(&b.model);
    return zero_launch_leave(&b.world);
}

/* ---- start ---- */

#define SIZE(field) \
    .kind = ZERO_OPTION_WHOLE, .offset = offsetof(wish, field), .argument = "N", .min = 1, \
    .max = 1 << 20

/* clang-format off */
static const zero_option rows[] = {
    {.group = "Model", .name = "layers", SIZE(layers), .standard = "12", .help = "blocks"},
    {.name = "hidden", SIZE(hidden), .standard = "768", .help = "channels"},
    {.name = "heads", SIZE(heads), .standard = "12", .help = "of attention"},
    {.name = "vocab", SIZE(vocab), .standard = "50257", .help = "words"},
    {.group = "Texts", .name = "texts", .kind = ZERO_OPTION_WHOLE, .offset = offsetof(wish, texts), .argument = "N",
     .min = 1, .max = ZERO_TEXTS, .standard = "1", .help = "texts that are generated at one time"},
    {.name = "context", .kind = ZERO_OPTION_WHOLE, .offset = offsetof(wish, context), .argument = "N",
     .min = 0, .max = 990, .standard = "0", .help = "32, 512 or 990 alone; 0: all of them"},
    {.name = "no-whole", .kind = ZERO_OPTION_FLAG, .offset = offsetof(wish, no_whole), .standard = "off",
     .help = "do not compute whole texts"},
    {.name = "activations", .kind = ZERO_OPTION_CHOICE, .offset = offsetof(wish, activations), .name_at = zero_type_name_at,
     .standard = "fp32", .help = "of the cache, too; bf16 or fp16: of parameters as well, and no other type is measured"},
    {.group = "Machine", .name = "threads", .kind = ZERO_OPTION_WHOLE, .offset = offsetof(wish, threads), .argument = "N",
     .min = 1, .max = 1024, .standard = "1", .help = "threads that compute"},
    {.name = NULL},
};
/* clang-format on */

static const zero_option_table table = {.rows = rows};

static zero_status bench_generate(void *options, const zero_options *given);

static const zero_command command = {
    .name = "bench_generate",
    .usage = "bench_generate [options]",
    .about =
        "Measures tokens per second of GPT-2 124M on one machine, with a cache of keys and "
        "values and without.",
    .example = "build/bench_generate --texts 8",
    .tables = &table,
    .n_tables = 1,
    .size = sizeof(wish),
    .exits = ZERO_EXIT_ENVIRONMENT,
    .run = bench_generate,
};

static zero_status check(const wish *w)
{
    bool is_known = w->context == 0;
    for (int i = 0; i < CONTEXTS; i++) is_known = is_known || w->context == contexts[i];
    if (!is_known)
        return zero_fail(ZERO_ERR_INVALID, "--context %lld: expected 0, 32, 512 or 990",
                         (long long)w->context);
    if (w->threads == 1 || zero_cpu_has_threads()) return ZERO_OK;
    return zero_fail(ZERO_ERR_UNSUPPORTED, "this build has no threads: --threads 1");
}

static zero_status bench_generate(void *options, const zero_options *given)
{
    (void)given;
    ZERO_TRY(check(options));
    return measure_all(options);
}

int main(int argc, char **argv)
{
    return bench_main(&command, argc, argv);
}
