/* bench_gemm - the products of a whole GPT-2 124M training step, against sgemm.
 *
 * Every linear layer of one block (12 of them in a step) and the head, in chunks of 256 rows,
 * forward and both gradients, alternately: one call of sgemm each; sgemm in tiles, which the
 * backend calls where it has no kernels; then each of its kernels that this machine can run,
 * those for bf16 on bf16 weights. Medians of ROUNDS rounds of the thread's CPU time, on one core,
 * so that other processes show less.
 *
 * With --slices the products that tensor parallelism cuts along k, beside the same of one sum
 * (bench_slices.h).
 *
 *     build/bench_gemm [TOKENS] */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fail.h"
#include "base/quantity.h"
#include "bench_main.h"
#include "bench_median.h"
#include "bench_slices.h"
#include "cli/options.h"
#include "math/blas.h"
#include "math/cpu_packed.h"
#include "math/cpu_state.h"

enum { PLAIN, TILES, KERNELS, VARIANTS = KERNELS + ZERO_PACKED_VARIANTS };

enum { ROUNDS = 7, MOST_ROUNDS = 100, SLICES_ROUNDS = 41, BLOCKS = 12, CHUNK = 256 };

/* y[tokens, out] = x[tokens, in] w, w as stored [in, out], or [out, in] for the head */
typedef struct {
    const char *name;
    int64_t in, out;
    bool head;
} layer;

static const layer layers[] = {{"qkv", 768, 2304, false},
                               {"attention, out", 768, 768, false},
                               {"MLP, up", 768, 3072, false},
                               {"MLP, down", 3072, 768, false},
                               {"head", 768, 50257, true}};

enum { LAYERS = sizeof layers / sizeof layers[0], PRODUCTS = 3 };

static const char *const products[PRODUCTS] = {"forward", "d(x)", "d(W)"};

typedef struct {
    float *x, *y, *w, *result;
    uint16_t *half; /* w */
    zero_math math[VARIANTS];
    zero_type type[VARIANTS];
    const char *names[VARIANTS];
    int rounds, variants, first, end; /* those that are measured: [first, end) */
    double longest, last;
} bench;

typedef struct {
    int64_t slices, hidden, rounds;
    const char *kernels;
} wish;

static double thread_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void note_gap(void *arg)
{
    bench *b = arg;
    double now = thread_seconds();
    if (now - b->last > b->longest) b->longest = now - b->last;
    b->last = now;
}

static void *memory(size_t bytes)
{
    void *mem = aligned_alloc(64, (size_t)zero_round_up((int64_t)bytes, 64));
    if (!mem) {
        fprintf(stderr, "bench_gemm: no memory for %zu bytes\n", bytes);
        exit(3);
    }
    return mem;
}

static float *random_floats(int64_t n)
{
    zero_rng rng = {.purpose = ZERO_RNG_TEST};
    float *x = memory((size_t)n * sizeof *x);
    zero_rng_normal(&rng, 0, n, x);
    return x;
}

static int64_t rows_of(const layer *l, int64_t tokens)
{
    return l->head && tokens > CHUNK ? CHUNK : tokens;
}

/* Multiplies as nn/layers.c and nn/gpt2_head.c do. No result is read again: factors would grow
 * from product to product and be infinite in the third layer. */
static zero_gemm product_of(const bench *b, const layer *l, int product, int64_t rows,
                            zero_type type)
{
    zero_gemm g = {.factors = type, .c = b->result};
    const void *w = type == ZERO_BF16 ? (const void *)b->half : b->w;
    if (product == 2) { /* x' dy; for the head dy' x */
        g.transpose_a = true, g.k = rows;
        g.m = l->head ? l->out : l->in, g.n = l->head ? l->in : l->out;
        g.a = l->head ? b->y : b->x, g.b = l->head ? b->x : b->y;
        return g;
    }
    g.m = rows, g.b = w, g.b_type = type;
    g.n = product ? l->in : l->out, g.k = product ? l->out : l->in;
    g.transpose_b = l->head ? !product : product;
    g.a = product ? b->y : b->x;
    return g;
}

