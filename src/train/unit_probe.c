#include "train/unit_probe.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "base/fail.h"
#include "base/number.h"
#include "base/rng.h"
#include "math/backends.h"
#include "nn/mark.h"
#include "nn/model.h"

enum { GUARD = 64 }; /* floats */

/* ---- memory ---- */

static void name(zero_probe *p, int array, const char *text, int64_t n)
{
    p->arrays[array] = (zero_probe_array){.name = text, .n = n};
}

static void *take(const zero_probe *p, size_t bytes, size_t *at)
{
    void *place = p->arena.base ? p->arena.base + *at : NULL;
    *at += zero_round_up_size(bytes, 64);
    return place;
}

static size_t lay_out(zero_probe *p)
{
    size_t at = 0, positions = (size_t)(p->batch.B * p->batch.T);
    for (int i = 0; i < ZERO_PROBE_ARRAYS; i++) {
        zero_probe_array *a = &p->arrays[i];
        if (a->n > 0) a->at = take(p, (size_t)(a->n + GUARD) * sizeof(float), &at);
    }
    p->inputs = take(p, positions * p->model->input_bytes, &at);
    p->targets = take(p, positions * p->model->target_bytes, &at);
    return at;
}

zero_status zero_probe_check_guards(const zero_probe *p)
{
    const uint32_t mark = ZERO_MARK;
    for (int i = 0; i < ZERO_PROBE_ARRAYS; i++) {
        const zero_probe_array *a = &p->arrays[i];
        for (int64_t k = a->n; a->at && k < a->n + GUARD; k++)
            if (memcmp(&a->at[k], &mark, sizeof mark) != 0)
                return zero_fail(
                    ZERO_ERR_INVALID,
                    "unit '%s' writes beyond the end of %s, which has the %" PRId64
                    " floats that sizes() asked for",
                    p->unit->name, a->name, a->n);
    }
    return ZERO_OK;
}

static uint64_t add_to_hash(uint64_t hash, const void *data, size_t bytes)
{
    return bytes > 0 ? XXH3_64bits_withSeed(data, bytes, hash) : hash;
}

uint64_t zero_probe_hash(const zero_probe *p)
{
    size_t positions = (size_t)(p->batch.B * p->batch.T);
    uint64_t hash = add_to_hash(0, p->inputs, positions * p->model->input_bytes);
    hash = add_to_hash(hash, p->targets, positions * p->model->target_bytes);
    const zero_probe_array *in = &p->arrays[ZERO_PROBE_IN];
    hash = add_to_hash(hash, in->at, (size_t)in->n * sizeof(float));
    for (int k = 0; k < p->unit->n_groups; k++) {
        const zero_probe_array *param = &p->arrays[ZERO_PROBE_PARAM + k];
        hash = add_to_hash(hash, param->at, (size_t)param->n * sizeof(float));
    }
    return hash;
}

/* ---- contents ---- */

static void draw(int64_t seed, int array, zero_probe_array *a)
{
    zero_rng rng = {
        .seed = (uint64_t)seed, .purpose = ZERO_RNG_TEST, .tensor = (uint64_t)array};
    if (a->at) zero_rng_normal(&rng, 0, a->n, a->at);
}

/* Initial values, moved a little where all of a tensor's are equal: at exactly zero or one
 * some mistakes do not show. */
static void draw_params(zero_probe *p, int64_t seed, int k)
{
    const int g = p->unit->groups[k];
    const zero_group *group = &p->model->groups[g];
    float *param = p->arrays[ZERO_PROBE_PARAM + k].at;
    zero_probe_array *noise = &p->arrays[ZERO_PROBE_GRAD + k];
    draw(seed, ZERO_PROBE_PARAM + k, noise);
    zero_model_init_params(p->model, g, seed, 0, group->n_params, param);
    for (int t = group->first_tensor; t < group->first_tensor + group->n_tensors; t++) {
        zero_range range = zero_range_of_tensor(&p->model->tensors[t]);
        if (p->model->tensors[t].init == ZERO_INIT_NORMAL) continue;
        for (int64_t i = range.begin; i < range.end; i++) param[i] += 0.1f * noise->at[i];
    }
}

