#include "train/learning_rate.h"

#include "base/elementary.h"

static const char *const names[] = {"cosine", "linear", "none"};

double zero_learning_rate_at(const zero_learning_rate *lr, int64_t step)
{
    if (step < lr->warmup) return lr->peak * (double)(step + 1) / (double)lr->warmup;
    if (lr->decay == ZERO_DECAY_NONE || lr->steps - lr->warmup <= 1) return lr->peak;
    const double pi = 3.14159265358979323846;
    double done = (double)(step - lr->warmup) / (double)(lr->steps - lr->warmup - 1);
    if (lr->decay == ZERO_DECAY_LINEAR)
        return lr->least + (lr->peak - lr->least) * (1.0 - done);
    double sine, cosine;
    zero_sine_cosine(pi * done, &sine, &cosine);
    return lr->least + 0.5 * (lr->peak - lr->least) * (1.0 + cosine);
}

const char *zero_decay_name_at(int i)
{
    return i < ZERO_COUNT(names) ? names[i] : NULL;
}

zero_decay zero_decay_find(const char *name)
{
    int i = 0;
    while (i < ZERO_COUNT(names) - 1 && !zero_same_text(names[i], name)) i++;
    return (zero_decay)i;
}

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