static double time_of(bench *b, int variant, const layer *l, int product, int64_t tokens)
{
    zero_gemm g = product_of(b, l, product, rows_of(l, tokens), b->type[variant]);
    double start = thread_seconds();
    b->last = start, b->longest = 0.0;
    if (variant == PLAIN)
        zero_blas_gemm(&g);
    else
        zero_backend_cpu.gemm(&b->math[variant], &g);
    note_gap(b);
    return thread_seconds() - start;
}

static void open_variants(bench *b)
{
    b->names[PLAIN] = "sgemm";
    b->names[TILES] = "its tiles";
    b->variants = KERNELS;
    while (b->variants < VARIANTS && zero_packed_at(b->variants - KERNELS)) b->variants++;
    float *scratch = memory((size_t)zero_math_scratch() * sizeof(float));
    for (int variant = 0; variant < b->variants; variant++) {
        zero_math *math = &b->math[variant];
        if (zero_backend_cpu.open(math) != ZERO_OK) exit(3);
        math->poll = note_gap, math->poll_arg = b;
        math->scratch = scratch;
        math->state[ZERO_CPU_FP32_PRODUCTS] = NULL;
        if (variant < KERNELS) continue;
        const zero_packed_kernels *kernels = zero_packed_at(variant - KERNELS);
        math->state[ZERO_CPU_FP32_PRODUCTS] = kernels;
        math->state[ZERO_CPU_BF16_PRODUCTS] = kernels;
        b->names[variant] = kernels->name;
        b->type[variant] = kernels->type;
    }
}

/* Leaves the variant of this name alone. */
static zero_status choose_variant(bench *b, const char *name)
{
    b->first = 0, b->end = b->variants;
    if (!name) return ZERO_OK;
    for (int i = 0; i < b->variants; i++)
        if (strcmp(b->names[i], name) == 0) b->first = i, b->end = i + 1;
    if (b->end == b->first + 1) return ZERO_OK;
    return zero_fail(
        ZERO_ERR_INVALID,
        "--kernels %s: this machine has none of that name; without --kernels the "
        "table shows which it has",
        name);
}

/* Adds one product's medians to the step's; prints its Gflop/s. */
static void measure(bench *b, const layer *l, int product, int64_t tokens,
                    double step[VARIANTS], double longest[VARIANTS])
{
    double seconds[VARIANTS][MOST_ROUNDS];
    double rows = (double)rows_of(l, tokens);
    double times = l->head ? (double)tokens / rows : BLOCKS;
    for (int round = -1; round < b->rounds; round++) /* the first one warms up */
        for (int variant = b->first; variant < b->end; variant++) {
            double s = time_of(b, variant, l, product, tokens);
            if (round < 0) continue;
            seconds[variant][round] = s;
            if (b->longest > longest[variant]) longest[variant] = b->longest;
        }
    printf("%-16s%-9s", l->name, products[product]);
    for (int variant = b->first; variant < b->end; variant++) {
        double median = bench_median(seconds[variant], b->rounds);
        step[variant] += times * median;
        printf("%14.0f", 2e-9 * rows * (double)l->in * (double)l->out / median);
    }
    printf("\n");
}

static zero_status measure_step(const wish *w, int64_t tokens)
{
    const int64_t most = (int64_t)50257 * 768;
    double step[VARIANTS] = {0}, longest[VARIANTS] = {0}, flops = 0.0;
    bench b = {.rounds = w->rounds > 0 ? (int)w->rounds : ROUNDS,
               .x = random_floats(tokens * 3072),
               .w = random_floats(most)};
    b.y = random_floats((tokens > 4096 ? tokens : 4096) * 3200);
    b.result = random_floats(most);
    b.half = memory((size_t)most * sizeof *b.half);
    zero_convert(ZERO_FP32, ZERO_BF16, most, b.w, b.half);
    zero_blas_set_threads(1);
    open_variants(&b);
    ZERO_TRY(choose_variant(&b, w->kernels));

    printf("%lld tokens, Gflop/s%5s", (long long)tokens, "");
    for (int variant = b.first; variant < b.end; variant++)
        printf("%14s", b.names[variant]);
    printf("\n");
    for (int i = 0; i < LAYERS; i++)
        for (int product = 0; product < PRODUCTS; product++) {
            measure(&b, &layers[i], product, tokens, step, longest);
            flops += 2e-9 * (double)(tokens * layers[i].in * layers[i].out) *
                     (layers[i].head ? 1 : BLOCKS);
        }
    printf("%-25s", "the step");
    for (int variant = b.first; variant < b.end; variant++)
        printf("%14.0f", flops / step[variant]);
    if (b.first == PLAIN) {
        printf("\n%-25s", "of sgemm");
        for (int variant = b.first; variant < b.end; variant++)
            printf("%14.2f", step[PLAIN] / step[variant]);
    }
    printf("\n%-25s", "longest gap, ms");
    for (int variant = b.first; variant < b.end; variant++)
        printf("%14.1f", 1e3 * longest[variant]);
    printf("\n");
    return ZERO_OK;
}

