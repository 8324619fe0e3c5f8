/* bench_gemm - the products of a whole GPT-2 124M training step, against sgemm.
 *
 * Every linear layer of one block (12 of them in a step) and the head, in chunks of 256 rows,
 * forward and both gradients, alternately: one call of sgemm each; sgemm in tiles, which the
 * backend calls where it has no kernels; then each of its kernels that this machine can run,
 * those for bf16 on bf16 weights, and the best for each type on activations of bf16 as well (/16; the
 * logits stay fp32). Medians of ROUNDS rounds of the thread's CPU time, on one core,
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
#include "base/type.h"
#include "bench_main.h"
#include "bench_median.h"
#include "bench_slices.h"
#include "cli/options.h"
#include "math/blas.h"
#include "math/cpu_packed.h"
#include "math/cpu_state.h"
#include "math/peak.h"

enum {
    PLAIN,
    TILES,
    KERNELS,
    TYPES = 2,
    VARIANTS = KERNELS + ZERO_PACKED_VARIANTS + TYPES
};

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
    uint16_t *half_x, *half_y, *half_w;
    zero_math math[VARIANTS];
    zero_type type[VARIANTS], rows[VARIANTS]; /* of factors, of activations */
    char names[VARIANTS][24];
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

static uint16_t *halves(int64_t n, const float *x)
{
    uint16_t *half = memory((size_t)n * sizeof *half);
    zero_convert(ZERO_FP32, ZERO_BF16, n, x, half);
    return half;
}

static int64_t rows_of(const layer *l, int64_t tokens)
{
    return l->head && tokens > CHUNK ? CHUNK : tokens;
}

/* Multiplies as nn/layers.c and nn/gpt2_head.c do. No result is read again: factors would grow
 * from product to product and be infinite in the third layer. */
static zero_gemm product_of(const bench *b, const layer *l, int product, int64_t tokens,
                            int variant)
{
    const zero_type type = b->type[variant], rows = b->rows[variant];
    const bool is_half = rows != ZERO_FP32;
    const bool has_half_w = is_half || type == ZERO_BF16;
    const void *x = is_half ? (const void *)b->half_x : b->x;
    const void *y = is_half && !l->head ? (const void *)b->half_y : b->y;
    const zero_type y_type = l->head ? ZERO_FP32 : rows;
    zero_gemm g = {.factors = type, .c = b->result};
    if (product == 2) { /* x' dy; for the head dy' x */
        g.transpose_a = true, g.k = tokens;
        g.m = l->head ? l->out : l->in, g.n = l->head ? l->in : l->out;
        g.a = l->head ? y : x, g.b = l->head ? x : y;
        g.a_type = l->head ? y_type : rows, g.b_type = l->head ? rows : y_type;
        return g;
    }
    g.m = tokens, g.b = has_half_w ? (const void *)b->half_w : b->w;
    g.b_type = has_half_w ? ZERO_BF16 : ZERO_FP32;
    g.n = product ? l->in : l->out, g.k = product ? l->out : l->in;
    g.transpose_b = l->head ? !product : product;
    g.a = product ? y : x;
    g.a_type = product ? y_type : rows, g.c_type = product ? rows : y_type;
    return g;
}

static double time_of(bench *b, int variant, const layer *l, int product, int64_t tokens)
{
    zero_gemm g = product_of(b, l, product, rows_of(l, tokens), variant);
    double start = thread_seconds();
    b->last = start, b->longest = 0.0;
    if (variant == PLAIN)
        zero_blas_gemm(&g);
    else
        zero_backend_cpu.gemm(&b->math[variant], &g);
    note_gap(b);
    return thread_seconds() - start;
}

static void open_variant(bench *b, const char *name, float *scratch)
{
    zero_math *math = &b->math[b->variants];
    if (zero_backend_cpu.open(math) != ZERO_OK) exit(3);
    math->poll = note_gap, math->poll_arg = b;
    math->scratch = scratch;
    math->state[ZERO_CPU_FP32_PRODUCTS] = NULL;
    snprintf(b->names[b->variants++], sizeof b->names[0], "%s", name);
}

