#include "sharding/loss_scale.h"

zero_loss_scale zero_loss_scale_init(zero_type type)
{
    float first = type == ZERO_FP16 ? ZERO_LOSS_SCALE_FIRST : ZERO_LOSS_SCALE_LEAST;
    return (zero_loss_scale){
        .type = type, .scale = first, .hysteresis = ZERO_LOSS_SCALE_HYSTERESIS};
}

zero_status zero_loss_scale_update(zero_loss_scale *s, bool overflow)
{
    if (overflow) {
        bool is_forgiven = s->type == ZERO_FP16 && s->hysteresis > 1;
        if (!is_forgiven && s->scale <= ZERO_LOSS_SCALE_LEAST) {
            ZERO_FAIL_IF(s->type == ZERO_FP16, ZERO_ERR_DIVERGED,
                         "a gradient overflows fp16 although the loss scale is down to %g, "
                         "the smallest: training has diverged; lower --lr, lengthen "
                         "--warmup, or use --dtype bf16, which has the range of fp32",
                         (double)s->scale);
            return zero_fail(ZERO_ERR_DIVERGED,
                             "a gradient is not finite in %s, which needs no loss scale: "
                             "training has diverged; lower --lr or lengthen --warmup",
                             zero_type_name(s->type));
        }
        if (is_forgiven)
            s->hysteresis--;
        else
            s->scale /= 2.0f;
        s->clean_steps = 0;
        return ZERO_OK;
    }
    if (s->type == ZERO_FP16 && ++s->clean_steps >= ZERO_LOSS_SCALE_WINDOW) {
        s->scale = fminf(2.0f * s->scale, ZERO_LOSS_SCALE_MOST);
        s->hysteresis = ZERO_LOSS_SCALE_HYSTERESIS;
        s->clean_steps = 0;
    }
    return ZERO_OK;
}
