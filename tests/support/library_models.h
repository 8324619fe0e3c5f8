/* library_models.h - two small models of a program that knows include/zero alone.
 *
 *     tied     x A -> tanh -> (h A^T - target)^2 / 2: the first unit and the last read one group,
 *              the middle one reads none, and the last one scales with a group of its own
 *     flat     (w x - target)^2 / 2 with all weights in one group of two tensors */
#pragma once

#include <math.h>
#include <string.h>

#include <zero/layers.h>
#include <zero/train.h>

enum { WIDE = 24, NARROW = 5 };

static inline int64_t rows_of(const zero_call *c)
{
    return c->batch->B * c->batch->T;
}

/* ---- tied: units ---- */

static inline zero_unit_sizes tied_in_sizes(const zero_unit *u, int64_t B, int64_t T)
{
    (void)u;
    return (zero_unit_sizes){.out = B * T * NARROW};
}

static inline void tied_in_forward(const zero_unit *u, const zero_call *c)
{
    zero_multiply(c, &(zero_gemm){.m = rows_of(c),
                                  .n = NARROW,
                                  .k = WIDE,
                                  .a = c->batch->inputs,
                                  .b = zero_weight(u, c, 0, 0),
                                  .b_type = c->type,
                                  .c = c->out});
}

static inline void tied_in_backward(const zero_unit *u, const zero_call *c)
{
    zero_multiply(c, &(zero_gemm){.transpose_a = true,
                                  .accumulate = c->accumulate[0],
                                  .m = WIDE,
                                  .n = NARROW,
                                  .k = rows_of(c),
                                  .a = c->batch->inputs,
                                  .b = c->stream,
                                  .c = zero_weight_grad(u, c, 0, 0)});
}

static inline zero_unit_sizes tanh_sizes(const zero_unit *u, int64_t B, int64_t T)
{
    (void)u;
    return (zero_unit_sizes){.out = B * T * NARROW, .saved = B * T * NARROW};
}

static inline void tanh_forward(const zero_unit *u, const zero_call *c)
{
    (void)u;
    for (int64_t i = 0; i < rows_of(c) * NARROW; i++)
        c->out[i] = c->saved[i] = tanhf(c->in[i]);
}

static inline void tanh_backward(const zero_unit *u, const zero_call *c)
{
    (void)u;
    for (int64_t i = 0; i < rows_of(c) * NARROW; i++)
        c->stream[i] *= 1.0f - c->saved[i] * c->saved[i];
}

/* work: y [rows, WIDE], and room for the gains */
static inline zero_unit_sizes tied_out_sizes(const zero_unit *u, int64_t B, int64_t T)
{
    (void)u;
    int64_t work = B * T * WIDE + WIDE;
    return (zero_unit_sizes){
        .forward_work = work, .backward_work = work, .row_loss = B * T};
}

/* y = in A^T in work, and the losses of y * gain. */
static inline const float *tied_losses(const zero_unit *u, const zero_call *c)
{
    float *y = c->work;
    const float *target = c->batch->targets;
    const float *gain = zero_weight_floats(u, c, 1, 0, y + rows_of(c) * WIDE);
    zero_multiply(c, &(zero_gemm){.transpose_b = true,
                                  .m = rows_of(c),
                                  .n = WIDE,
                                  .k = NARROW,
                                  .a = c->in,
                                  .b = zero_weight(u, c, 0, 0),
                                  .b_type = c->type,
                                  .c = y});
    for (int64_t r = 0; r < rows_of(c); r++) {
        c->row_loss[r] = 0.0f;
        for (int i = 0; i < WIDE; i++) {
            float error = y[r * WIDE + i] * gain[i] - target[r];
            c->row_loss[r] += 0.5f * error * error;
        }
    }
    return gain;
}

static inline void tied_out_forward(const zero_unit *u, const zero_call *c)
{
    if (c->row_loss) tied_losses(u, c);
}

static inline void tied_out_backward(const zero_unit *u, const zero_call *c)
{
    const float *target = c->batch->targets, *gain = tied_losses(u, c);
    float *y = c->work, *d_gain = zero_weight_grad(u, c, 1, 0);
    if (!c->accumulate[1]) memset(d_gain, 0, WIDE * sizeof *d_gain);
    for (int64_t k = 0; k < rows_of(c) * WIDE; k++) {
        int64_t i = k % WIDE;
        float error = (y[k] * gain[i] - target[k / WIDE]) * c->batch->loss_seed;
        d_gain[i] += error * y[k];
        y[k] = error * gain[i];
    }
    zero_multiply(c, &(zero_gemm){.transpose_a = true,
                                  .accumulate = c->accumulate[0],
                                  .m = WIDE,
                                  .n = NARROW,
                                  .k = rows_of(c),
                                  .a = y,
                                  .b = c->in,
                                  .c = zero_weight_grad(u, c, 0, 0)});
    zero_multiply(c, &(zero_gemm){.m = rows_of(c),
                                  .n = NARROW,
                                  .k = WIDE,
                                  .a = y,
                                  .b = zero_weight(u, c, 0, 0),
                                  .b_type = c->type,
                                  .c = c->stream});
}

/* ---- tied: tables, which tests break ---- */