static void fill(zero_probe *p, const zero_source *source, int64_t seed)
{
    const zero_batch *b = &p->batch;
    for (int i = 0; i < ZERO_PROBE_ARRAYS; i++)
        if (p->arrays[i].at) zero_mark_fill(p->arrays[i].at, p->arrays[i].n + GUARD);
    draw(seed, ZERO_PROBE_IN, &p->arrays[ZERO_PROBE_IN]);
    draw(seed, ZERO_PROBE_D_OUT, &p->arrays[ZERO_PROBE_D_OUT]);
    for (int k = 0; k < p->unit->n_groups; k++) draw_params(p, seed, k);
    for (int64_t s = 0; s < b->B; s++)
        source->sample(source->arg, 0, s, b->T,
                       p->inputs + (size_t)(s * b->T) * p->model->input_bytes,
                       p->targets + (size_t)(s * b->T) * p->model->target_bytes);
}

zero_status zero_probe_init(zero_probe *p, const zero_model *model, int unit,
                            const zero_source *source, const zero_unit_check_spec *spec)
{
    *p = (zero_probe){.model = model,
                      .unit = &model->units[unit],
                      .index = unit,
                      .is_last = unit == model->n_units - 1,
                      .batch = {.B = spec->B, .T = spec->T}};
    p->batch.loss_seed = 1.0f / (float)(spec->B * spec->T);
    ZERO_TRY(zero_model_check_sizes(model, spec->B, spec->T));
    ZERO_TRY(zero_backend_find(spec->backend, &p->backend));
    zero_unit_sizes s = p->unit->sizes(p->unit, p->batch.B, p->batch.T);
    int64_t in = 0;
    if (p->index > 0) {
        const zero_unit *before = p->unit - 1;
        in = before->sizes(before, p->batch.B, p->batch.T).out;
    }
    name(p, ZERO_PROBE_IN, "in", in);
    name(p, ZERO_PROBE_OUT, "out", s.out);
    name(p, ZERO_PROBE_SAVED, "saved", s.saved);
    name(p, ZERO_PROBE_SAVED_AGAIN, "saved", s.saved);
    name(p, ZERO_PROBE_OUT_AGAIN, "out", s.out);
    name(p, ZERO_PROBE_FORWARD_WORK, "work in forward", s.forward_work);
    name(p, ZERO_PROBE_BACKWARD_WORK, "work in backward", s.backward_work);
    name(p, ZERO_PROBE_LOGITS, "logits", s.logits);
    name(p, ZERO_PROBE_ROW_LOSS, "row_loss", s.row_loss);
    name(p, ZERO_PROBE_STREAM, "stream", zero_max(in, s.out));
    name(p, ZERO_PROBE_D_OUT, "the weights of out", s.out);
    name(p, ZERO_PROBE_D_IN, "the gradient of in", in);
    int64_t longest = in;
    for (int k = 0; k < p->unit->n_groups; k++) {
        int64_t n = p->model->groups[p->unit->groups[k]].n_params;
        name(p, ZERO_PROBE_PARAM + k, "param", n);
        name(p, ZERO_PROBE_GRAD + k, "grad", n);
        name(p, ZERO_PROBE_D_PARAM + k, "the gradient of param", n);
        longest = zero_max(longest, n);
    }
    name(p, ZERO_PROBE_KEPT, "values", longest);
    name(p, ZERO_PROBE_SCRATCH, "scratch", zero_math_scratch());
    ZERO_TRY(zero_arena_init(&p->arena, lay_out(p)));
    lay_out(p);
    fill(p, source, spec->seed);
    p->batch.inputs = p->inputs;
    p->batch.targets = p->targets;
    p->math.scratch = p->arrays[ZERO_PROBE_SCRATCH].at;
    return p->backend->open(&p->math);
}

