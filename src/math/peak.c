#include "math/peak.h"

#include <stdatomic.h>
#include <time.h>

#include "math/cpu_panel.h"
#include "math/threads.h"

#define TRIALS  8
#define SECONDS 1e-4 /* of a trial, at least */
#define MOST    1e10 /* flops or bytes of a trial: a simulation's clock may stand still */

typedef struct {
    const zero_packed_kernels *kernels; /* NULL: memory is read */
    const float *memory;                /* [threads][floats] */
    int64_t floats;
    double amount;      /* flops, or bytes, of a round */
    _Atomic double sum; /* of all threads' rates */
} work;

/* The processor time of this thread alone. */
static double own_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static float work_rounds(const work *w, int thread, int64_t rounds)
{
    if (w->kernels) return w->kernels->in_registers(rounds);
    float sum = 0.0f;
    for (; rounds > 0; rounds--)
        sum += zero_panels_at(0)->read(w->floats, w->memory + thread * w->floats);
    return sum;
}

/* The best trial: a core may have been slower for a while, but not faster. */
static void measure(int thread, void *arg)
{
    work *w = arg;
    volatile float result; /* so that it is computed */
    double best = 0.0;
    int64_t rounds = 1;
    if (w->kernels) w->kernels->begin();
    for (int t = 0; t < TRIALS && w->amount * (double)rounds < MOST;) {
        const double start = own_seconds();
        result = work_rounds(w, thread, rounds);
        const double passed = own_seconds() - start;
        if (passed >= SECONDS) {
            best = fmax(best, w->amount * (double)rounds / passed);
            t++;
        } else {
            rounds *= 2;
        }
    }
    (void)result;
    if (w->kernels) w->kernels->end();
    w->sum += best; /* atomic */
}

zero_cpu_rate zero_cpu_peak(zero_type factors, int threads)
{
    zero_cpu_rate peak = {0};
    const zero_packed_kernels *k;
    for (int i = 0; (k = zero_packed_at(i)); i++) {
        if (k->type != ZERO_FP32 && k->type != factors) continue;
        work w = {.kernels = k, .amount = 2.0 * (double)(k->rows * k->cols * k->depth)};
        zero_cpu_each_thread(threads, measure, &w);
        if (w.sum > peak.flops) peak = (zero_cpu_rate){w.sum, k->name};
    }
    return peak;
}

zero_status zero_cpu_read_rate(size_t bytes, int threads, double *rate)
{
    const size_t all = bytes * (size_t)threads;
    float *memory = aligned_alloc(64, all);
    ZERO_FAIL_IF(!memory, ZERO_ERR_NOMEM, "no %zu bytes to read", all);
    memset(memory, 0, all); /* each page is there */
    work w = {.memory = memory,
              .floats = (int64_t)(bytes / sizeof *memory),
              .amount = (double)bytes};
    zero_cpu_each_thread(threads, measure, &w);
    free(memory);
    *rate = w.sum;
    return ZERO_OK;
}
