#include "engine/weights.h"

#include <string.h>

#include "base/fail.h"

zero_status zero_weights_fill(const zero_weights *weights, const zero_model *model,
                              int group, zero_range range, float *out)
{
    const zero_group *g = &model->groups[group];
    memset(out, 0, (size_t)zero_range_len(range) * sizeof *out);
    for (int i = g->first_tensor; i < g->first_tensor + g->n_tensors; i++) {
        const zero_tensor *t = &model->tensors[i];
        int64_t from = t->offset, to = t->offset + t->rows * t->cols;
        if (from < range.begin) from = range.begin;
        if (to > range.end) to = range.end;
        if (from < to)
            ZERO_TRY(weights->fill(weights->arg, i, from - t->offset, to - t->offset,
                                   out + (from - range.begin)));
    }
    return ZERO_OK;
}

static zero_status draw(void *arg, int tensor, int64_t begin, int64_t end, float *out)
{
    const zero_drawn_weights *drawn = arg;
    const zero_tensor *t = &drawn->model->tensors[tensor];
    zero_model_init_params(drawn->model, t->group, drawn->seed, t->offset + begin,
                           t->offset + end, out);
    return ZERO_OK;
}

zero_weights zero_weights_drawn(zero_drawn_weights *drawn)
{
    return (zero_weights){.fill = draw, .arg = drawn};
}
