/* unit_machine.h - a model with the memory of one microbatch, whose units compute whole passes. */
#pragma once

#include "support/gpt2_test.h"

#include "base/number.h"
#include "math/cpu_state.h"
#include "support/model_writers.h"

#define MAX_UNITS 8

/* A model with the memory of one microbatch. */
typedef struct {
    zero_model model;
    const zero_backend *backend;
    zero_math math;
    zero_batch batch;
    zero_type type;            /* of the weights that units read */
    uint16_t *half[MAX_UNITS]; /* by group, if the units read it instead of param */
    float *param[MAX_UNITS], *grad[MAX_UNITS]; /* by group */
    float *out[MAX_UNITS], *saved[MAX_UNITS];  /* by unit */
    float *stream, *work, *logits, *row_loss;
} machine;

/* Weights large enough for every path of the model to matter. */
static inline void set_weights(test_pool *pool, machine *m)
{
    for (int g = 0; g < m->model.n_groups; g++) {
        m->param[g] = test_floats(pool, m->model.groups[g].n_params);
        m->grad[g] = test_floats(pool, m->model.groups[g].n_params);
        for (int64_t i = 0; i < m->model.groups[g].n_params; i++) m->param[g][i] *= 0.3f;
    }
    for (int i = 0; i < m->model.n_tensors; i++) {
        const zero_tensor *t = &m->model.tensors[i];
        for (int64_t k = 0; k < t->cols && t->init == ZERO_INIT_ONES; k++)
            m->param[t->group][t->offset + k] += 1.0f;
        /* Rows near 0 are divided by their length, which would enlarge what is rounded. */
        for (int64_t k = 0; k < t->rows * t->cols && strstr(t->name, "embed"); k++)
            m->param[t->group][t->offset + k] *= 10.0f;
    }
}

static inline void make_machine(test_pool *pool, machine *m, const zero_shape *shape,
                                int64_t B, int64_t T)
{
    *m = (machine){.model = built(shape), .backend = &zero_backend_naive};
    assert_true(m->model.n_units <= MAX_UNITS);
    set_weights(pool, m);
    int32_t *tokens = test_tokens(pool, B * T, shape->vocab);
    m->batch = (zero_batch){.B = B,
                            .T = T,
                            .inputs = tokens,
                            .targets = test_tokens(pool, B * T, shape->vocab),
                            .step = 3,
                            .first_sample = 11,
                            .loss_seed = (float)(1.0 / (double)(B * T))};
    int64_t work = 0, logits = 0;
    for (int u = 0; u < m->model.n_units; u++) {
        zero_unit_sizes n = m->model.units[u].sizes(&m->model.units[u], B, T);
        m->out[u] = test_floats(pool, n.out);
        m->saved[u] = test_floats(pool, n.saved);
        work = zero_max(work, zero_max(n.forward_work, n.backward_work));
        logits = zero_max(logits, n.logits);
    }
    m->stream = test_floats(pool, B * T * shape->hidden);
    m->work = test_floats(pool, work);
    m->logits = test_floats(pool, logits);
    m->row_loss = test_floats(pool, B * T);
}

static inline zero_call make_call(const machine *m, int u, bool training)
{
    zero_call c = {.backend = m->backend,
                   .math = &m->math,
                   .batch = &m->batch,
                   .training = training,
                   .type = m->type,
                   .in = u > 0 ? m->out[u - 1] : NULL,
                   .out = m->out[u],
                   .saved = m->saved[u],
                   .stream = m->stream,
                   .work = m->work,
                   .logits = m->logits,
                   .row_loss = m->row_loss};
    const zero_unit *unit = &m->model.units[u];
    for (int k = 0; k < unit->n_groups; k++) {
        c.param[k] = m->param[unit->groups[k]];
        if (m->type != ZERO_FP32) c.param[k] = m->half[unit->groups[k]];
        c.grad[k] = m->grad[unit->groups[k]];
        c.accumulate[k] = u != first_writer(&m->model, unit->groups[k]);
    }
    return c;
}

static inline double mean_loss(const machine *m)
{
    double sum = 0.0;
    int64_t rows = m->batch.B * m->batch.T;
    for (int64_t i = 0; i < rows; i++) sum += (double)m->row_loss[i];
    return sum / (double)rows;
}

static inline void run_backward(const machine *m, int u)
{
    zero_call c = make_call(m, u, true);
    if (m->model.units[u].backward_without_params) c.param[0] = NULL;
    m->model.units[u].backward(&m->model.units[u], &c);
}

static inline double forward(const machine *m, bool training)
{
    for (int u = 0; u < m->model.n_units; u++) {
        zero_call c = make_call(m, u, training);
        m->model.units[u].forward(&m->model.units[u], &c);
    }
    if (training) run_backward(m, m->model.n_units - 1); /* which gives the loss */
    return mean_loss(m);
}

/* The gradient starts as NaN: the first writer of a group defines every element of it. */
static inline void gradient(const machine *m)
{
    for (int g = 0; g < m->model.n_groups; g++)
        memset(m->grad[g], 0xff, (size_t)m->model.groups[g].n_params * sizeof(float));
    forward(m, true);
    for (int u = m->model.n_units - 2; u >= 0; u--) run_backward(m, u);
}

static inline void open_backend(test_pool *pool, machine *m, const zero_backend *backend)
{
    m->backend = backend;
    assert_ok(backend->open(&m->math));
    m->math.state[ZERO_CPU_BF16_PRODUCTS] = NULL; /* the model in fp32 does not round */
    m->math.scratch = test_floats(pool, zero_math_scratch());
}

/* Fewer key heads than heads, more channels in heads than in rows, one key head, ties. */
#define OTHER(of, c, h, k, d, f) \
    .kind = &zero_architectures[of], .layers = 2, .hidden = (c), .heads = (h), \
    .kv_heads = (k), .head_size = (d), .inner = (f)
