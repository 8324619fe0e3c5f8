/* cpu_loss.c - the loss, over a whole vocabulary and in slices. Threads have rows.
 * Exponentials and sums of a slice are those of cpu_kernels.c; what ranks exchange is one
 * number per slice and row, and is computed here in double.
 *
 * With m_s the largest logit of slice s, d_s its sum of e^(logit - m_s) and m the largest
 * m_s,
 *
 *     sum = sum over s of d_s e^(m_s - m)      loss = log(sum) + m - the target's logit
 *
 * and the gradient of a logit in slice s is dscale e^(logit - m_s) e^(m_s - m) / sum. */
#include "math/cpu.h"

#include "base/elementary.h"
#include "math/cpu_state.h"
#include "math/team.h"

static int64_t begin_of(const zero_softmax *s, int slice)
{
    return slice > 0 ? s->ends[slice - 1] : 0;
}

/* The column of a row's target, or -1: another rank has it. */
static int64_t target_of(const zero_softmax *s, int64_t r)
{
    const int64_t column = s->targets[r] - s->first;
    return 0 <= column && column < s->V ? column : -1;
}

/* Sets the gradient of a row without a target. Returns its loss. */
static float not_counted(int64_t V, float dscale, float *logits)
{
    if (dscale != 0.0f) zero_clear(logits, V);
    return 0.0f;
}

static void cross_entropy_rows(const zero_math *math, const void *arg, int64_t first,
                               int64_t end)
{
    const zero_cross_entropy *e = arg;
    const int64_t step = zero_max(ZERO_CPU_PIECE / e->V, 1);
    for (int64_t r = first; r < end; r++) {
        float *logits = e->logits + r * zero_logits_stride(e);
        if (e->targets[r] < 0)
            e->loss[r] = not_counted(e->V, e->dscale, logits);
        else
            e->loss[r] = zero_cpu_kernels_of(math)->cross_entropy(e->V, e->targets[r],
                                                                  e->dscale, logits);
        if ((r + 1) % step == 0) zero_math_poll(math);
    }
}

void zero_cpu_cross_entropy(const zero_math *math, const zero_cross_entropy *e)
{
    assert(e->gradient == ZERO_FP32);
    zero_team_share(math, e->rows, 1, cross_entropy_rows, e);
}

static void softmax_slices_rows(const zero_math *math, const void *arg, int64_t first,
                                int64_t end)
{
    const zero_softmax *s = arg;
    const zero_cpu_kernels *kernels = zero_cpu_kernels_of(math);
    const int64_t step = zero_max(ZERO_CPU_PIECE / s->V, 1);
    float *most = s->stats, *sum = most + s->slices * s->rows;
    float *wanted = sum + s->slices * s->rows;
    for (int64_t r = first; r < end; r++) {
        float *logits = s->logits + r * s->V;
        const int64_t target = target_of(s, r);
        wanted[r] = target >= 0 ? logits[target] : 0.0f;
        for (int i = 0; i < s->slices; i++) {
            const int64_t at = begin_of(s, i);
            sum[i * s->rows + r] = kernels->softmax_slice(
                s->ends[i] - at, s->V, logits + at, &most[i * s->rows + r]);
        }
        if ((r + 1) % step == 0) zero_math_poll(math);
    }
}

void zero_cpu_softmax_slices(const zero_math *math, const zero_softmax *s)
{
    zero_team_share(math, s->rows, 1, softmax_slices_rows, s);
}

/* Row r of one rank's stats: the number at `which` of its 2 * slices + 1. */
static double stat(const zero_softmax *s, int rank, int which, int64_t r)
{
    return (double)s->all[((int64_t)rank * (2 * s->slices + 1) + which) * s->rows + r];
}

/* NaN is never the largest; the sum becomes NaN instead. */
static double largest_of(const zero_softmax *s, int64_t r)
{
    double most = -INFINITY;
    for (int rank = 0; rank < s->ranks; rank++)
        for (int i = 0; i < s->slices; i++) most = fmax(most, stat(s, rank, i, r));
    return most;
}

/* The sum over the n slices from `first` on, of all ranks' slices. */
static double sum_of(const zero_softmax *s, int first, int n, double most, int64_t r)
{
    if (n == 1) {
        const int rank = first / s->slices, i = first % s->slices;
        return stat(s, rank, s->slices + i, r) * zero_exp(stat(s, rank, i, r) - most);
    }
    const int left = (int)zero_tree_left(n);
    return sum_of(s, first, left, most, r) + sum_of(s, first + left, n - left, most, r);
}

/* All ranks but one have 0, which changes no bit but the sign of a 0. */
static double wanted_of(const zero_softmax *s, int64_t r)
{
    double wanted = 0.0;
    for (int rank = 0; rank < s->ranks; rank++) wanted += stat(s, rank, 2 * s->slices, r);
    return wanted;
}

static void gradient(const zero_math *math, const zero_softmax *s, int64_t r, double most,
                     double sum)
{
    const zero_cpu_kernels *kernels = zero_cpu_kernels_of(math);
    float *logits = s->logits + r * s->V;
    const int64_t target = target_of(s, r);
    for (int i = 0; i < s->slices; i++) {
        const int64_t at = begin_of(s, i);
        const double share = zero_exp(stat(s, s->rank, i, r) - most);
        const float factor = (float)((double)s->dscale * share / sum);
        kernels->scale(s->ends[i] - at, factor, logits + at, logits + at);
    }
    if (target >= 0) logits[target] -= s->dscale;
}

static void softmax_loss_rows(const zero_math *math, const void *arg, int64_t first,
                              int64_t end)
{
    const zero_softmax *s = arg;
    const int64_t step = zero_max(ZERO_CPU_PIECE / s->V, 1);
    for (int64_t r = first; r < end; r++) {
        if (s->targets[r] < 0) {
            s->loss[r] = not_counted(s->V, s->dscale, s->logits + r * s->V);
            continue;
        }
        const double most = largest_of(s, r);
        const double sum = sum_of(s, 0, s->ranks * s->slices, most, r);
        s->loss[r] = (float)(zero_log(sum) + most - wanted_of(s, r));
        if (s->dscale != 0.0f) gradient(math, s, r, most, sum);
        if ((r + 1) % step == 0) zero_math_poll(math);
    }
}

void zero_cpu_softmax_loss(const zero_math *math, const zero_softmax *s)
{
    zero_team_share(math, s->rows, 1, softmax_loss_rows, s);
}
