#include "train/learning_rate.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

static const char *const names[] = {"cosine", "linear", "none"};
#define N_NAMES ((int)(sizeof names / sizeof names[0]))

double zero_learning_rate_at(const zero_learning_rate *lr, int64_t step)
{
    if (step < lr->warmup) return lr->peak * (double)(step + 1) / (double)lr->warmup;
    if (lr->decay == ZERO_DECAY_NONE || lr->steps - lr->warmup <= 1) return lr->peak;
    const double pi = 3.14159265358979323846;
    double done = (double)(step - lr->warmup) / (double)(lr->steps - lr->warmup - 1);
    if (lr->decay == ZERO_DECAY_LINEAR)
        return lr->least + (lr->peak - lr->least) * (1.0 - done);
    return lr->least + 0.5 * (lr->peak - lr->least) * (1.0 + cos(pi * done));
}

const char *zero_decay_name_at(int i)
{
    return i < N_NAMES ? names[i] : NULL;
}

zero_decay zero_decay_find(const char *name)
{
    int i = 0;
    while (i < N_NAMES - 1 && strcmp(names[i], name) != 0) i++;
    return (zero_decay)i;
}