typedef struct {
    zero_tensor tensors[2];
    const char *groups[2];
    zero_unit units[3];
    zero_model_tables tables;
} tied_model;

static inline void tied_init(tied_model *m)
{
    *m = (tied_model){
        .tensors = {{"A", WIDE, NARROW, .init = ZERO_INIT_NORMAL, .init_std = 0.3f},
                    {"gain", 1, WIDE, .group = 1, .init = ZERO_INIT_ONES}},
        .groups = {"tied", "gains"},
        .units = {{"in", .n_groups = 1, .groups = {0}, .backward_without_params = true},
                  {"tanh", .n_groups = 0},
                  {"out", .n_groups = 2, .groups = {0, 1}}}};
    m->tensors[0].decays = true;
    m->units[0].sizes = tied_in_sizes, m->units[0].forward = tied_in_forward;
    m->units[1].sizes = tanh_sizes, m->units[1].forward = tanh_forward;
    m->units[2].sizes = tied_out_sizes, m->units[2].forward = tied_out_forward;
    m->units[0].backward = tied_in_backward, m->units[1].backward = tanh_backward;
    m->units[2].backward = tied_out_backward;
    m->tables = (zero_model_tables){.n_tensors = 2,
                                    .n_groups = 2,
                                    .n_units = 3,
                                    .tensors = m->tensors,
                                    .groups = m->groups,
                                    .units = m->units,
                                    .seq = 3,
                                    .input_bytes = WIDE * sizeof(float),
                                    .target_bytes = sizeof(float)};
}

/* Numbers in [-1, 1) that look random, the same on all ranks. */
static inline float scatter(int64_t a, int64_t b, int64_t c)
{
    uint64_t x = (uint64_t)a * 1000003u + (uint64_t)b * 7919u + (uint64_t)c + 1;
    for (int i = 0; i < 3; i++) x = x * 6364136223846793005u + 1442695040888963407u;
    return (float)(x >> 40) * 0x1p-23f - 1.0f;
}

static inline void tied_sample(const void *arg, int64_t step, int64_t i, int64_t T, void *x,
                               void *y)
{
    (void)arg;
    for (int64_t k = 0; k < T * WIDE; k++) ((float *)x)[k] = scatter(step, i, k);
    for (int64_t t = 0; t < T; t++) ((float *)y)[t] = 0.5f * ((float *)x)[t * WIDE];
}

/* ---- flat: one unit, whose shape is the number of its weights ---- */

/* The gradient over `rows` samples, in plain C: what the unit does, and a loop of one's own. */
static inline void flat_gradient(int64_t n, int64_t rows, const float *w, const float *x,
                                 const float *target, float seed, float *grad, float *loss)
{
    for (int64_t i = 0; i < n; i++) grad[i] = 0.0f;
    for (int64_t r = 0; r < rows; r++, x += n) {
        float error = -target[r];
        for (int64_t i = 0; i < n; i++) error += w[i] * x[i];
        for (int64_t i = 0; i < n; i++) grad[i] += seed * error * x[i];
        loss[r] = 0.5f * error * error;
    }
}

static inline int64_t flat_length(const zero_unit *u)
{
    return *(const int64_t *)u->shape;
}

static inline zero_unit_sizes flat_sizes(const zero_unit *u, int64_t B, int64_t T)
{
    return (zero_unit_sizes){.backward_work = flat_length(u), .row_loss = B * T};
}

static inline void flat_forward(const zero_unit *u, const zero_call *c)
{
    (void)u;
    (void)c; /* these tests do not evaluate it */
}

static inline void flat_backward(const zero_unit *u, const zero_call *c)
{
    zero_convert(c->type, ZERO_FP32, flat_length(u), c->param[0], c->work);
    flat_gradient(flat_length(u), rows_of(c), c->work, c->batch->inputs, c->batch->targets,
                  c->batch->loss_seed, c->grad[0], c->row_loss);
}

static inline void flat_sample(const void *arg, int64_t step, int64_t i, int64_t T, void *x,
                               void *y)
{
    const int64_t n = *(const int64_t *)arg;
    (void)T;
    for (int64_t k = 0; k < n; k++) ((float *)x)[k] = scatter(step, i, k);
    *(float *)y = 3.0f * scatter(step, i, -1);
}

/* *n weights, borrowed as the unit's shape: "w" [n - 1], which decays, and "b" [1]. */
static inline zero_status flat_describe(const int64_t *n, zero_model *model)
{
    const zero_tensor tensors[] = {
        {"w", 1, *n - 1, .decays = true, .init = ZERO_INIT_NORMAL, .init_std = 1.0f},
        {"b", 1, 1, .group = 0, .init = ZERO_INIT_ONES}};
    const char *const groups[] = {"all"};
    zero_unit unit = {"flat", .n_groups = 1, .groups = {0}, .shape = n};
    unit.sizes = flat_sizes, unit.forward = flat_forward, unit.backward = flat_backward;
    zero_model_tables tables = {2, 1, 1, tensors, groups, &unit, .seq = 1};
    tables.input_bytes = (size_t)*n * sizeof(float);
    tables.target_bytes = sizeof(float);
    return zero_model_describe(&tables, model);
}
