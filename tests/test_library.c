/* A program of somebody else's: it links libzero and nothing of ours besides, and trains.
 *
 * The text counts 0, 1, 2, ..., so that the next word follows from the last one alone. */
#include <stdio.h>

#include "comm/comm.h"
#include "comm/launch.h"
#include "nn/gpt2.h"
#include "train/engine.h"

enum { VOCAB = 16, STEPS = 30 };

static void count_upwards(const void *arg, int64_t step, int64_t i, int64_t T, void *inputs,
                          void *targets)
{
    (void)arg;
    for (int64_t t = 0; t < T; t++) {
        ((int32_t *)inputs)[t] = (int32_t)((5 * step + 3 * i + t) % VOCAB);
        ((int32_t *)targets)[t] = (int32_t)((5 * step + 3 * i + t + 1) % VOCAB);
    }
}

static zero_status take_steps(zero_engine *engine, double *first, double *last)
{
    const zero_source source = {.sample = count_upwards};
    zero_run_output out;
    for (int64_t step = 0; step < STEPS; step++) {
        zero_step_input in = {.step = step,
                              .lr = 1e-2,
                              .beta1 = 0.9,
                              .beta2 = 0.95,
                              .eps = 1e-8,
                              .clip = 1.0};
        ZERO_TRY(zero_engine_step(engine, &source, &in, &out));
        if (step == 0) *first = out.loss;
    }
    *last = out.loss;
    return ZERO_OK;
}

static zero_status train_model(const zero_model *model, zero_comm *world, double *first,
                               double *last)
{
    zero_engine engine;
    zero_engine_spec spec = {.plan = {.model = model,
                                      .n_ranks = world->size,
                                      .micro_batch = 2,
                                      .seq = 8,
                                      .accumulation = 1,
                                      .bucket = 1 << 16},
                             .seed = 1,
                             .eval_batches = 1};
    ZERO_TRY(zero_backend_find("cpu", &spec.backend));
    ZERO_TRY(zero_engine_init(&engine, &spec, world));
    zero_status st = take_steps(&engine, first, last);
    zero_engine_destroy(&engine);
    return st;
}

static zero_status train(double *first, double *last)
{
    const zero_gpt2_shape shape = {
        .layers = 1, .hidden = 16, .heads = 2, .seq = 8, .vocab = VOCAB, .seed = 1};
    zero_comm world;
    zero_model model;
    ZERO_TRY(zero_gpt2_describe(&shape, &model));
    zero_status st = zero_comm_world(&world);
    if (st == ZERO_OK) {
        st = train_model(&model, &world, first, last);
        zero_comm_destroy(&world);
    }
    zero_model_destroy(&model);
    return st;
}

int main(int argc, char **argv)
{
    double first = 0.0, last = 0.0;
    zero_status st = zero_launch_start(&argc, &argv);
    if (st == ZERO_OK) st = train(&first, &last);
    if (st == ZERO_OK) st = zero_launch_stop();
    if (st != ZERO_OK) {
        fprintf(stderr, "%s\n", zero_last_error());
        zero_launch_abort(1);
    }
    printf("the loss was %.3f and is %.3f after %d steps\n", first, last, STEPS);
    return last < 0.5 * first ? 0 : 1;
}
