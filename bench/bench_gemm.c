/* bench_gemm - what cutting products into tiles costs, and how long a poll has to wait.
 *
 * The logits of GPT-2's head for 1024 tokens, [1024, 768] x [50257, 768]', three ways in turns:
 * one call of BLAS, calls of 256 full-width rows, and the backend's tiles. The longest gap is
 * the longest time between two chances to poll; medians of ROUNDS rounds. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "math/blas.h"

enum { ROUNDS = 9, TOKENS = 1024, WIDTH = 768, WORDS = 50257, ROWS = 256 };

typedef struct {
    double last, longest;
} gaps;

static void note_gap(void *arg)
{
    gaps *g = arg;
    double now = zero_clock_seconds();
    if (now - g->last > g->longest) g->longest = now - g->last;
    g->last = now;
}

static void by_rows(const zero_gemm *g, int64_t rows, gaps *gap)
{
    for (int64_t i = 0; i < g->m; i += rows) {
        zero_gemm part = *g;
        part.m = rows;
        part.a += i * g->lda;
        part.c += i * g->ldc;
        zero_blas_gemm(&part);
        note_gap(gap);
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static float *random_floats(int64_t n)
{
    zero_rng rng = {.purpose = ZERO_RNG_TEST};
    float *x = malloc((size_t)n * sizeof *x);
    if (!x) exit(3);
    zero_rng_normal(&rng, 0, n, x);
    return x;
}

int main(void)
{
    static const char *const names[] = {"one call", "256 rows at a time", "tiles"};
    double seconds[3][ROUNDS], longest[3][ROUNDS];
    zero_gemm g = {.transpose_b = true, .m = TOKENS, .n = WORDS, .k = WIDTH};
    g.a = random_floats((int64_t)TOKENS * WIDTH), g.lda = WIDTH;
    g.b = random_floats((int64_t)WORDS * WIDTH), g.ldb = WIDTH;
    g.c = random_floats((int64_t)TOKENS * WORDS), g.ldc = WORDS;

    gaps gap;
    zero_math math = {.poll = note_gap, .poll_arg = &gap};
    zero_blas_set_threads(1);
    if (zero_backend_cpu.open(&math) != ZERO_OK) return 3;
    for (int round = 0; round < ROUNDS; round++) {
        for (int way = 0; way < 3; way++) {
            double start = zero_clock_seconds();
            gap = (gaps){.last = start};
            if (way < 2) by_rows(&g, way == 0 ? TOKENS : ROWS, &gap);
            if (way == 2) zero_backend_cpu.gemm(&math, &g);
            seconds[way][round] = zero_clock_seconds() - start;
            longest[way][round] = gap.longest;
        }
    }
    printf("%-20s %9s %16s\n", "", "Gflop/s", "longest gap, ms");
    for (int way = 0; way < 3; way++) {
        qsort(seconds[way], ROUNDS, sizeof(double), ascending);
        qsort(longest[way], ROUNDS, sizeof(double), ascending);
        printf("%-20s %9.1f %16.1f\n", names[way],
               2e-9 * TOKENS * WIDTH * WORDS / seconds[way][ROUNDS / 2],
               1e3 * longest[way][ROUNDS / 2]);
    }
    return 0;
}
