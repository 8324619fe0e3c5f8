#include "train/unit_probe.h"

#include "base/hash.h"
#include "math/backends.h"
#include "nn/mark.h"
#include "nn/model.h"

enum { GUARD = 64 }; /* floats */

/* ---- memory ---- */

static void name(zero_probe_array *array, const char *text, int64_t n)
{
    *array = (zero_probe_array){.name = text, .n = n};
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
            ZERO_INVALID_IF(memcmp(&a->at[k], &mark, sizeof mark) != 0,
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
    hash = add_to_hash(hash, p->in.at, (size_t)p->in.n * sizeof(float));
    for (int k = 0; k < p->unit->n_groups; k++)
        hash = add_to_hash(hash, p->param[k].at, (size_t)p->param[k].n * sizeof(float));
    return hash;
}

/* ---- contents ---- */

/* `key` is the array that the numbers are of. */
static void draw(const zero_probe *p, int64_t seed, const zero_probe_array *key,
                 zero_probe_array *a)
{
    zero_rng rng = {.seed = (uint64_t)seed,
                    .purpose = ZERO_RNG_TEST,
                    .tensor = (uint64_t)(key - p->arrays)};
    if (a->at) zero_rng_normal(&rng, 0, a->n, a->at);
}

static void fill(zero_probe *p, const zero_source *source, int64_t seed)
{
    const zero_batch *b = &p->batch;
    for (int i = 0; i < ZERO_PROBE_ARRAYS; i++)
        if (p->arrays[i].at) zero_mark_fill(p->arrays[i].at, p->arrays[i].n + GUARD);
    draw(p, seed, &p->in, &p->in);
    draw(p, seed, &p->d_out, &p->d_out);
    for (int k = 0; k < p->unit->n_groups; k++) {
        /* Initial values, moved a little where all of a tensor's are equal: at exactly zero
         * or one some mistakes do not show. */
        const int g = p->unit->groups[k];
        const zero_group *group = &p->model->groups[g];
        float *param = p->param[k].at;
        draw(p, seed, &p->param[k], &p->grad[k]);
        zero_model_init_params(p->model, g, seed, 0, group->n_params, param);
        for (int t = group->first_tensor; t < group->first_tensor + group->n_tensors; t++) {
            zero_range range = zero_range_of_tensor(&p->model->tensors[t]);
            if (p->model->tensors[t].init == ZERO_INIT_NORMAL) continue;
            for (int64_t i = range.begin; i < range.end; i++)
                param[i] += 0.1f * p->grad[k].at[i];
        }
    }
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
    name(&p->in, "in", in);
    name(&p->out, "out", s.out);
    name(&p->saved, "saved", s.saved);
    name(&p->saved_again, "saved", s.saved);
    name(&p->out_again, "out", s.out);
    name(&p->forward_work, "work in forward", s.forward_work);
    name(&p->backward_work, "work in backward", s.backward_work);
    name(&p->logits, "logits", s.logits);
    name(&p->row_loss, "row_loss", s.row_loss);
    name(&p->stream, "stream", zero_max(in, s.out));
    name(&p->d_out, "the weights of out", s.out);
    name(&p->d_in, "the gradient of in", in);
    int64_t longest = in;
    for (int k = 0; k < p->unit->n_groups; k++) {
        int64_t n = p->model->groups[p->unit->groups[k]].n_params;
        name(&p->param[k], "param", n);
        name(&p->grad[k], "grad", n);
        name(&p->d_param[k], "the gradient of param", n);
        longest = zero_max(longest, n);
    }
    name(&p->kept, "values", longest);
    name(&p->scratch, "scratch", zero_math_scratch());
    ZERO_TRY(zero_arena_init(&p->arena, lay_out(p)));
    lay_out(p);
    fill(p, source, spec->seed);
    p->batch.inputs = p->inputs;
    p->batch.targets = p->targets;
    p->math.scratch = p->scratch.at;
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
                   .in = p->in.at,
                   .saved = p->saved.at};
    for (int k = 0; k < p->unit->n_groups; k++) c.param[k] = p->param[k].at;
    return c;
}

static void mark(const zero_probe_array *array)
{
    zero_mark_fill(array->at, array->n);
}

zero_status zero_probe_forward(zero_probe *p, bool wants_out)
{
    zero_call c = make_call(p);
    mark(&p->out);
    mark(&p->saved);
    mark(&p->forward_work);
    if (wants_out) c.out = p->out.at;
    c.work = p->forward_work.at;
    p->unit->forward(p->unit, &c);
    return p->backend->sync(&p->math);
}

zero_status zero_probe_backward(zero_probe *p, bool accumulates)
{
    zero_call c = make_call(p);
    mark(&p->stream);
    mark(&p->backward_work);
    mark(&p->logits);
    mark(&p->row_loss);
    c.stream = p->stream.at;
    if (p->d_out.at) zero_copy(c.stream, p->d_out.at, p->d_out.n);
    c.work = p->backward_work.at;
    c.logits = p->logits.at;
    c.row_loss = p->row_loss.at;
    for (int k = 0; k < p->unit->n_groups; k++) {
        if (!accumulates) mark(&p->grad[k]);
        if (p->unit->backward_without_params) c.param[k] = NULL;
        c.grad[k] = p->grad[k].at;
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
    ZERO_TRY(zero_probe_forward(p, true));
    if (p->is_last) {
        ZERO_TRY(zero_probe_backward(p, false));
        *value =
            sum(p->row_loss.n, p->row_loss.at, NULL, (double)p->batch.loss_seed, noise);
    } else {
        *value = sum(p->out.n, p->out.at, p->d_out.at, 0.0, noise);
    }
    return ZERO_OK;
}
