#include "sharding/optimizer.h"

void zero_optimizer_update(const zero_backend *backend, const zero_math *math,
                           const zero_model *model, int group, zero_range range,
                           const zero_adamw *hyper, const zero_optimizer_state *state)
{
    const zero_group *g = &model->groups[group];
    for (int i = g->first_tensor; i < g->first_tensor + g->n_tensors; i++) {
        const zero_tensor *t = &model->tensors[i];
        int64_t from = t->offset, to = t->offset + t->rows * t->cols;
        if (from < range.begin) from = range.begin;
        if (to > range.end) to = range.end;
        if (from >= to) continue;

        zero_adamw h = *hyper;
        if (!t->decays) h.weight_decay = 0.0f;
        int64_t at = from - range.begin;
        backend->adamw(math, &h, to - from, ZERO_FP32, state->grad + at, state->param + at,
                       state->momentum + at, state->variance + at, NULL);
    }
}
