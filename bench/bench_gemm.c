/* bench_gemm - what cutting products into tiles costs, and how long a poll has to wait.
 *
 * The logits of GPT-2's head for 1024 tokens, [1024, 768] x [50257, 768]', in turns: one call
 * of BLAS, calls of 256 full-width rows, and the backend's tiles, of fp32 weights and of 16-bit
 * ones, which are widened tile by tile. The longest gap is the longest time between two chances
 * to poll; medians of ROUNDS rounds. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "math/blas.h"

enum { WAYS = 5, ROUNDS = 9, TOKENS = 1024, WIDTH = 768, WORDS = 50257, ROWS = 256 };

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

static void by_tiles(const zero_math *math, const zero_gemm *g, zero_type type,
                     const uint16_t *half)
{
    zero_gemm typed = *g;
    typed.b_type = type;
    if (type != ZERO_FP32) typed.b = half;
    zero_backend_cpu.gemm(math, &typed);
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void *memory(size_t bytes)
{
    void *mem = malloc(bytes);
    if (!mem) exit(3);
    return mem;
}

static float *random_floats(int64_t n)
{
    zero_rng rng = {.purpose = ZERO_RNG_TEST};
    float *x = memory((size_t)n * sizeof *x);
    zero_rng_normal(&rng, 0, n, x);
    return x;
}

int main(void)
{
    static const char *const names[] = {"one call", "256 rows at a time", "tiles",
                                        "tiles, bf16", "tiles, fp16"};
    static const zero_type types[] = {ZERO_FP32, ZERO_FP32, ZERO_FP32, ZERO_BF16,
                                      ZERO_FP16};
    double seconds[WAYS][ROUNDS], longest[WAYS][ROUNDS];
    zero_gemm g = {.transpose_b = true, .m = TOKENS, .n = WORDS, .k = WIDTH};
    g.a = random_floats((int64_t)TOKENS * WIDTH), g.lda = WIDTH;
    g.b = random_floats((int64_t)WORDS * WIDTH), g.ldb = WIDTH;
    g.c = random_floats((int64_t)TOKENS * WORDS), g.ldc = WORDS;

    uint16_t *half = memory((size_t)WORDS * WIDTH * sizeof *half);
    gaps gap;
    zero_math math = {.poll = note_gap, .poll_arg = &gap};
    math.scratch = memory((size_t)zero_math_scratch() * sizeof(float));
    zero_blas_set_threads(1);
    if (zero_backend_cpu.open(&math) != ZERO_OK) return 3;
    for (int round = 0; round < ROUNDS; round++) {
        for (int way = 0; way < WAYS; way++) {
            if (types[way] != ZERO_FP32)
                zero_convert(ZERO_FP32, types[way], (int64_t)WORDS * WIDTH, g.b, half);
            double start = zero_clock_seconds();
            gap = (gaps){.last = start};
            if (way < 2) by_rows(&g, way == 0 ? TOKENS : ROWS, &gap);
            if (way >= 2) by_tiles(&math, &g, types[way], half);
            seconds[way][round] = zero_clock_seconds() - start;
            longest[way][round] = gap.longest;
        }
    }
    printf("%-20s %9s %16s\n", "", "Gflop/s", "longest gap, ms");
    for (int way = 0; way < WAYS; way++) {
        qsort(seconds[way], ROUNDS, sizeof(double), ascending);
        qsort(longest[way], ROUNDS, sizeof(double), ascending);
        printf("%-20s %9.1f %16.1f\n", names[way],
               2e-9 * TOKENS * WIDTH * WORDS / seconds[way][ROUNDS / 2],
               1e3 * longest[way][ROUNDS / 2]);
    }
    return 0;
}
