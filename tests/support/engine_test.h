/* engine_test.h - small training runs: a model, its engine and the tokens it is given. */
#pragma once

#include "support/mpi_cmocka.h"
#include "support/states_test.h"

#include "base/fail.h"
#include "comm/divide.h"
#include "engine/engine.h"
#include "nn/shape.h"
#include "nn/share.h"
#include "sharding/compile.h"
#include "sharding/stages.h"

/* The settings of a run. */
typedef struct {
    zero_shape shape;
    zero_plan_input plan; /* the model, its T, ranks and nodes are filled in */
    int64_t seed, eval_batches;
    const zero_backend *backend;
    zero_bits bits;
    double lr, weight_decay, clip;
    int fake_nodes;        /* 0: the real ones */
    int tp, slices;        /* of zero_share; 0 count as 1 */
    const char *directory; /* of the plan's file */
    bool awaits_states;    /* of the engine's spec */
} test_setup;

static const test_setup test_standard = {
    .shape = {.layers = 2, .hidden = 24, .heads = 3, .seq = 12, .vocab = 50, .seed = 5},
    .plan = {.micro_batch = 2, .accumulation = 1, .bucket = 1 << 16, .prefetch = 1},
    .seed = 17,
    .eval_batches = 2,
    .backend = &zero_backend_cpu,
    .lr = 1e-3,
    .weight_decay = 0.1,
    .clip = 1.0,
};

/* The same size in other architectures: fewer key heads, ties, heads wider than rows. */
#define TEST_OTHER(of, h, k, d) \
    .kind = &zero_architectures[of], .layers = 2, .hidden = 24, .heads = (h), \
    .kv_heads = (k), .head_size = (d), .inner = 40, .seq = 12, .vocab = 50, .seed = 5
static const zero_shape test_others[] = {
    {TEST_OTHER(ZERO_LLAMA, 6, 2, 4)},
    {TEST_OTHER(ZERO_MISTRAL, 3, 1, 8)},
    {TEST_OTHER(ZERO_QWEN2, 3, 3, 8), .tied = true},
    {TEST_OTHER(ZERO_QWEN3, 4, 2, 10)},
    {TEST_OTHER(ZERO_NEOX, 3, 3, 8)},
};

/* Appends n tokens to one text[n_known + n]. */
static inline zero_status test_generate_text(zero_engine *e, const zero_sampling *how,
                                             int64_t n_known, int64_t n, int32_t *text)
{
    zero_text one = {.n_known = n_known, .tokens = text};
    return zero_engine_generate_texts(e, how, n, &one, 1);
}

typedef struct {
    test_setup setup;
    zero_comm own; /* unless the caller gave the ranks */
    zero_comm *comm;
    zero_model model, part; /* part: this rank's, if sums are cut in slices */
    zero_engine engine;
    zero_run_output last; /* of the last step */
} test_run;

/* The smallest bucket below 2^20 with which a plan is not refused. */
static inline int64_t test_least_bucket(zero_plan_input plan)
{
    int64_t low = 0, high = 1 << 20; /* refused; not refused */
    while (high - low > 1) {
        zero_schedule s;
        plan.bucket = low + (high - low) / 2;
        if (zero_schedule_compile(&s, &plan) == ZERO_OK) {
            zero_schedule_destroy(&s);
            high = plan.bucket;
        } else {
            low = plan.bucket;
        }
    }
    return high;
}

/* This rank's part of the model, or the whole. */
static inline zero_status test_run_share(test_run *run, const zero_model **model)
{
    const zero_comm *tp = zero_comm_tp(run->comm);
    zero_share share = {1, 0, run->setup.slices};
    *model = &run->model;
    if (share.slices <= 1) return ZERO_OK;
    if (tp) share = (zero_share){tp->size, tp->rank, share.slices};
    *model = &run->part;
    return zero_model_share(&run->model, share, &run->part);
}

static inline zero_status test_run_init(test_run *run)
{
    const test_setup *setup = &run->setup;
    const zero_model *model;
    ZERO_TRY(zero_model_build(&setup->shape, &run->model));
    ZERO_TRY(zero_model_activate(&run->model, setup->plan.activations));
    ZERO_TRY(test_run_share(run, &model));
    zero_engine_spec spec = {.plan = zero_engine_place(setup->plan, model, run->comm),
                             .backend = setup->backend,
                             .bits = setup->bits,
                             .seed = setup->seed,
                             .awaits_states = setup->awaits_states,
                             .eval_batches = setup->eval_batches,
                             .directory = setup->directory};
    return zero_engine_init(&run->engine, &spec, run->comm);
}

