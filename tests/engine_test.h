/* engine_test.h - small training runs: a model, its engine and the tokens it is given. */
#pragma once

#include "mpi_cmocka.h"

#include <math.h>
#include <string.h>

#include "nn/gpt2.h"
#include "train/engine.h"

/* What a run is made of. */
typedef struct {
    zero_gpt2_shape shape;
    int64_t micro_batch, bucket, seed, eval_batches;
    int accumulation;
    const zero_backend *backend;
    double lr, weight_decay, clip;
    zero_algorithm collectives;
    int fake_nodes; /* 0: the real ones */
} test_setup;

static const test_setup test_standard = {
    .shape = {.layers = 2, .hidden = 24, .heads = 3, .seq = 12, .vocab = 50, .seed = 5},
    .micro_batch = 2,
    .bucket = 1 << 16,
    .seed = 17,
    .eval_batches = 2,
    .accumulation = 1,
    .backend = &zero_backend_cpu,
    .lr = 1e-3,
    .weight_decay = 0.1,
    .clip = 1.0,
};

typedef struct {
    test_setup setup;
    zero_comm comm;
    zero_model model;
    zero_engine engine;
    zero_run_output last; /* of the last step */
} test_run;

/* Ranks 0 .. n-1 of the job train together; collective over the job. */
static inline void test_run_open(test_run *run, const test_setup *setup, int n)
{
    zero_comm world;
    *run = (test_run){.setup = *setup};
    assert_all(zero_comm_world(&world) == ZERO_OK);
    assert_all(zero_comm_split(&world, test_rank < n ? 0 : -1, 0, &run->comm) == ZERO_OK);
    zero_comm_destroy(&world);
    assert_all(zero_gpt2_describe(&setup->shape, &run->model) == ZERO_OK);
    zero_engine_spec spec = {.plan = {.model = &run->model,
                                      .n_ranks = n,
                                      .micro_batch = setup->micro_batch,
                                      .seq = setup->shape.seq,
                                      .accumulation = setup->accumulation,
                                      .bucket = setup->bucket,
                                      .collectives = setup->collectives,
                                      .layout = &run->comm.layout,
                                      .rank = run->comm.rank},
                             .backend = setup->backend,
                             .seed = setup->seed,
                             .eval_batches = setup->eval_batches};
    zero_status st = ZERO_OK;
    if (test_rank < n && setup->fake_nodes > 0)
        st = zero_comm_pretend_blocks(&run->comm, setup->fake_nodes);
    if (st == ZERO_OK && test_rank < n)
        st = zero_engine_init(&run->engine, &spec, &run->comm);
    assert_all(st == ZERO_OK);
}

static inline void test_run_close(test_run *run)
{
    zero_engine_destroy(&run->engine);
    zero_model_destroy(&run->model);
    zero_comm_destroy(&run->comm);
}

/* Whether this rank takes part. */
static inline bool test_run_member(const test_run *run)
{
    return run->comm.size > 0;
}

/* Random words, other ones for every sample and step. */
static inline void test_sample(const void *arg, int64_t step, int64_t i, int64_t T,
                               void *inputs, void *targets)
{
    const test_setup *setup = arg;
    zero_rng rng = {
        .purpose = ZERO_RNG_TEST, .step = (uint64_t)step, .sample = (uint64_t)i};
    for (int64_t t = 0; t <= T; t++) {
        uint64_t bits = zero_rng_bits(&rng, (uint64_t)t);
        int32_t word = (int32_t)(bits % (uint64_t)setup->shape.vocab);
        if (t < T) ((int32_t *)inputs)[t] = word;
        if (t > 0) ((int32_t *)targets)[t - 1] = word;
    }
}

static inline zero_source test_words(const test_run *run)
{
    return (zero_source){.sample = test_sample, .arg = &run->setup};
}

static inline zero_step_input test_step_input(const test_run *run, int64_t step)
{
    return (zero_step_input){.step = step,
                             .lr = run->setup.lr,
                             .beta1 = 0.9,
                             .beta2 = 0.95,
                             .eps = 1e-8,
                             .weight_decay = run->setup.weight_decay,
                             .clip = run->setup.clip};
}

/* Steps first .. first+n-1 on `source`. */
static inline void test_run_steps_on(test_run *run, const zero_source *source,
                                     int64_t first, int n)
{
    if (!test_run_member(run)) return;
    for (int64_t step = first; step < first + n; step++) {
        zero_step_input in = test_step_input(run, step);
        if (zero_engine_step(&run->engine, source, &in, &run->last) != ZERO_OK)
            fail_msg("step %d: %s", (int)step, zero_last_error());
    }
}

static inline void test_run_steps(test_run *run, int64_t first, int n)
{
    zero_source source = test_words(run);
    test_run_steps_on(run, &source, first, n);
}

typedef struct {
    char hex[33];
} test_digest;

/* Of parameters and moments, as rank 0 has them; collective over the job. */
static inline test_digest test_run_digest(test_run *run)
{
    test_digest d = {""};
    zero_status st = ZERO_OK;
    if (test_run_member(run)) st = zero_engine_digest(&run->engine, d.hex);
    assert_all(st == ZERO_OK);
    MPI_Bcast(d.hex, (int)sizeof d.hex, MPI_CHAR, 0, MPI_COMM_WORLD);
    return d;
}

/* The digest after some steps of a run of its own. */
static inline test_digest test_digest_after(const test_setup *setup, int n_ranks, int steps)
{
    test_run run;
    test_run_open(&run, setup, n_ranks);
    test_run_steps(&run, 0, steps);
    test_digest d = test_run_digest(&run);
    test_run_close(&run);
    return d;
}

static inline bool test_same(test_digest a, test_digest b)
{
    return strcmp(a.hex, b.hex) == 0;
}
