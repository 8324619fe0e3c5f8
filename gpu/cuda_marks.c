/* cuda_marks.c - times of calls: events among them, on their stream. */
#include "gpu/cuda.h"

#include "base/fail.h"

static void set(const zero_math *math, int mark)
{
    zero_cuda *c = zero_cuda_of(math);
    if (c->failure.status != ZERO_OK || zero_cuda_use(c) != ZERO_OK) return;
    (void)!zero_cuda_check(c, cudaEventRecord(c->marks[mark], c->compute),
                           "setting a mark");
}

static zero_status between(const zero_math *math, int from, int to, double *seconds)
{
    zero_cuda *c = zero_cuda_of(math);
    float milliseconds = 0.0f;
    ZERO_TRY(zero_cuda_use(c));
    ZERO_TRY(
        zero_cuda_check(c, cudaEventSynchronize(c->marks[to]), "a call before a mark"));
    ZERO_TRY(zero_cuda_check(
        c, cudaEventElapsedTime(&milliseconds, c->marks[from], c->marks[to]),
        "reading the time between marks"));
    *seconds = 1e-3 * (double)milliseconds;
    return ZERO_OK;
}

const zero_stopwatch zero_cuda_stopwatch = {
    .marks = ZERO_CUDA_MARKS, .set = set, .between = between};

zero_status zero_cuda_open_marks(zero_cuda *c)
{
    for (int i = 0; i < ZERO_CUDA_MARKS; i++)
        ZERO_TRY(zero_cuda_check(
            c, cudaEventCreateWithFlags(&c->marks[i], cudaEventDefault), "making a mark"));
    return ZERO_OK;
}

void zero_cuda_close_marks(zero_cuda *c)
{
    for (int i = 0; i < ZERO_CUDA_MARKS; i++)
        if (c->marks[i]) cudaEventDestroy(c->marks[i]);
}
