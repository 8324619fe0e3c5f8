/* family_job.h - collectives on the groups of a family, with results that tree_oracle.h defines. */
#pragma once

#include "support/test_world.h"

#include <unistd.h>

#include "comm/collective.h"
#include "comm/divide.h"
#include "comm/window.h"
#include "support/tree_oracle.h"

#define FAMILY_COUNT 2560 /* elements of a piece */
#define FAMILY_CHUNK 64   /* chunks exceed what a rank posts without polls */

#define FAMILY_SLOTS 4 /* jobs of a group at once */

/* A group and a window with room for the `in` and `out` of a rank's jobs. */
typedef struct {
    zero_comm *comm;
    zero_window window;
} family_group;

/* Bytes of an array of one job. */
static inline size_t family_bytes(const zero_comm *comm)
{
    return (size_t)comm->size * FAMILY_COUNT * sizeof(float);
}

static inline family_group family_open(zero_comm *comm)
{
    family_group g = {.comm = comm};
    size_t bytes = FAMILY_SLOTS * family_bytes(comm);
    assert_ok(zero_window_init(&g.window, comm, 2, (size_t[2]){bytes, bytes}));
    return g;
}

static inline void family_close(family_group *g)
{
    zero_window_destroy(&g->window);
}

typedef struct {
    zero_collective op;
    zero_comm *comm;
    zero_collective_kind kind;
    uint64_t trial;
    float *in, *out;
    void *staging;
} family_job;

static inline float *family_array(const family_group *g, int array, int slot)
{
    size_t at = (size_t)(g->window.local_rank * FAMILY_SLOTS + slot);
    return (float *)(zero_window_array(&g->window, array) + at * family_bytes(g->comm));
}

static inline zero_collective_spec family_spec(const zero_comm *comm,
                                               zero_algorithm algorithm,
                                               zero_collective_kind kind, int unit)
{
    size_t apart = FAMILY_SLOTS * family_bytes(comm);
    return (zero_collective_spec){.kind = kind,
                                  .algorithm = algorithm,
                                  .count = FAMILY_COUNT,
                                  .stride = FAMILY_COUNT,
                                  .max_chunk = FAMILY_CHUNK,
                                  .unit = unit,
                                  .in_apart = apart,
                                  .out_apart = apart};
}

static inline family_job family_make(family_group *g, const zero_collective_spec *spec,
                                     int slot)
{
    size_t staging = zero_collective_staging(spec, &g->comm->layout);
    family_job j = {.comm = g->comm, .kind = spec->kind};
    j.in = family_array(g, 0, slot);
    j.out = family_array(g, 1, slot);
    j.staging = aligned_alloc(64, zero_round_up_size(staging + 1, 64));
    assert_non_null(j.staging);
    assert_ok(zero_collective_init(&j.op, j.comm, spec));
    return j;
}

static inline void family_destroy(family_job *j)
{
    zero_collective_destroy(&j->op);
    free(j->staging);
}

static inline bool family_is_gather(const family_job *j)
{
    return j->kind == ZERO_ALL_GATHER;
}

/* Trials differ between the groups of a family. */
static inline void family_fill(family_job *j, uint64_t trial)
{
    const zero_member *m = &j->comm->member;
    int64_t n = family_is_gather(j) ? FAMILY_COUNT : j->comm->size * FAMILY_COUNT;
    j->trial = 64 * trial + 5 * (uint64_t)m->first + (uint64_t)m->part;
    if (j->op.steps.spec.algorithm == ZERO_ALGORITHM_MPI) j->trial += ORACLE_SMALL;
    for (int64_t i = 0; i < n; i++)
        j->in[i] = oracle_leaf(ZERO_FP32, j->trial, j->comm->rank, i);
}

static inline void family_begin(family_job *j)
{
    assert_ok(zero_collective_begin(&j->op, j->in, j->out, j->staging));
}

static inline float family_expected(const family_job *j, int64_t i)
{
    int size = j->comm->size;
    if (family_is_gather(j))
        return oracle_leaf(ZERO_FP32, j->trial, (int)(i / FAMILY_COUNT), i % FAMILY_COUNT);
    return oracle_sum(ZERO_FP32, j->trial, 0, size, j->comm->rank * FAMILY_COUNT + i);
}

/* Looks at every 7th element: sums by the oracle are slow. */
static inline bool family_is_right(const family_job *j)
{
    int64_t n = family_is_gather(j) ? j->comm->size * FAMILY_COUNT : FAMILY_COUNT,
            wrong = 0;
    for (int64_t i = 0; i < n; i += 7) wrong += j->out[i] != family_expected(j, i);
    if (wrong > 0)
        print_error("rank %d: %d wrong in part %d\n", test_rank, (int)wrong,
                    (int)j->comm->member.part);
    return wrong == 0;
}

/* Sleeps for up to 0.3 ms, or not at all. */
static inline void family_dawdle(uint64_t random)
{
    if (random % 2 == 0) usleep((useconds_t)(random / 2 % 300));
}
