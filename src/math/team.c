#include "math/team.h"

#include "math/meet.h"

#ifdef _OPENMP
#include <omp.h>
#endif

/* Threads that wait for calls, from zero_team_hold() on. */
struct zero_team {
    int size;
    bool is_in_call; /* the first thread's: it is between begin and end of a call */
    zero_meet meet;
    zero_meet_number call;   /* calls that have begun */
    zero_meet_number ended;  /* and ended, in all threads but the first */
    atomic_int working;      /* threads that have not ended this call, without the first */
    zero_meet_number passed; /* times that all threads waited for each other in a call */
    atomic_int waiting;      /* threads that do so */
    /* The call that has begun. */
    const zero_math *math;
    zero_thread_work *work; /* NULL: no call comes after this one */
    void *arg;
};

static zero_thread thread_at(const zero_math *math, int index, int size)
{
    zero_thread t = {.math = *math, .index = index, .size = size};
    t.math.threads = 1;
    if (index > 0) t.math.poll = NULL;
    if (math->scratch) t.math.scratch = math->scratch + index * zero_math_scratch();
    return t;
}

static void run_alone(const zero_math *math, zero_thread_work *work, void *arg)
{
    const zero_thread alone = thread_at(math, 0, 1);
    work(&alone, arg);
}

static void run_as(const zero_thread *t, zero_thread_work *work, void *arg)
{
    work(t, arg);
    if (t->size > 1) zero_math_poll(&t->math); /* it may have had nothing to do */
}

/* ---- held threads ---- */

static unsigned number(zero_meet_number *n)
{
    return atomic_load_explicit(&n->value, memory_order_relaxed);
}

/* The first thread gives a call to the others. */
static unsigned begin_call(struct zero_team *team, const zero_math *math,
                           zero_thread_work *work, void *arg)
{
    const unsigned call = number(&team->call) + 1;
    team->math = math, team->work = work, team->arg = arg;
    atomic_store(&team->working, team->size - 1);
    zero_meet_set(&team->meet, &team->call, call);
    return call;
}

static void run_held(const zero_math *math, zero_thread_work *work, void *arg)
{
    struct zero_team *team = math->team;
    team->is_in_call = true;
    const unsigned call = begin_call(team, math, work, arg);
    const zero_thread first = thread_at(math, 0, team->size);
    run_as(&first, work, arg);
    zero_meet_wait(&team->meet, &team->ended, call);
    team->is_in_call = false;
}

static void wait_in_call(struct zero_team *team)
{
    const unsigned next =
        number(&team->passed) + 1; /* stays until this thread is counted */
    if (atomic_fetch_add(&team->waiting, 1) + 1 < team->size) {
        zero_meet_wait(&team->meet, &team->passed, next);
        return;
    }
    atomic_store(&team->waiting, 0);
    zero_meet_set(&team->meet, &team->passed, next);
}

/* ---- OpenMP ---- */

#ifdef _OPENMP
bool zero_team_is_built(void)
{
    return true;
}

/* Within a parallel region, which may be that of a call that polled, one thread computes,
 * as OpenMP has it by default. */
static void run_here(const zero_math *math, zero_thread_work *work, void *arg)
{
#pragma omp parallel num_threads(math->threads) if (!omp_in_parallel()) default(none) \
    shared(math, work, arg)
    {
        /* The runtime may give fewer. */
        const zero_thread t = thread_at(math, omp_get_thread_num(), omp_get_num_threads());
        run_as(&t, work, arg);
    }
}

static void wait_here(void)
{
#pragma omp barrier
}

/* A thread other than the first works on each call. */
static void serve(struct zero_team *team, int index)
{
    for (unsigned call = 1;; call++) {
        zero_meet_wait(&team->meet, &team->call, call);
        if (!team->work) return;
        const zero_thread t = thread_at(team->math, index, team->size);
        run_as(&t, team->work, team->arg);
        if (atomic_fetch_sub(&team->working, 1) == 1)
            zero_meet_set(&team->meet, &team->ended, call);
    }
}

/* All of this happens in one parallel region: the first thread has `work` in it. */
static void hold(zero_math *math, struct zero_team *team, void (*work)(void *arg),
                 void *arg)
{
#pragma omp parallel num_threads(math->threads) default(none) shared(math, team, work, arg)
    if (omp_get_thread_num() > 0) {
        serve(team, omp_get_thread_num());
    } else {
        team->size = omp_get_num_threads();
        math->team = team->size > 1 ? team : NULL;
        work(arg);
        math->team = NULL;
        begin_call(team, NULL, NULL, NULL);
    }
}
#else
bool zero_team_is_built(void)
{
    return false;
}

static void run_here(const zero_math *math, zero_thread_work *work, void *arg)
{
    run_alone(math, work, arg);
}

static void wait_here(void)
{
}

static void hold(ZERO_UNUSED zero_math *math, ZERO_UNUSED struct zero_team *team,
                 void (*work)(void *arg), void *arg)
{
    work(arg);
}
#endif

/* True in a poll of a call of held threads. */
static bool is_in_call(const zero_math *math)
{
    return math->threads > 1 && math->team && math->team->is_in_call;
}

void zero_team_run(const zero_math *math, zero_thread_work *work, void *arg)
{
    if (math->threads <= 1)
        run_alone(math, work, arg);
    else if (is_in_call(math)) {
        /* The others of the team are in the call that polled, and the first thread's
         * scratch is that call's. */
        zero_math own = *math;
        own.scratch = NULL;
        run_alone(&own, work, arg);
    } else if (math->team)
        run_held(math, work, arg);
    else
        run_here(math, work, arg);
}

void zero_thread_wait(const zero_thread *thread)
{
    if (thread->size == 1) return;
    if (thread->math.team)
        wait_in_call(thread->math.team);
    else
        wait_here();
}

void zero_team_hold(zero_math *math, void (*work)(void *arg), void *arg)
{
    struct zero_team team = {.size = 1};
    if (math->threads <= 1 || math->team || zero_meet_init(&team.meet) != 0) {
        work(arg);
        return;
    }
    atomic_store(&team.meet.crowd.until, math->crowded_until);
    hold(math, &team, work, arg);
    math->crowded_until = atomic_load(&team.meet.crowd.until);
    zero_meet_destroy(&team.meet);
}

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
    if ((math->threads > 1 && n > granule) || is_in_call(math))
        zero_team_run(math, work_on_share, &s);
    else if (n > 0)
        work(math, arg, 0, n);
}
