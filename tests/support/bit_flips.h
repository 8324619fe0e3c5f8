/* bit_flips.h - an element on one rank, of which a test flips a bit. */
#pragma once

#include "support/engine_test.h"

#include "base/rng.h"

typedef struct {
    int rank, tensor, bit;
    zero_array array;
    int64_t element; /* of the tensor */
} spot;

static uint64_t n_drawn; /* the same on all ranks */

/* A random number from 0 to n - 1. */
static inline int64_t draw(int64_t n)
{
    zero_rng rng = {.purpose = ZERO_RNG_TEST, .seed = 15};
    return (int64_t)(zero_rng_bits(&rng, n_drawn++) % (uint64_t)n);
}

static inline const zero_tensor *tensor_of(const test_run *run, const spot *p)
{
    return &run->model.tensors[p->tensor];
}

static inline const zero_group_state *group_of(const test_run *run, const spot *p)
{
    return &run->engine.schedule.groups[tensor_of(run, p)->group];
}

/* The rank of a shard group that owns the element. */
static inline int shard_of(const test_run *run, const spot *p)
{
    return zero_partition_owner_of(&group_of(run, p)->partition,
                                   tensor_of(run, p)->offset + p->element);
}

/* The element as this rank holds it. */
static inline void *held_at(const test_run *run, const spot *p, zero_array array)
{
    return zero_runner_element(&run->engine.runner, group_of(run, p)->buffers[array],
                               tensor_of(run, p)->offset + p->element);
}

/* Collective; again: it is as before. */
static inline void flip(const test_run *run, const spot *p)
{
    if (test_rank == p->rank)
        ((char *)held_at(run, p, p->array))[p->bit / 8] ^= (char)(1 << p->bit % 8);
    MPI_Barrier(MPI_COMM_WORLD); /* neighbours see it */
}
