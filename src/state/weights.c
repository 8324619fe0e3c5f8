#include "state/weights.h"

#include "nn/share.h"

zero_status zero_weights_fill(const zero_weights *weights, const zero_model *model,
                              int group, zero_range range, float *out)
{
    zero_range part;
    zero_clear(out, zero_range_len(range));
    for (int i = -1; zero_next_part(model, group, range, &i, &part);) {
        const zero_tensor *t = &model->tensors[i];
        /* In runs that adjoin in the whole tensor, too. */
        for (int64_t at = part.begin; at < part.end;) {
            zero_stretch run = zero_share_run(t, at - t->offset, part.end - t->offset);
            ZERO_TRY(weights->fill(weights->arg, i, run.whole, run.whole + run.n,
                                   out + (at - range.begin)));
            at += run.n;
        }
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
