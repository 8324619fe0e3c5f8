#include "state/weights.h"

#include <string.h>

#include "base/fail.h"
#include "base/range.h"
#include "nn/share.h"

/* Elements [begin, end) of the tensor here, in runs that adjoin in the whole tensor,
 * too. */
static zero_status fill_runs(const zero_weights *weights, const zero_tensor *t, int number,
                             int64_t begin, int64_t end, float *out)
{
    for (int64_t at = begin; at < end;) {
        zero_run run = zero_share_run(t, at, end);
        ZERO_TRY(weights->fill(weights->arg, number, run.whole, run.whole + run.n,
                               out + (at - begin)));
        at += run.n;
    }
    return ZERO_OK;
}

zero_status zero_weights_fill(const zero_weights *weights, const zero_model *model,
                              int group, zero_range range, float *out)
{
    const zero_group *g = &model->groups[group];
    memset(out, 0, (size_t)zero_range_len(range) * sizeof *out);
    for (int i = g->first_tensor; i < g->first_tensor + g->n_tensors; i++) {
        int64_t offset = model->tensors[i].offset;
        zero_range part =
            zero_range_overlap(zero_range_of_tensor(&model->tensors[i]), range);
        if (!zero_range_is_empty(part))
            ZERO_TRY(fill_runs(weights, &model->tensors[i], i, part.begin - offset,
                               part.end - offset, out + (part.begin - range.begin)));
    }
    return ZERO_OK;
}

static zero_status draw(void *arg, int tensor, int64_t begin, int64_t end, float *out)
{
    const zero_drawn_weights *drawn = arg;
    zero_tensor_init(&drawn->model->tensors[tensor], tensor, drawn->seed, begin,
                     end - begin, out);
    return ZERO_OK;
}

zero_weights zero_weights_drawn(zero_drawn_weights *drawn)
{
    return (zero_weights){.fill = draw, .arg = drawn};
}
