#include "bench_engine.h"

#include <assert.h>
#include <inttypes.h>

#include "base/clock.h"
#include "base/fail.h"
#include "base/rng.h"
#include "nn/shape.h"

#define WARM_UPS 24 /* at most: fp16 lowers its loss scale until a step is taken */

/* Random tokens: the time of a step does not depend on them. */
static void random_sample(const void *arg, int64_t step, int64_t i, int64_t T, void *inputs,
                          void *targets)
{
    const zero_shape *shape = arg;
    zero_rng rng = {
        .purpose = ZERO_RNG_TEST, .step = (uint64_t)step, .sample = (uint64_t)i};
    int32_t *in = inputs, *out = targets;
    for (int64_t t = 0; t <= T; t++) {
        uint64_t bits = zero_rng_bits(&rng, (uint64_t)t);
        int32_t token = (int32_t)(bits % (uint64_t)shape->vocab);
        if (t < T) in[t] = token;
        if (t > 0) out[t - 1] = token;
    }
}

static zero_status take_step(bench_engine *e, zero_run_output *out)
{
    const zero_config *c = e->config;
    zero_source source = {.sample = random_sample, .arg = e->spec.plan.model->shape};
    zero_step_input in = {.step = e->next_step++,
                          .lr = c->lr,
                          .beta1 = c->beta1,
                          .beta2 = c->beta2,
                          .eps = c->eps,
                          .weight_decay = c->weight_decay,
                          .clip = c->clip};
    return zero_engine_step(&e->engine, &source, &in, out);
}

/* A skipped step leaves the optimizer out, so it must not be timed. */
static zero_status warm_up(bench_engine *e)
{
    zero_run_output out = {.overflow = true};
    for (int i = 0; out.overflow && i < WARM_UPS; i++) ZERO_TRY(take_step(e, &out));
    if (out.overflow)
        return zero_fail(
            ZERO_ERR_INVALID,
            "no step to time: the first %d were skipped, down to a loss scale of %g",
            WARM_UPS, (double)e->engine.loss_scale.scale);
    return zero_engine_settle(&e->engine);
}

static zero_status prepare(void *arg)
{
    bench_engine *e = arg;
    if (e->is_open) return ZERO_OK;
    if (e->resident && *e->resident) bench_engine_close(*e->resident);
    ZERO_TRY(zero_engine_init(&e->engine, &e->spec, e->comm));
    e->is_open = true;
    if (e->resident) *e->resident = e;
    return warm_up(e);
}

static double exposed_seconds(const zero_comm *comm)
{
    double sum = 0.0;
    for (int k = 0; k < ZERO_COLLECTIVE_KINDS; k++) sum += comm->duration[k].exposed;
    return sum;
}

/* The engine's profile counts from its first step: that of a run is a difference. */
static void add_profile(bench_engine *e, double sign)
{
    const zero_profile *p = &e->engine.runner.profile;
    assert(p->n_columns == BENCH_COLUMNS);
    for (int program = 0; program < ZERO_PROGRAMS; program++)
        for (int op = 0; op < ZERO_OP_KINDS; op++) {
            const zero_profile_entry *row =
                zero_profile_at(p, (zero_program_kind)program, (zero_op)op, ZERO_ALL_UNITS);
            for (int k = 0; k < BENCH_COLUMNS; k++)
                e->profile.of[op][k] += sign * row[k].seconds;
            e->profile.exchange += sign * row[ZERO_ALL_UNITS].exchange;
        }
    e->profile.exposed += sign * exposed_seconds(e->comm);
}

static zero_status run(void *arg)
{
    bench_engine *e = arg;
    add_profile(e, -1.0);
    double start = zero_clock_seconds();
    for (int i = 0; i < e->steps; i++) {
        zero_run_output out;
        ZERO_TRY(take_step(e, &out));
        if (out.overflow)
            return zero_fail(ZERO_ERR_INVALID, "timed step %" PRId64 " was skipped",
                             e->next_step - 1);
    }
    ZERO_TRY(zero_engine_settle(&e->engine));
    e->profile.steps += e->steps;
    e->profile.all += zero_clock_seconds() - start;
    add_profile(e, 1.0);
    return ZERO_OK;
}

bench_work bench_engine_work(bench_engine *e)
{
    return (bench_work){prepare, run, e};
}

void bench_engine_close(bench_engine *e)
{
    if (e->is_open) zero_engine_destroy(&e->engine);
    e->is_open = false;
}
