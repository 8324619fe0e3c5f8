/* faulty_unit.h - a model's unit that goes wrong. */
#pragma once

#include "support/engine_test.h"

/* One rank spoils one number in one step; the rest is the unit's own work. */
typedef struct {
    zero_unit unit; /* as it was */
    int64_t n_params[ZERO_UNIT_GROUPS];
    int64_t step;                      /* -1: in none */
    bool is_mine, in_forward, in_loss; /* one of the two: its losses, in either pass */
    float number;
    int64_t element; /* of the output, of the losses, or of the group's gradient */
} test_fault;

static inline void test_spoil_losses(const test_fault *f, const zero_call *call)
{
    if (f->is_mine && f->in_loss && call->row_loss && call->batch->step == f->step)
        call->row_loss[f->element] = f->number;
}

static inline void test_faulty_forward(const zero_unit *unit, const zero_call *call)
{
    const test_fault *f = unit->shape;
    f->unit.forward(&f->unit, call);
    bool is_now = call->training && call->batch->step == f->step;
    if (f->is_mine && f->in_forward && is_now && call->out) /* recomputed without output */
        call->out[f->element] = f->number;
    test_spoil_losses(f, call);
}

static inline void test_faulty_backward(const zero_unit *unit, const zero_call *call)
{
    const test_fault *f = unit->shape;
    f->unit.backward(&f->unit, call);
    test_spoil_losses(f, call);
    if (f->is_mine && !f->in_forward && !f->in_loss && call->batch->step == f->step)
        call->grad[0][f->element] = f->number;
}

static inline zero_unit_sizes test_faulty_sizes(const zero_unit *unit, int64_t B, int64_t T)
{
    const test_fault *f = unit->shape;
    return f->unit.sizes(&f->unit, B, T);
}

/* A run's units can be exchanged: the plan depends on their sizes only, which stay. */
static inline void test_plant(test_run *run, int unit, test_fault *f)
{
    zero_unit *u = &run->model.units[unit];
    f->unit = *u;
    for (int k = 0; k < u->n_groups; k++)
        f->n_params[k] = run->model.groups[u->groups[k]].n_params;
    u->shape = f;
    u->sizes = test_faulty_sizes;
    u->forward = test_faulty_forward;
    u->backward = test_faulty_backward;
}

/* Stages with and without windows and recomputation. */
static inline test_setup test_setup_of(int stage, zero_type type)
{
    test_setup setup = test_standard;
    setup.plan.stage = stage;
    setup.plan.type = type;
    setup.plan.collectives = stage % 2 == 0 ? ZERO_ALGORITHM_P2P : ZERO_ALGORITHM_SHM;
    setup.plan.recompute = stage > 1;
    return setup;
}

/* One step; its verdict is the same on all ranks. */
static inline zero_status test_step(test_run *run, int64_t n)
{
    zero_source source = test_words(run);
    zero_step_input in = test_step_input(run, n);
    return zero_engine_step(&run->engine, &source, &in, &run->last);
}
