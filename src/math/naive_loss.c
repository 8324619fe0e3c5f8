/* naive_loss.c - the oracle's loss over a vocabulary in slices: sums and exponentials in
 * double, of the numbers that ranks exchange. */

#include "math/naive.h"

void zero_naive_softmax_slices(const zero_math *math, const zero_softmax *s)
{
    for (int64_t r = 0; r < s->rows; r++) {
        const int64_t target = s->targets[r] - s->first;
        const bool mine = 0 <= target && target < s->V;
        s->stats[2 * s->slices * s->rows + r] = mine ? s->logits[r * s->V + target] : 0.0f;
        for (int slice = 0; slice < s->slices; slice++) {
            /* Slice s of row r: sets its largest logit and its sum; logits become
             * exponentials. */
            const int64_t begin = slice > 0 ? s->ends[slice - 1] : 0, end = s->ends[slice];
            float *logits = s->logits + r * s->V;
            double most = -INFINITY, sum = 0.0;
            for (int64_t j = begin; j < end; j++) most = fmax(most, logits[j]);
            for (int64_t j = begin; j < end; j++) {
                /* A slice without a number above -infinity adds nothing. */
                double e = exp(logits[j] - (most == -INFINITY ? 0.0 : most));
                logits[j] = (float)e;
                sum += e;
            }
            s->stats[slice * s->rows + r] = (float)most;
            s->stats[(s->slices + slice) * s->rows + r] = (float)sum;
        }
    }
    zero_math_poll(math);
}

/* One row's number `which` of a rank's stats. */
static double stat(const zero_softmax *s, int rank, int which, int64_t r)
{
    return s->all[((int64_t)rank * (2 * s->slices + 1) + which) * s->rows + r];
}

static double largest(const zero_softmax *s, int64_t r)
{
    double most = -INFINITY;
    for (int i = 0; i < s->ranks * s->slices; i++)
        most = fmax(most, stat(s, i / s->slices, i % s->slices, r));
    return most;
}

/* The sum of e^(logit - most) over the n slices from `first` on, of all ranks'. */
static double total(const zero_softmax *s, int first, int n, double most, int64_t r)
{
    if (n == 1) {
        const int rank = first / s->slices, slice = first % s->slices;
        return stat(s, rank, s->slices + slice, r) * exp(stat(s, rank, slice, r) - most);
    }
    const int left = (int)zero_tree_left(n);
    return total(s, first, left, most, r) + total(s, first + left, n - left, most, r);
}

static void gradient(const zero_softmax *s, double most, double sum, int64_t r)
{
    float *logits = s->logits + r * s->V;
    for (int slice = 0, j = 0; slice < s->slices; slice++) {
        const double factor = exp(stat(s, s->rank, slice, r) - most) / sum;
        for (; j < s->ends[slice]; j++) {
            double p = logits[j] * factor;
            bool wanted = s->first + j == s->targets[r];
            logits[j] = (float)(s->dscale * (wanted ? p - 1.0 : p));
        }
    }
}

void zero_naive_softmax_loss(const zero_math *math, const zero_softmax *s)
{
    for (int64_t r = 0; r < s->rows; r++) {
        if (s->targets[r] < 0) {
            s->loss[r] = 0.0f;
            for (int64_t j = 0; j < s->V; j++) s->logits[r * s->V + j] = 0.0f;
            continue;
        }
        const double most = largest(s, r);
        const double sum = total(s, 0, s->ranks * s->slices, most, r);
        double wanted = 0.0; /* one rank has it, the others 0 */
        for (int rank = 0; rank < s->ranks; rank++)
            wanted += stat(s, rank, 2 * s->slices, r);
        s->loss[r] = (float)(log(sum) + most - wanted);
        if (s->dscale != 0.0f) gradient(s, most, sum, r);
    }
    zero_math_poll(math);
}
