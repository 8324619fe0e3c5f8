/* collective_cases.h - the layouts and shapes with which collectives are tested. */
#pragma once

#include "support/test.h"

#include "lists/algorithm.h"
#include "support/tree_oracle.h"

/* Number of ranks of each node, up to a 0. */
typedef int node_sizes[13];

/* One node, nodes in blocks of equal and of other sizes, one rank per node. */
static const node_sizes test_layouts[] = {
    {1},
    {2},
    {3},
    {4},
    {5},
    {6},
    {7},
    {8},
    {11},
    {12},
    {2, 2},
    {2, 2, 2},
    {3, 3},
    {4, 4},
    {2, 2, 2, 2},
    {3, 3, 3},
    {3, 3, 3, 3},
    {4, 4, 4},
    {6, 6},
    {1, 2, 1},
    {1, 3},
    {3, 1},
    {1, 7},
    {7, 1},
    {5, 3, 2},
    {2, 3, 5},
    {7, 5},
    {1, 1, 6},
    {3, 2, 1},
    {2, 1, 2, 1, 2},
    {5, 6},
    {1, 11},
    {11, 1},
    {1, 1},
    {1, 1, 1},
    {1, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
};

/* Release with zero_layout_destroy(). */
static inline zero_layout layout_of(const node_sizes sizes)
{
    zero_layout layout;
    int ids[64], n = 0;
    for (int node = 0; sizes[node] > 0; node++)
        for (int l = 0; l < sizes[node]; l++) ids[n++] = 10 * node + 3;
    assert_ok(zero_layout_init(&layout, n, ids));
    return layout;
}

/* ---- shapes ---- */

static inline int64_t pick(uint64_t *random, int n, const int64_t *from)
{
    *random = oracle_mix(*random);
    return from[*random % (uint64_t)n];
}

static inline bool toss(uint64_t *random)
{
    return pick(random, 2, (const int64_t[]){0, 1}) != 0;
}

static inline void vary_types(zero_collective_spec *spec, uint64_t *random)
{
    static const int64_t types[] = {ZERO_FP32, ZERO_FP32, ZERO_BF16, ZERO_FP16};
    spec->type = (zero_type)pick(random, 4, types);
    spec->result = spec->type;
    if (zero_collective_sums(spec->kind) && spec->kind != ZERO_ALL_REDUCE && toss(random))
        spec->result = ZERO_FP32;
}

/* Pieces are at most MAX_STRIDE elements apart. Small chunks stand for the limit of 2^28 elements
 * per message: the bits are the same. */
#define MAX_STRIDE (1500 + 331)
#define MAX_TAIL   200 /* of an all-reduce */
static inline void vary_sizes(zero_collective_spec *spec, uint64_t *random)
{
    static const int64_t counts[] = {0, 1, 63, 64, 65, 127, 200, 997, 1500};
    static const int64_t gaps[] = {0, 0, 1, 64, 331};
    static const int64_t chunks[] = {0, 64, 64, 100, 77, 7, 1};
    spec->count = pick(random, COUNT(counts), counts);
    spec->stride = spec->count + pick(random, COUNT(gaps), gaps);
    spec->max_chunk = pick(random, COUNT(chunks), chunks);
    if (spec->count > 200 && spec->max_chunk < 60) spec->max_chunk = 60;
}

static inline zero_collective_spec
vary_spec(zero_algorithm algorithm, zero_collective_kind kind, int size, uint64_t *random)
{
    zero_collective_spec spec = {
        .kind = kind, .algorithm = algorithm, .unit = ZERO_NO_UNIT};
    bool windows = zero_algorithm_get(algorithm)->works_in_window;
    vary_types(&spec, random);
    vary_sizes(&spec, random);
    spec.one_out = windows && !zero_collective_sums(kind) && toss(random);
    *random = oracle_mix(*random);
    spec.root = (int)(*random % (uint64_t)size);
    spec.message = pick(random, 4, (const int64_t[]){0, 0, ZERO_LEAST_MESSAGE, 1000});
    if (kind == ZERO_ALL_REDUCE && !windows)
        spec.tail = pick(random, 5, (const int64_t[]){0, 0, 1, 7, MAX_TAIL});
    if (kind == ZERO_ALL_REDUCE && algorithm == ZERO_ALGORITHM_MPI)
        spec.stride = spec.count;
    return spec;
}
