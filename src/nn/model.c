#include "nn/model.h"

void zero_model_destroy(zero_model *model)
{
    if (!model) return;
    zero_free(model->tensors, model->groups, model->units, model->shape);
    *model = (zero_model){0};
}

/* ---- activations ---- */

int64_t zero_unit_room(const zero_unit *unit, int64_t n)
{
    return unit && unit->activations != ZERO_FP32 ? zero_divide_up(n, 2) : n;
}

zero_status zero_model_activate(zero_model *model, zero_type type)
{
    ZERO_TRY(zero_model_check_described(model));
    ZERO_INVALID_IF(zero_type_size(type) == 0,
                    "activations of type %d: there is no such type", (int)type);
    for (int u = 0; u < model->n_units; u++)
        ZERO_FAIL_IF(type != ZERO_FP32 && !model->units[u].heeds_activations,
                     ZERO_ERR_UNSUPPORTED,
                     "unit '%s' computes with activations of fp32 alone, not %s: if all "
                     "its arrays follow unit->activations, set its heeds_activations",
                     model->units[u].name, zero_type_name(type));
    for (int u = 0; u < model->n_units; u++) model->units[u].activations = type;
    return ZERO_OK;
}

/* ---- initial values ---- */

#define IN_CACHE 8192 /* elements that are scaled while they are in the cache */

void zero_tensor_init(const zero_tensor *t, int number, int64_t seed, int64_t first,
                      int64_t n, float *out)
{
    if (t->init == ZERO_INIT_NORMAL) {
        zero_rng rng = {
            .seed = (uint64_t)seed, .purpose = ZERO_RNG_INIT, .tensor = (uint64_t)number};
        for (int64_t at = 0; at < n; at += IN_CACHE) {
            int64_t len = zero_min(n - at, IN_CACHE);
            zero_rng_normal(&rng, (uint64_t)(first + at), len, out + at);
            for (int64_t i = at; i < at + len; i++) out[i] *= t->init_std;
        }
        return;
    }
    float value = t->init == ZERO_INIT_ONES ? 1.0f : 0.0f;
    for (int64_t i = 0; i < n; i++) out[i] = value;
}

void zero_model_init_params(const zero_model *model, int group, int64_t seed, int64_t begin,
                            int64_t end, float *out)
{
    const zero_group *g = &model->groups[group];
    zero_clear(out, end - begin);
    for (int i = g->first_tensor; i < g->first_tensor + g->n_tensors; i++) {
        const zero_tensor *t = &model->tensors[i];
        int64_t from = zero_max(t->offset, begin);
        int64_t to = zero_min(t->offset + t->rows * t->cols, end);
        if (from < to)
            zero_tensor_init(t, i, seed, from - t->offset, to - from, out + from - begin);
    }
}
