/* team_test.h - operations of the cpu backend by teams of several sizes (math/team.h): each must have
 * the bits of one thread, and the first thread alone may poll. */
#pragma once

#include "support/math_machines.h"
#include <pthread.h>
#include <stdatomic.h>

#include "math/backends.h"
#include "math/team.h"

static const int teams[] = {2, 3, 4, 7};
#define MOST 7

typedef struct {
    pthread_t caller;
    int polls;
    atomic_int others; /* polls by other threads */
} listener;

static inline void listen(void *arg)
{
    listener *l = arg;
    if (pthread_equal(pthread_self(), l->caller))
        l->polls++;
    else
        l->others++;
}

/* The scratch starts as NaN. */
static inline zero_math team_of(test_pool *pool, int threads, listener *l)
{
    const int64_t bytes = threads * zero_math_scratch() * (int64_t)sizeof(float);
    zero_math math = {.threads = threads, .scratch = test_bytes(pool, bytes)};
    memset(math.scratch, 0xff, (size_t)bytes);
    assert_ok(zero_backend_cpu.open(&math));
    if (l) {
        *l = (listener){.caller = pthread_self()};
        math.poll = listen, math.poll_arg = l;
    }
    return math;
}

#define RESULT (1 << 20) /* floats that one operation writes, at most */

/* An operation on fresh copies of the same numbers; all that it writes goes to out. */
typedef void operation(const zero_math *math, test_pool *pool, float *out);

typedef struct {
    operation *run;
    const zero_math *math;
    test_pool *pool;
    float *out;
} held_operation;

/* Several times, as a step calls it. */
static inline void run_held(void *arg)
{
    const held_operation *h = arg;
    for (int i = 0; i < 3; i++) {
        while (h->pool->n > 1) free(h->pool->mem[--h->pool->n]);
        h->run(h->math, h->pool, h->out);
    }
}

/* Threads are OpenMP's for each call, or held for all. */
static inline void check_way(void **state, operation *run, bool is_held)
{
    test_pool *pool = *state;
    const int first = pool->n;
    float *want = calloc(RESULT, sizeof *want), *got = calloc(RESULT, sizeof *got);
    assert_true(want && got);
    for (size_t i = 0; i <= COUNT(teams); i++) {
        listener l;
        test_pool fresh = {.n = 0};
        zero_math math = team_of(&fresh, i == 0 ? 1 : teams[i - 1], &l);
        held_operation h = {run, &math, &fresh, i == 0 ? want : got};
        fresh.n = 1; /* the same random numbers each time */
        if (is_held)
            zero_team_hold(&math, run_held, &h);
        else
            run(&math, &fresh, h.out);
        assert_null(math.team);
        for (int k = 0; k < fresh.n; k++) free(fresh.mem[k]);
        assert_int_equal(l.others, 0);
        assert_true(l.polls > 0);
        if (i > 0) assert_same(RESULT, got, want);
        memset(got, 0, RESULT * sizeof *got);
    }
    free(want);
    free(got);
    assert_int_equal(pool->n, first);
}

static inline void check(void **state, operation *run)
{
    check_way(state, run, false);
    check_way(state, run, true);
}
