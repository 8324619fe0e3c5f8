/* bench_kernel_table.h - the kernels of a backend, and how much of each a GPT-2 step takes.
 *
 * Products of matrices are not among them: bench_products.h. */
#pragma once

#include "bench_lanes.h"

/* What calls come in: R C activations, logits, parameters. */
typedef enum { BENCH_CHANNELS, BENCH_WORDS, BENCH_PARAMETERS, BENCH_UNITS } bench_unit;

typedef struct {
    const char *name;
    void (*call)(bench_lanes *l, int64_t at,
                 int64_t n); /* n elements of the lanes, at `at` */
    bench_unit unit;
    int width;          /* elements of a call, in units */
    int span;           /* elements of a lane that it uses, in units */
    double floats;      /* read and written per element */
    double typed;       /* the same, of the step's type */
    double flops;       /* per element, in units of T; 0: memory is what bounds it */
    double layer, once; /* units that a step takes: layer * L + once */
    enum {
        BENCH_ALWAYS,
        BENCH_HALVES,
        BENCH_SUMS
    } when;     /* 16-bit types only; several microbatches only */
    bool reads; /* and writes next to nothing */
} bench_kernel;

#define BENCH_KERNELS 17
extern const bench_kernel bench_kernels[BENCH_KERNELS];