void zero_probe_destroy(zero_probe *p)
{
    zero_arena_destroy(&p->arena);
    *p = (zero_probe){0};
}

/* ---- calls ---- */

static zero_call make_call(const zero_probe *p)
{
    zero_call c = {.backend = p->backend,
                   .math = &p->math,
                   .batch = &p->batch,
                   .training = true,
                   .type = ZERO_FP32,
                   .in = p->arrays[ZERO_PROBE_IN].at,
                   .saved = p->arrays[ZERO_PROBE_SAVED].at};
    for (int k = 0; k < p->unit->n_groups; k++)
        c.param[k] = p->arrays[ZERO_PROBE_PARAM + k].at;
    return c;
}

static void mark(zero_probe *p, int array)
{
    zero_mark_fill(p->arrays[array].at, p->arrays[array].n);
}

zero_status zero_probe_forward(zero_probe *p, bool wants_out)
{
    zero_call c = make_call(p);
    const int written[] = {ZERO_PROBE_OUT, ZERO_PROBE_SAVED, ZERO_PROBE_FORWARD_WORK};
    for (int i = 0; i < 3; i++) mark(p, written[i]);
    if (wants_out) c.out = p->arrays[ZERO_PROBE_OUT].at;
    c.work = p->arrays[ZERO_PROBE_FORWARD_WORK].at;
    p->unit->forward(p->unit, &c);
    return p->backend->sync(&p->math);
}

zero_status zero_probe_backward(zero_probe *p, bool accumulates)
{
    zero_call c = make_call(p);
    zero_probe_array *d_out = &p->arrays[ZERO_PROBE_D_OUT];
    mark(p, ZERO_PROBE_STREAM);
    mark(p, ZERO_PROBE_BACKWARD_WORK);
    mark(p, ZERO_PROBE_LOGITS);
    mark(p, ZERO_PROBE_ROW_LOSS);
    c.stream = p->arrays[ZERO_PROBE_STREAM].at;
    if (d_out->at) memcpy(c.stream, d_out->at, (size_t)d_out->n * sizeof(float));
    c.work = p->arrays[ZERO_PROBE_BACKWARD_WORK].at;
    c.logits = p->arrays[ZERO_PROBE_LOGITS].at;
    c.row_loss = p->arrays[ZERO_PROBE_ROW_LOSS].at;
    for (int k = 0; k < p->unit->n_groups; k++) {
        if (!accumulates) mark(p, ZERO_PROBE_GRAD + k);
        if (p->unit->backward_without_params) c.param[k] = NULL;
        c.grad[k] = p->arrays[ZERO_PROBE_GRAD + k].at;
        c.accumulate[k] = accumulates;
    }
    p->unit->backward(p->unit, &c);
    return p->backend->sync(&p->math);
}

/* Each term is right to some units in its last place, and errors add up as random ones
 * do. */
static double sum(int64_t n, const float *x, const float *factors, double factor,
                  double *noise)
{
    double total = 0.0, squares = 0.0;
    for (int64_t i = 0; i < n; i++) {
        double term = (double)x[i] * (factors ? (double)factors[i] : factor);
        total += term;
        squares += term * term;
    }
    *noise = 16.0 * 0x1p-24 * sqrt(squares);
    return total;
}

zero_status zero_probe_objective(zero_probe *p, double *value, double *noise)
{
    const zero_probe_array *out = &p->arrays[ZERO_PROBE_OUT];
    const zero_probe_array *loss = &p->arrays[ZERO_PROBE_ROW_LOSS];
    ZERO_TRY(zero_probe_forward(p, true));
    if (p->is_last) {
        ZERO_TRY(zero_probe_backward(p, false));
        *value = sum(loss->n, loss->at, NULL, (double)p->batch.loss_seed, noise);
    } else {
        *value = sum(out->n, out->at, p->arrays[ZERO_PROBE_D_OUT].at, 0.0, noise);
    }
    return ZERO_OK;
}
