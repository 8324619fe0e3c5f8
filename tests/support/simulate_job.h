/* simulate_job.h - a plan, compiled for rank 0 of a job on some nodes, and its simulation. */
#pragma once

#include "support/planned.h"
#include "support/test.h"

#include "nn/shape.h"
#include "nn/share.h"
#include "sharding/compile.h"
#include "sharding/schedule_exchange.h"
#include "simulation/simulate.h"

typedef struct {
    zero_layout layout;
    zero_schedule s;
    zero_simulate_input input;
} simulate_job;

/* 1 us, 12.5 GB/s, 1 Tflop/s. */
static inline zero_simulate_input simulate_input(void)
{
    return (zero_simulate_input){
        .machine = {.latency = 1e-6, .bandwidth = 12.5e9, .flops = 1e12},
        .adapter = INFINITY,
        .switch_ratio = 1.0,
        .memory_bandwidth = INFINITY,
        .steps = 2,
        .memory_limit = INT64_C(1) << 33,
        .most_messages = 100000000};
}

/* The input's N_d ranks, on as many blocks of nodes. */
static inline void simulate_open(simulate_job *job, zero_plan_input input, int nodes)
{
    job->input = simulate_input();
    assert_ok(zero_layout_init_blocks(&job->layout, input.n_ranks, nodes));
    input.layout = &job->layout;
    job->s = compiled(&input);
}

static inline void simulate_close(simulate_job *job)
{
    zero_schedule_destroy(&job->s);
    zero_layout_destroy(&job->layout);
}

static inline zero_simulated simulate_run(const simulate_job *job)
{
    zero_simulated out;
    assert_ok(zero_simulate(&job->s, &job->input, &out));
    return out;
}

static inline zero_model simulate_gpt2(int layers, int hidden)
{
    zero_shape shape = {
        .layers = layers, .hidden = hidden, .heads = 4, .seq = 256, .vocab = 1000};
    zero_model model = built(&shape);
    return model;
}
