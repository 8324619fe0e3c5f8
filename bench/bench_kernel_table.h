/* bench_kernel_table.h - the kernels of a backend, and how much of each a GPT-2 step takes.
 *
 * Matrix products are in bench_products.h. */
#pragma once

#include "bench_lanes.h"

/* Sizes of calls are multiples of these: R C activations, logits, parameters. */
typedef enum { BENCH_CHANNELS, BENCH_WORDS, BENCH_PARAMETERS, BENCH_UNITS } bench_unit;

/* The steps that call a kernel: all; of 16-bit types; of several microbatches. */
typedef enum { BENCH_ALWAYS, BENCH_HALVES, BENCH_SUMS } bench_when;

typedef struct {
    const char *name;
    /* Works on n elements of the lanes, from element `at` on. */
    void (*call)(bench_lanes *l, int64_t at, int64_t n);
    bench_unit unit;
    int width;          /* elements of a call, in units */
    int span;           /* elements of a lane that it uses, in units */
    double rows;        /* activations read and written per element */
    double floats;      /* the same, of floats */
    double typed;       /* the same, of the step's type */
    double flops;       /* per element, in units of T; 0: memory bounds it */
    double layer, once; /* units that a step takes: layer * L + once */
    bench_when when;
    bool reads; /* only, or nearly */
} bench_kernel;

#define BENCH_KERNELS 17
extern const bench_kernel bench_kernels[BENCH_KERNELS];
