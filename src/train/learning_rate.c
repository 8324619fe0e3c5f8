#include "train/learning_rate.h"

#include <math.h>

double zero_learning_rate_at(const zero_learning_rate *lr, int64_t step)
{
    if (step < lr->warmup) return lr->peak * (double)(step + 1) / (double)lr->warmup;
    if (lr->steps - lr->warmup <= 1) return lr->peak;
    const double pi = 3.14159265358979323846;
    double done = (double)(step - lr->warmup) / (double)(lr->steps - lr->warmup - 1);
    return lr->least + 0.5 * (lr->peak - lr->least) * (1.0 + cos(pi * done));
}
