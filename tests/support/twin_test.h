/* twin_test.h - two runs that must end alike: the same steps in another place of memory, or in an
 * order of another kind. Settings are drawn by dice. */
#pragma once

#include "support/engine_test.h"

typedef struct {
    double first_evaluated, computed;
    int32_t first_text[1 + TEST_WORDS];
    test_outcome rest;
} twin_outcome;

/* An evaluation, a gradient and some words between steps: each needs the states of the step
 * before. */
static inline void twin_pause(test_run *run, twin_outcome *out)
{
    zero_source source = test_words(run);
    zero_step_input in = test_step_input(run, 7);
    zero_sampling how = {.temperature = 1.0, .known = run->model.vocab};
    test_run_steps(run, 5, 1);
    assert_ok(zero_engine_evaluate(&run->engine, &source, &out->first_evaluated));
    test_run_steps(run, 6, 2);
    if (zero_engine_compute(&run->engine, &source, &in, &run->last) != ZERO_OK ||
        test_generate_text(&run->engine, &how, 1, TEST_WORDS, out->first_text) != ZERO_OK)
        fail_msg("%s", zero_last_error());
    out->computed = run->last.grad_norm;
    test_run_steps(run, 8, 1);
}

/* Steps with pauses between them; `look` may look at the run before it is closed. Collective over the
 * job. */
static inline twin_outcome twin_run(const test_setup *setup, void (*look)(const test_run *))
{
    test_run run;
    twin_outcome out;
    memset(&out, 0, sizeof out);
    test_run_open(&run, setup, test_size);
    twin_pause(&run, &out);
    out.rest = test_run_outcome(&run);
    if (look) look(&run);
    test_run_close(&run);
    return out;
}

/* ---- settings ---- */

typedef struct {
    zero_rng rng;
    uint64_t next;
} dice;

static inline int64_t draw(dice *d, const int64_t *values, int n)
{
    return values[zero_rng_bits(&d->rng, d->next++) % (uint64_t)n];
}

#define DRAW(d, ...) \
    draw(d, (const int64_t[]){__VA_ARGS__}, \
         (int)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))

static inline bool is_power_of_two(int n)
{
    return (n & (n - 1)) == 0;
}

/* The options that change no bits wherever memory lies. */
static inline void draw_form(dice *d, zero_plan_input *plan)
{
    plan->reproducible = DRAW(d, 0, 0, 1) == 1 && is_power_of_two(test_size);
    plan->partition = (zero_partition_scheme)DRAW(d, 0, 1);
    plan->bucket = DRAW(d, 1 << 20, 2048);
    plan->serial = DRAW(d, 0, 0, 1) == 1;
    plan->prefetch = DRAW(d, 0, 1, 2, 1000);
    plan->persist = DRAW(d, 0, 100, 1 << 30);
}

static inline void draw_route(dice *d, test_setup *setup)
{
    static const zero_algorithm algorithms[] = {ZERO_ALGORITHM_P2P, ZERO_ALGORITHM_SHM,
                                                ZERO_ALGORITHM_HIER};
    int route = (int)DRAW(d, 0, 1, 2);
    bool fits = algorithms[route] != ZERO_ALGORITHM_HIER || test_size >= 2;
    setup->plan.collectives = fits ? algorithms[route] : ZERO_ALGORITHM_P2P;
    setup->fake_nodes = setup->plan.collectives == ZERO_ALGORITHM_HIER ? 2 : 1;
}
