/* A call that is made in a poll of another call: the first thread computes it alone, without a scratch,
 * and neither call has other bits than by itself. So an update of optimizer states runs ahead. */
#include "support/team_test.h"

/* ---- who computes ---- */

typedef struct {
    const zero_math *math;
    pthread_t caller;
    bool is_held;
    int depth, calls; /* of calls in polls: now, and so far */
} nest;

static void work_within(const zero_thread *t, void *arg)
{
    nest *n = arg;
    assert_true(pthread_equal(pthread_self(), n->caller));
    assert_int_equal(t->size, 1);
    assert_int_equal(t->index, 0);
    if (n->is_held) assert_null(t->math.scratch);
    n->calls++;
    zero_thread_wait(t); /* for nobody */
    zero_math_poll(&t->math);
}

static void share_within(const zero_math *math, const void *arg, int64_t first, int64_t end)
{
    nest *n = *(nest *const *)arg;
    assert_true(pthread_equal(pthread_self(), n->caller));
    assert_true(first == 0 && end > 0);
    if (n->is_held) assert_null(math->scratch);
    n->calls++;
}

/* Calls have polls, too. */
static void call_in_poll(void *arg)
{
    nest *n = arg;
    if (n->depth == 2) return;
    n->depth++;
    zero_team_run(n->math, work_within, n);
    zero_team_share(n->math, 1, 64, share_within, &n);
    zero_team_share(n->math, 1000, 64, share_within, &n);
    n->depth--;
}

/* All threads wait for each other before and after the polls. */
static void work_and_poll(const zero_thread *t, void *arg)
{
    atomic_int *there = arg;
    zero_thread_wait(t);
    for (int i = 0; i < 5; i++) zero_math_poll(&t->math);
    atomic_fetch_add(there, 1);
    zero_thread_wait(t);
    assert_int_equal(atomic_load(there), t->size);
}

static void work_often(void *arg)
{
    const zero_math *math = arg;
    for (int i = 0; i < 20; i++) {
        atomic_int there = 0;
        zero_team_run(math, work_and_poll, &there);
    }
}

TEST(a_call_in_a_poll_is_the_first_threads_alone)
{
    test_pool *pool = *state;
    if (!zero_team_is_built()) skip();
    for (size_t i = 0; i < COUNT(teams); i++)
        for (int is_held = 0; is_held < 2; is_held++) {
            zero_math math = team_of(pool, teams[i]);
            nest n = {.math = &math, .caller = pthread_self(), .is_held = is_held};
            math.poll = call_in_poll, math.poll_arg = &n;
            if (is_held)
                zero_team_hold(&math, work_often, &math);
            else
                work_often(&math);
            assert_true(n.calls >= 20 * 5 * 5);
        }
}

/* ---- what is computed ---- */

enum { STATES = 40 * ZERO_CPU_PIECE + 17, BLOCK = 3 * ZERO_CPU_PIECE + 5 };

/* Optimizer states, of which each poll updates the next block. */
typedef struct {
    const zero_math *math;
    zero_adamw_arrays all;
    int64_t at;
    bool is_within;
    int in_polls;
} stream;

static void update_next(stream *s)
{
    static const zero_adamw hyper = {.lr = 1e-3f,
                                     .beta1 = 0.9f,
                                     .beta2 = 0.95f,
                                     .eps = 1e-8f,
                                     .grad_scale = 1.0f,
                                     .step = 3};
    const zero_adamw_arrays *a = &s->all;
    const zero_adamw_arrays block = {.n = zero_min(BLOCK, a->n - s->at),
                                     .type = a->type,
                                     .grad = (const char *)a->grad +
                                             zero_type_size(a->type) * (size_t)s->at,
                                     .master = a->master + s->at,
                                     .m = a->m + s->at,
                                     .v = a->v + s->at,
                                     .param = (uint16_t *)a->param + s->at};
    s->at += block.n;
    zero_backend_cpu.adamw(s->math, &hyper, &block);
}

static void update_in_poll(void *arg)
{
    stream *s = arg;
    if (s->is_within || s->at == s->all.n) return;
    s->is_within = true;
    update_next(s);
    s->in_polls++;
    s->is_within = false;
}

typedef struct {
    zero_math math;
    zero_gemm product;
    stream states;
} job;

/* The product's own results come first in `out`, the states after it. */
static job job_of(test_pool *pool, int threads, float *out)
{
    enum { M = 700, N = 520, K = 400 };
    job j = {.math = team_of(pool, threads)};
    uint16_t *b = test_bytes(pool, 2 * N * K), *grad = test_bytes(pool, 2 * STATES);
    float *wide = test_floats(pool, N * K), *states = out + M * N;
    zero_convert(ZERO_FP32, ZERO_BF16, N * K, wide, b);
    zero_convert(ZERO_FP32, ZERO_BF16, STATES, test_floats(pool, STATES), grad);
    for (int i = 0; i < 2; i++)
        memcpy(states + i * STATES, test_floats(pool, STATES), STATES * sizeof *states);
    memset(states + 2 * STATES, 0, STATES * sizeof *states);
    j.product = (zero_gemm){.m = M,
                            .n = N,
                            .k = K,
                            .factors = ZERO_BF16,
                            .a = test_floats(pool, M * K),
                            .b = b,
                            .b_type = ZERO_BF16,
                            .c = out};
    j.states.all = (zero_adamw_arrays){.n = STATES,
                                       .type = ZERO_BF16,
                                       .grad = grad,
                                       .master = states,
                                       .m = states + STATES,
                                       .v = states + 2 * STATES,
                                       .param = (uint16_t *)(void *)(states + 3 * STATES)};
    return j;
}

static void multiply_and_update(void *arg)
{
    job *j = arg;
    j->states.math = &j->math;
    for (int i = 0; i < 3; i++) zero_backend_cpu.gemm(&j->math, &j->product);
    while (j->states.at < STATES) update_next(&j->states);
}

TEST(updates_in_polls_change_no_bits)
{
    enum { RESULTS = 700 * 520 + 4 * STATES };
    float *want = calloc(RESULTS, sizeof *want), *got = calloc(RESULTS, sizeof *got);
    assert_true(want && got);
    for (size_t i = 0; i <= 2 * COUNT(teams); i++) { /* none, held, and not held */
        test_pool pool = {.n = 0};
        const int threads = i == 0 ? 1 : teams[(i - 1) / 2];
        job j = job_of(&pool, threads, i == 0 ? want : got);
        if (i > 0) j.math.poll = update_in_poll, j.math.poll_arg = &j.states;
        if (i % 2 == 1)
            zero_team_hold(&j.math, multiply_and_update, &j);
        else
            multiply_and_update(&j);
        for (int k = 0; k < pool.n; k++) free(pool.mem[k]);
        if (i > 0) assert_true(j.states.in_polls > 3);
        if (i > 0) assert_same(RESULTS, got, want);
    }
    free(want);
    free(got);
}
