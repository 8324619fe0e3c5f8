/* bench_variant.h - the variants of each kind of collective: an algorithm and its memory. */
#pragma once

#include <stdbool.h>

#include "lists/algorithm.h"

typedef enum {
    BENCH_PRIVATE,
    BENCH_FROM_WINDOW, /* `in` in the window, `out` private */
    BENCH_WINDOW,      /* an `out` per rank in the window, with what is sent inside it */
    BENCH_IN_PLACE,    /* all-gather: one `out` per node, in the window */
    BENCH_MEMORIES
} bench_memory;

const char *bench_memory_name(bench_memory memory);

typedef struct {
    const char *name;
    zero_collective_kind kind;
    zero_algorithm algorithm;
    bench_memory memory;
    bool blocking; /* MPI's own call instead of ours */
} bench_variant;

#define BENCH_MAX_VARIANTS (ZERO_COLLECTIVE_KINDS * ZERO_ALGORITHMS * BENCH_MEMORIES)

/* All variants on nodes of this layout, reduce-scatters first; the first of a kind is MPI's.
 * Returns how many. */
int bench_variants(const zero_layout *layout, bench_variant variants[BENCH_MAX_VARIANTS]);
