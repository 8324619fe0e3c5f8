#include "bench_slices.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/number.h"
#include "bench_median.h"

/* k is a multiple of C; d(input) multiplies by the transposed weight. */
typedef struct {
    const char *name;
    int times, parts;
    bool transpose_b;
} product;

static const product products[] = {{"proj, forward", 1, 1, false},
                                   {"fcproj, forward", 4, 1, false},
                                   {"qkv, d(x)", 3, 3, true},
                                   {"fc, d(x)", 4, 1, true}};

enum { PRODUCTS = sizeof products / sizeof products[0] };

enum { ONE, SLICES, RATIO, WORKS }; /* seconds, and those of a round */

static double thread_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void *memory(int64_t n, size_t size)
{
    void *mem = aligned_alloc(64, zero_round_up_size((size_t)n * size, 64));
    if (mem) return mem;
    fprintf(stderr, "bench_gemm: no memory for %lld numbers\n", (long long)n);
    exit(3);
}

static void *random_numbers(int64_t n, zero_type type)
{
    zero_rng rng = {.purpose = ZERO_RNG_TEST};
    float *x = memory(n, sizeof *x);
    zero_rng_normal(&rng, 0, n, x);
    if (type == ZERO_FP32) return x;
    void *typed = memory(n, zero_type_size(type));
    zero_convert(ZERO_FP32, type, n, x, typed);
    free(x);
    return typed;
}

static double time_of(const zero_math *math, const zero_gemm *g)
{
    double start = thread_seconds();
    zero_backend_cpu.gemm(math, g);
    return thread_seconds() - start;
}

/* The work that begins changes from round to round; the first round warms up. */
static void measure(const bench_slices *b, const zero_math *math, const zero_gemm *one,
                    int parts, double *seconds[WORKS])
{
    zero_gemm works[] = {*one, *one};
    works[SLICES].slices = b->slices, works[SLICES].slice_parts = parts;
    for (int round = -1; round < b->rounds; round++) {
        const int at = (int)zero_max(round, 0), first = round & 1;
        seconds[first][at] = time_of(math, &works[first]);
        seconds[1 - first][at] = time_of(math, &works[1 - first]);
        seconds[RATIO][at] = seconds[SLICES][at] / seconds[ONE][at];
    }
}

/* The sums of all products: as if each ran once, in its median time. */
static void print_row(const char *name, int rounds, double *seconds[WORKS], double sum[2])
{
    double median[WORKS];
    for (int w = 0; w < WORKS; w++) median[w] = bench_median(seconds[w], rounds);
    printf("%-18s%12.2f%12.2f%12.3f\n", name, 1e3 * median[ONE], 1e3 * median[SLICES],
           median[RATIO]);
    sum[ONE] += median[ONE], sum[SLICES] += median[ONE] * median[RATIO];
}

void bench_slices_measure(const bench_slices *b, const zero_math *math)
{
    const int64_t C = b->hidden;
    zero_gemm g = {.m = b->rows, .n = C, .factors = b->type, .b_type = b->type};
    g.a = random_numbers(4 * b->rows * C, ZERO_FP32);
    g.b = random_numbers(4 * C * C, b->type);
    g.c = memory(b->rows * C, sizeof(float));
    double *seconds[WORKS], sum[2] = {0};
    for (int w = 0; w < WORKS; w++) seconds[w] = memory(b->rounds, sizeof(double));

    printf("%lld tokens, C %lld, %s\n%-18s%12s%5d slices%12s\n", (long long)b->rows,
           (long long)C, zero_type_name(b->type), "ms", "one sum", b->slices, "ratio");
    for (int p = 0; p < PRODUCTS; p++) {
        const product *x = &products[p];
        g.k = x->times * C, g.transpose_b = x->transpose_b;
        measure(b, math, &g, x->parts, seconds);
        print_row(x->name, b->rounds, seconds, sum);
    }
    printf("%-42s%12.3f\n", "these four", sum[SLICES] / sum[ONE]);
    for (int w = 0; w < WORKS; w++) free(seconds[w]);
    free((void *)(uintptr_t)g.a);
    free((void *)(uintptr_t)g.b);
    free(g.c);
}