/* ---- slices ---- */

static zero_status measure_slices(const wish *w, int64_t tokens)
{
    if (w->hidden % w->slices != 0)
        return zero_fail(ZERO_ERR_INVALID,
                         "--hidden %lld does not consist of --slices %lld equal slices",
                         (long long)w->hidden, (long long)w->slices);
    zero_math math = {.scratch = memory((size_t)zero_math_scratch() * sizeof(float))};
    zero_blas_set_threads(1);
    ZERO_TRY(zero_backend_cpu.open(&math));
    bench_slices b = {.rows = tokens,
                      .hidden = w->hidden,
                      .slices = (int)w->slices,
                      .rounds = w->rounds > 0 ? (int)w->rounds : SLICES_ROUNDS};
    bench_slices_measure(&b, &math);
    b.type = ZERO_BF16;
    bench_slices_measure(&b, &math);
    free(math.scratch);
    return ZERO_OK;
}

/* ---- start ---- */

#define FIELD(name) .offset = offsetof(wish, name)

/* clang-format off */
static const zero_option rows[] = {
    {.group = "Slices", .name = "slices", .kind = ZERO_OPTION_WHOLE, FIELD(slices), .argument = "S", .min = 2, .max = 64,
     .absent = "none", .help = "only the products that tensor parallelism cuts, in S slices, beside one sum"},
    {.name = "hidden", .kind = ZERO_OPTION_WHOLE, FIELD(hidden), .argument = "C", .min = 64, .max = 8192, .standard = "768",
     .help = "channels of these products"},
    {.name = "rounds", .kind = ZERO_OPTION_WHOLE, FIELD(rounds), .argument = "N", .min = 1, .max = MOST_ROUNDS,
     .absent = "7, or 41 with --slices", .help = "medians of that many"},
    {.name = "kernels", .kind = ZERO_OPTION_TEXT, FIELD(kernels), .argument = "NAME", .absent = "all",
     .help = "only these, as a column of the table is called"},
    {.name = NULL},
};
/* clang-format on */

static const zero_option_table table = {.rows = rows};

static zero_status bench_gemm(int argc, char **argv);

static const zero_command command = {
    .name = "bench_gemm",
    .usage = "bench_gemm [options] [TOKENS]",
    .about = "Measures the matrix products of a GPT-2 124M training step on one core: one "
             "call of sgemm each, sgemm in tiles, and every kernel that this machine can "
             "run. TOKENS is 1 to 8192 [1024].",
    .example = "build/bench_gemm 512",
    .operand = "TOKENS",
    .tables = &table,
    .n_tables = 1,
    .size = sizeof(wish),
    .exits = ZERO_EXIT_ENVIRONMENT,
    .run = bench_gemm,
};

static zero_status bench_gemm(int argc, char **argv)
{
    zero_options given;
    wish w = {0};
    int64_t tokens = 1024;
    ZERO_TRY(zero_options_read(&command, argc, argv, &w, &given));
    bool is_given = given.n_operands > 0;
    if (given.n_operands > 1 ||
        (is_given &&
         (!zero_quantity_whole(given.operands[0], &tokens) || tokens < 1 || tokens > 8192)))
        return zero_fail(ZERO_ERR_INVALID, "TOKENS: expected one number from 1 to 8192");
    if (w.slices > 0) return measure_slices(&w, tokens);
    return measure_step(&w, tokens);
}

int main(int argc, char **argv)
{
    return bench_main(&command, argc, argv);
}
