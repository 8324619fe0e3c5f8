#include "math/team.h"

#ifdef _OPENMP
#include <omp.h>
#endif

static zero_thread thread_at(const zero_math *math, int index, int size)
{
    zero_thread t = {.math = *math, .index = index, .size = size};
    t.math.threads = 1;
    if (index > 0) t.math.poll = NULL;
    if (math->scratch) t.math.scratch = math->scratch + index * zero_math_scratch();
    return t;
}

#ifdef _OPENMP
bool zero_team_is_built(void)
{
    return true;
}

void zero_team_run(const zero_math *math, zero_thread_work *work, void *arg)
{
    if (math->threads <= 1) {
        const zero_thread alone = thread_at(math, 0, 1);
        work(&alone, arg);
        return;
    }
#pragma omp parallel num_threads(math->threads) default(none) shared(math, work, arg)
    {
        /* The runtime may give fewer. */
        const zero_thread t = thread_at(math, omp_get_thread_num(), omp_get_num_threads());
        work(&t, arg);
        if (t.size > 1) zero_math_poll(&t.math); /* it may have had nothing to do */
    }
}

void zero_thread_wait(const zero_thread *thread)
{
    if (thread->size == 1) return;
#pragma omp barrier
}
#else
bool zero_team_is_built(void)
{
    return false;
}

void zero_team_run(const zero_math *math, zero_thread_work *work, void *arg)
{
    const zero_thread alone = thread_at(math, 0, 1);
    work(&alone, arg);
}

void zero_thread_wait(const zero_thread *thread)
{
    (void)thread; /* alone */
}
#endif

typedef struct {
    zero_range_work *work;
    const void *arg;
    int64_t n, granule;
} shares;

static void work_on_share(const zero_thread *me, void *arg)
{
    const shares *s = arg;
    const zero_share_of_team own = zero_thread_share(me, s->n, s->granule);
    if (own.first < own.end) s->work(&me->math, s->arg, own.first, own.end);
}

void zero_team_share(const zero_math *math, int64_t n, int64_t granule,
                     zero_range_work *work, const void *arg)
{
    shares s = {work, arg, n, granule};
    if (math->threads > 1 && n > granule)
        zero_team_run(math, work_on_share, &s);
    else if (n > 0)
        work(math, arg, 0, n);
}
