/* What works in polls works with everything else that does: threads, states in a file, TP groups,
 * recomputation, 16-bit activations and a device. Units are large enough for calls that poll, so an
 * update runs ahead in the middle of a call, while the other threads are in it.
 *
 * Every two of the settings meet in some run. Compared are all losses, norms,
 * an evaluation, generated text and the digest of the states, with those of one thread that has
 * everything in memory. */
#include "support/job_place.h"
#include "support/pairs.h"
#include "support/same_bits.h"

#include "engine/walk.h"
#include "fake/fake.h"
#include "math/threads.h"
#include "sharding/update.h"

enum { THREADS, TYPES, STAGE, STATES, MORE, TP, RECOMPUTE, PLACE, AXES };
enum { IN_MEMORY, END, LAZY, BACKWARD, DELAYED, STATES_PLACES }; /* of UPDATE */
enum { PARAMETERS = 1, ACTIVATIONS };                            /* are in the file, too */
enum { CPU, DEVICE_AND_FILE, DEVICE_AND_HOST };

static const struct {
    zero_type type, activations;
} kinds[] = {{ZERO_FP32, ZERO_FP32}, {ZERO_BF16, ZERO_FP32}, {ZERO_BF16, ZERO_BF16}};
enum { KINDS = COUNT(kinds) };

/* ---- updates in calls ---- */

/* Of this rank: while a unit computes, UPDATE is called by a poll. */
static const zero_runner *running;
static int updates_in_calls;

static void watch_update(void)
{
    const zero_walk *w = running ? running->walk : NULL;
    if (!w || running->math.threads < 2) return;
    zero_op op = running->schedule->programs[w->in->program].code[running->at].op;
    updates_in_calls +=
        op == ZERO_OP_FORWARD || op == ZERO_OP_BACKWARD || op == ZERO_OP_RECOMPUTE;
}

void __real_zero_update_apply(const zero_backend *, const zero_math *, const zero_model *,
                              int, zero_range, const zero_adamw *,
                              const zero_update_state *);
void __wrap_zero_update_apply(const zero_backend *, const zero_math *, const zero_model *,
                              int, zero_range, const zero_adamw *,
                              const zero_update_state *);
void __wrap_zero_update_apply(const zero_backend *backend, const zero_math *math,
                              const zero_model *model, int group, zero_range range,
                              const zero_adamw *hyper, const zero_update_state *state)
{
    watch_update();
    __real_zero_update_apply(backend, math, model, group, range, hyper, state);
}

/* ---- one combination ---- */

static int most_tp(void)
{
    return test_size % 2 == 0 ? 2 : test_size;
}

static int tp_ranks(const pairs_choice *c)
{
    return c->at[TP] == 0 ? 1 : most_tp();
}

/* What is refused, and why (sharding/compile_checks.c). */
static bool is_legal(const pairs_choice *c)
{
    bool on_device = c->at[PLACE] != CPU, in_file = c->at[STATES] != IN_MEMORY;
    if (on_device && (tp_ranks(c) > 1 || c->at[MORE] != 0)) return false;
    if (c->at[MORE] != 0 && !in_file) return false;
    if (c->at[MORE] == PARAMETERS && (c->at[STAGE] != 3 || c->at[STATES] == DELAYED))
        return false;
    return c->at[MORE] != ACTIVATIONS || c->at[RECOMPUTE] == 1;
}

static test_setup setup_of(const pairs_choice *c)
{
    static const zero_offload when[STATES_PLACES] = {
        ZERO_OFFLOAD_OFF, ZERO_OFFLOAD_END, ZERO_OFFLOAD_LAZY, ZERO_OFFLOAD_BACKWARD,
        ZERO_OFFLOAD_DELAYED};
    test_setup setup = test_standard;
    setup.shape = (zero_shape){.layers = 3,
                               .hidden = 288,
                               .heads = 12,
                               .seq = 32,
                               .vocab = 60,
                               .dropout = 0.1f,
                               .seed = 3};
    setup.eval_batches = 1;
    setup.clip = 0.0; /* BACKWARD knows no norm */
    setup.directory = test_place;
    setup.tp = tp_ranks(c);
    setup.slices = c->at[PLACE] == CPU && test_size > 1 ? 2 * most_tp() : 1;
    if (c->at[PLACE] != CPU) setup.backend = &zero_backend_fake;
    setup.plan = (zero_plan_input){.stage = c->at[STAGE],
                                   .type = kinds[c->at[TYPES]].type,
                                   .activations = kinds[c->at[TYPES]].activations,
                                   .micro_batch = 1,
                                   .accumulation = 1,
                                   .collectives = ZERO_ALGORITHM_P2P,
                                   .bucket = 1 << 20,
                                   .prefetch = 1,
                                   .recompute = c->at[RECOMPUTE] == 1,
                                   .threads = 1 + c->at[THREADS],
                                   .offload = when[c->at[STATES]],
                                   .offload_parameters = c->at[MORE] == PARAMETERS,
                                   .offload_activations = c->at[MORE] == ACTIVATIONS,
                                   .offload_depth = ZERO_PLAN_DEPTH,
                                   .delayed_from = c->at[STATES] == DELAYED ? 2 : 0,
                                   .device = c->at[PLACE] != CPU,
                                   .offload_host = c->at[PLACE] == DEVICE_AND_HOST &&
                                                   c->at[STATES] != IN_MEMORY};
    return setup;
}

/* The first n ranks train; collective over the job. */
static test_outcome train(const test_setup *setup, int n)
{
    test_run run;
    test_run_open(&run, setup, n);
    running = &run.engine.runner;
    test_outcome out = test_run_outcome(&run);
    running = NULL;
    test_run_close(&run);
    return out;
}

/* TP groups see one text each, so a job of them is compared with one rank for each group. */
static test_outcome expected(const pairs_choice *c)
{
    pairs_choice plain = {
        .at[TYPES] = c->at[TYPES],
        .at[STATES] = c->at[STATES] == DELAYED ? DELAYED : IN_MEMORY,
    };
    test_setup setup = setup_of(&plain);
    setup.slices = setup_of(c).slices;
    return train(&setup, test_size / tp_ranks(c));
}

/* Combinations with equal numbers have equal results. */
static int likeness(const pairs_choice *c)
{
    return 8 * c->at[TYPES] + 4 * (c->at[PLACE] != CPU) + 2 * c->at[TP] +
           (c->at[STATES] == DELAYED);
}

static void check(const pairs_choice *c, const test_outcome *want)
{
    test_setup setup = setup_of(c);
    test_outcome got = train(&setup, test_size);
    test_expect_outcome(&setup, &got, want);
}

TEST(every_two_settings_give_the_bits_of_one_thread_in_memory)
{
    enum { SEEN = 8 * KINDS };
    pairs p = {
        .axes = AXES,
        .length = {3, KINDS, ZERO_STAGE_COUNT, STATES_PLACES, 3, 1 + (test_size > 1), 2, 3},
        .is_legal = is_legal,
        .rng = {.purpose = ZERO_RNG_TEST}};
    test_outcome want[SEEN];
    bool is_known[SEEN] = {false};
    pairs_open(&p);
    for (pairs_choice c; pairs_next(&p, &c);) {
        int i = likeness(&c);
        if (!is_known[i]) want[i] = expected(&c);
        is_known[i] = true;
        check(&c, &want[i]);
    }
    assert_all(!zero_cpu_has_threads() || updates_in_calls > 0);
}