static void open_kernels(bench *b, const zero_packed_kernels *kernels, zero_type rows,
                         float *scratch)
{
    char name[24];
    snprintf(name, sizeof name, "%s%s", kernels->name, rows == ZERO_FP32 ? "" : "/16");
    zero_math *math = &b->math[b->variants];
    b->type[b->variants] = kernels->type, b->rows[b->variants] = rows;
    open_variant(b, name, scratch);
    math->state[ZERO_CPU_FP32_PRODUCTS] = kernels;
    math->state[ZERO_CPU_BF16_PRODUCTS] = kernels;
}

static void open_variants(bench *b)
{
    const zero_packed_kernels *kernels;
    float *scratch = memory((size_t)zero_math_scratch() * sizeof(float));
    bool has_halves[ZERO_TYPES] = {false};
    open_variant(b, "sgemm", scratch);
    open_variant(b, "its tiles", scratch);
    for (int i = 0; (kernels = zero_packed_at(i)); i++) {
        open_kernels(b, kernels, ZERO_FP32, scratch);
        if (has_halves[kernels->type]) continue;
        has_halves[kernels->type] = true;
        open_kernels(b, kernels, ZERO_BF16, scratch);
    }
}

/* "AVX-512" is that with any activations, "AVX-512/16" that with those of 16 bits. */
static bool is_called(const char *variant, const char *name)
{
    const size_t n = strlen(name);
    return strncmp(variant, name, n) == 0 && (variant[n] == '\0' || variant[n] == '/');
}

/* Leaves the variants of this name, which are neighbours. */
static zero_status choose_variants(bench *b, const char *name)
{
    b->first = 0, b->end = b->variants;
    if (!name) return ZERO_OK;
    b->end = 0;
    for (int i = b->variants - 1; i >= 0; i--) {
        if (!is_called(b->names[i], name)) continue;
        b->first = i;
        b->end = (int)zero_max(b->end, i + 1);
    }
    if (b->end > 0) return ZERO_OK;
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
    const int64_t most = (int64_t)50257 * 768, most_x = tokens * 3072;
    const int64_t most_y = zero_max(tokens, 4096) * 3200;
    double step[VARIANTS] = {0}, longest[VARIANTS] = {0}, flops = 0.0;
    bench b = {.rounds = w->rounds > 0 ? (int)w->rounds : ROUNDS,
               .x = random_floats(most_x),
               .y = random_floats(most_y),
               .w = random_floats(most),
               .result = random_floats(most)};
    b.half_x = halves(most_x, b.x);
    b.half_y = halves(most_y, b.y);
    b.half_w = halves(most, b.w);
    zero_blas_set_threads(1);
    open_variants(&b);
    ZERO_TRY(choose_variants(&b, w->kernels));

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
    printf("\n%-25s", "of the peak");
    for (int variant = b.first; variant < b.end; variant++)
        printf("%14.2f",
               1e9 * flops / step[variant] / zero_cpu_peak(b.type[variant], 1).flops);
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
     .help = "only these, as a column of the table is called; without its /16 both"},
    {.name = NULL},
};
/* clang-format on */

static const zero_option_table table = {.rows = rows};

static zero_status bench_gemm(void *options, const zero_options *given);

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

static zero_status bench_gemm(void *options, const zero_options *given)
{
    const wish *w = options;
    int64_t tokens = 1024;
    bool is_given = given->n_operands > 0;
    if (given->n_operands > 1 ||
        (is_given && (!zero_quantity_whole(given->operands[0], &tokens) || tokens < 1 ||
                      tokens > 8192)))
        return zero_fail(ZERO_ERR_INVALID, "TOKENS: expected one number from 1 to 8192");
    return w->slices > 0 ? measure_slices(w, tokens) : measure_step(w, tokens);
}

int main(int argc, char **argv)
{
    return bench_main(&command, argc, argv);
}