static inline void test_run_begin(test_run *run)
{
    zero_status st = run->comm->size > 0 ? test_run_init(run) : ZERO_OK;
    all_ok(st);
}

/* The ranks of `comm`, which stays the caller's, train together; collective over the job. */
static inline void test_run_open_on(test_run *run, const test_setup *setup, zero_comm *comm)
{
    *run = (test_run){.setup = *setup, .comm = comm};
    test_run_begin(run);
}

/* Ranks 0 .. n-1 of the job as a group; the others get none. Collective over the job. */
static inline void test_split(int n, int fake_nodes, zero_comm *out)
{
    zero_comm world;
    zero_status st = ZERO_OK;
    all_ok(zero_comm_world(&world));
    all_ok(zero_comm_split(&world, test_rank < n ? 0 : -1, 0, out));
    zero_comm_destroy(&world);
    if (out->size > 0 && fake_nodes > 0) st = zero_comm_pretend_blocks(out, fake_nodes);
    all_ok(st);
}

/* Ranks 0 .. n-1 of the job train together; collective over the job. */
static inline void test_run_open(test_run *run, const test_setup *setup, int n)
{
    *run = (test_run){.setup = *setup, .comm = &run->own};
    test_split(n, setup->fake_nodes, &run->own);
    zero_status st = ZERO_OK;
    if (run->own.size > 0)
        st = zero_comm_divide(&run->own, setup->tp > 1 ? setup->tp : 1,
                              setup->plan.shard_ranks,
                              setup->plan.pp > 1 ? setup->plan.pp : 1);
    all_ok(st);
    test_run_begin(run);
}

static inline void test_run_close(test_run *run)
{
    zero_engine_destroy(&run->engine);
    zero_model_destroy(&run->part);
    zero_model_destroy(&run->model);
    zero_comm_destroy(&run->own);
}

/* True if this rank takes part. */
static inline bool test_run_member(const test_run *run)
{
    return run->comm->size > 0;
}

/* Random words, different for every sample and step. */
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

/* The digest of parameters and moments, from rank 0; collective over the job. */
static inline test_digest test_run_digest(test_run *run)
{
    test_digest d = {""};
    zero_status st = ZERO_OK;
    if (test_run_member(run)) st = zero_engine_digest(&run->engine, d.hex);
    all_ok(st);
    MPI_Bcast(d.hex, (int)sizeof d.hex, MPI_CHAR, 0, MPI_COMM_WORLD);
    return d;
}

/* The digest after some steps of a fresh run. */
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

enum { TEST_STEPS = 3, TEST_WORDS = 6 };

/* The results of a run; zeroed first, so that they can be compared as bytes. */
typedef struct {
    double loss[TEST_STEPS], norm[TEST_STEPS], evaluated;
    int32_t text[1 + TEST_WORDS];
    test_digest digest;
} test_outcome;

static inline void test_run_everything(test_run *run, test_outcome *out)
{
    zero_source source = test_words(run);
    zero_sampling how = {.temperature = 1.0, .known = run->model.vocab};
    for (int step = 0; step < TEST_STEPS; step++) {
        test_run_steps(run, step, 1);
        out->loss[step] = run->last.loss;
        out->norm[step] = run->last.grad_norm;
    }
    if (zero_engine_evaluate(&run->engine, &source, &out->evaluated) != ZERO_OK ||
        test_generate_text(&run->engine, &how, 1, TEST_WORDS, out->text) != ZERO_OK)
        fail_msg("%s", zero_last_error());
}

/* Some steps, an evaluation and a few words of a fresh run, which all its ranks have seen alike;
 * collective over the job. */
static inline test_outcome test_run_outcome(test_run *run)
{
    test_outcome mine, first;
    memset(&mine, 0, sizeof mine);
    if (test_run_member(run)) test_run_everything(run, &mine);
    mine.digest = test_run_digest(run);
    first = mine;
    MPI_Bcast(&first, (int)sizeof first, MPI_BYTE, 0, MPI_COMM_WORLD);
    assert_all(!test_run_member(run) || memcmp(&first, &mine, sizeof first) == 0);
    return first;
}

static inline bool test_same_outcome(const test_outcome *a, const test_outcome *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* Programs have sent the small messages that are planned. */
static inline bool test_control_is_planned(const zero_engine *e)
{
    zero_traffic planned = zero_engine_planned_control(e), moved = e->runner.control;
    return memcmp(&planned, &moved, sizeof planned) == 0;
}
