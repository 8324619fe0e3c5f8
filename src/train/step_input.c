#include "train/step_input.h"

#include "train/learning_rate.h"

zero_step_input zero_config_step_input(const zero_config *c, int64_t step, int64_t updates)
{
    zero_learning_rate lr = {.peak = c->lr,
                             .least = c->lr_min,
                             .warmup = c->warmup,
                             .steps = c->steps,
                             .decay = zero_decay_find(c->lr_decay)};
    return (zero_step_input){.step = step,
                             .lr = zero_learning_rate_at(&lr, updates),
                             .beta1 = c->beta1,
                             .beta2 = c->beta2,
                             .eps = c->eps,
                             .weight_decay = c->weight_decay,
                             .clip = c->clip};
}
