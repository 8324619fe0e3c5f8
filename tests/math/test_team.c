/* Threads of a rank (math/team.h): every operation of the cpu backend has the bits of one thread, and
 * the first thread alone polls. */
#include "support/math_machines.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "math/backends.h"
#include "math/cpu_packed.h"
#include "math/team.h"

static const int teams[] = {2, 3, 4, 7};
#define MOST 7

typedef struct {
    pthread_t caller;
    int polls;
    atomic_int others; /* polls by other threads */
} listener;

static void listen(void *arg)
{
    listener *l = arg;
    if (pthread_equal(pthread_self(), l->caller))
        l->polls++;
    else
        l->others++;
}

/* The scratch starts as NaN. */
static zero_math team_of(test_pool *pool, int threads, listener *l)
{
    const int64_t bytes = threads * zero_math_scratch() * (int64_t)sizeof(float);
    zero_math math = {.threads = threads, .scratch = test_bytes(pool, bytes)};
    memset(math.scratch, 0xff, (size_t)bytes);
    assert_int_equal(zero_backend_cpu.open(&math), ZERO_OK);
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
static void run_held(void *arg)
{
    const held_operation *h = arg;
    for (int i = 0; i < 3; i++) {
        while (h->pool->n > 1) free(h->pool->mem[--h->pool->n]);
        h->run(h->math, h->pool, h->out);
    }
}

/* Threads are OpenMP's for each call, or held for all. */
static void check_way(void **state, operation *run, bool is_held)
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

static void check(void **state, operation *run)
{
    check_way(state, run, false);
    check_way(state, run, true);
}

/* ---- products ---- */

typedef struct {
    int64_t m, n, k;
} shape;

static const shape shapes[] = {
    {1, 1, 1},       {5, 700, 33},   {700, 5, 33},   {33, 64, 900},
    {600, 300, 100}, {130, 513, 70}, {7, 2100, 800}, {96, 96, 0},
};

static void product(const zero_math *math, test_pool *pool, const shape *s, zero_type type,
                    zero_type factors, int slices, int way, float *out)
{
    float *a = test_floats(pool, s->m * s->k + 1), *b = test_floats(pool, s->n * s->k + 1);
    uint16_t *half = test_bytes(pool, 2 * (s->n * s->k + 1));
    if (type != ZERO_FP32) zero_convert(ZERO_FP32, type, s->n * s->k, b, half);
    const zero_gemm g = {.m = s->m,
                         .n = s->n,
                         .k = s->k,
                         .transpose_a = way & 1,
                         .transpose_b = way >> 1 & 1,
                         .accumulate = (way & 4) && slices == 0,
                         .factors = factors,
                         .a = a,
                         .b = type == ZERO_FP32 ? (const void *)b : half,
                         .b_type = type,
                         .c = out,
                         .slices = slices};
    zero_backend_cpu.gemm(math, &g);
}

static void products_by(const zero_math *math, test_pool *pool, int slices, float *out)
{
    static const zero_type types[][2] = {
        {ZERO_FP32, ZERO_FP32}, {ZERO_BF16, ZERO_BF16}, {ZERO_FP16, ZERO_FP32}};
    for (size_t i = 0; i < COUNT(shapes); i++)
        for (size_t t = 0; t < COUNT(types); t++) {
            shape s = shapes[i];
            if (slices > 1) s.k = zero_round_up(s.k, slices);
            product(math, pool, &s, types[t][0], types[t][1], slices, (int)(i + 3 * t) % 8,
                    out);
            out += s.m * s.n % 8191; /* later products leave most of it */
        }
}

static void whole_products(const zero_math *math, test_pool *pool, float *out)
{
    products_by(math, pool, 0, out);
}

static void sliced_products(const zero_math *math, test_pool *pool, float *out)
{
    products_by(math, pool, 4, out);
}

/* BLAS gets the same blocks, whoever calls it. */
static void products_by_blas(const zero_math *math, test_pool *pool, float *out)
{
    zero_math blas = *math;
    blas.state[ZERO_CPU_FP32_PRODUCTS] = blas.state[ZERO_CPU_BF16_PRODUCTS] = NULL;
    products_by(&blas, pool, 0, out);
}

static void products_do_not_depend_on_threads(void **state)
{
    check(state, whole_products);
    check(state, sliced_products);
    check(state, products_by_blas);
}

static void product_kernels(const zero_math *math, test_pool *pool, float *out)
{
    const zero_packed_kernels *kernels;
    for (int i = 0; (kernels = zero_packed_at(i)); i++) {
        zero_math with = *math;
        const bool is_bf16 = kernels->type == ZERO_BF16;
        with.state[is_bf16 ? ZERO_CPU_BF16_PRODUCTS : ZERO_CPU_FP32_PRODUCTS] = kernels;
        const shape s = {530, 260, 900};
        product(&with, pool, &s, kernels->type, kernels->type, 0, i % 4, out);
        out += s.m * s.n;
    }
}

static void no_kernel_for_products_depends_on_threads(void **state)
{
    check(state, product_kernels);
}

/* ---- attention ---- */

static void attend(const zero_math *math, test_pool *pool, zero_type factors, float *out)
{
    zero_attention a = {
        .B = 2, .T = 75, .C = 5 * 24, .H = 5, .factors = factors, .dropout = {.p = 0.2f}};
    const int64_t n = a.B * a.T * a.C;
    a.qkv = test_floats(pool, 3 * n), a.dout = test_floats(pool, n);
    a.out = out, a.lse = out + n, a.dqkv = out + n + a.B * a.H * a.T;
    a.work = test_bytes(pool, MOST * zero_attention_workspace(&a) * (int64_t)sizeof(float));
    memset(a.work, 0xff, (size_t)(MOST * zero_attention_workspace(&a)) * sizeof(float));
    zero_backend_cpu.attention(math, &a);
    zero_backend_cpu.attention_backward(math, &a);
}

static void attention(const zero_math *math, test_pool *pool, float *out)
{
    attend(math, pool, ZERO_FP32, out);
    attend(math, pool, ZERO_BF16, out + RESULT / 2);
}

static void attention_does_not_depend_on_threads(void **state)
{
    check(state, attention);
}

/* ---- tokens ---- */

static void few_rows(const zero_math *math, test_pool *pool, int64_t m, float *out)
{
    static const zero_type types[] = {ZERO_FP32, ZERO_BF16, ZERO_FP16};
    enum { N = 611, K = 208 };
    for (size_t t = 0; t < COUNT(types); t++)
        for (int way = 0; way < 3; way++) {
            uint16_t *half = test_bytes(pool, 2 * N * K);
            float *b = test_floats(pool, N * K);
            if (types[t] != ZERO_FP32) zero_convert(ZERO_FP32, types[t], N * K, b, half);
            const zero_gemm g = {.m = m,
                                 .n = N,
                                 .k = K,
                                 .transpose_b = way == 1,
                                 .factors = types[t],
                                 .a = test_floats(pool, m * K),
                                 .b = t == 0 ? (const void *)b : half,
                                 .b_type = types[t],
                                 .c = out,
                                 .slices = way == 2 ? 4 : 0,
                                 .few_rows = true};
            zero_backend_cpu.gemm(math, &g);
            out += m * N;
        }
}

/* Texts have several lengths. */
static void kept(const zero_math *math, test_pool *pool, float *out)
{
    enum { B = 3, T = 150, H = 5, C = 5 * 24 };
    static const int64_t past[B] = {T - 1, 7, 0};
    zero_cached a = {.B = B, .T = T - 1, .C = C, .H = H, .room = T, .out = out};
    a.qkv = test_floats(pool, B * T * 3 * C);
    a.cache = test_floats(pool, B * zero_cache_floats(T, C, H));
    zero_backend_cpu.remember(math, &a);
    a.T = 1, a.past = past;
    zero_backend_cpu.remember(math, &a);
    zero_backend_cpu.recall(math, &a);
}

static void tokens(const zero_math *math, test_pool *pool, float *out)
{
    static const int64_t texts[] = {1, 3, 16};
    for (size_t i = 0; i < COUNT(texts); i++) {
        few_rows(math, pool, texts[i], out);
        out += 9 * 611 * texts[i];
    }
    kept(math, pool, out);
}

static void tokens_do_not_depend_on_threads(void **state)
{
    check(state, tokens);
}

/* ---- rows ---- */

enum { ROWS = 129, COLS = 1030 };

static void rows(const zero_math *math, test_pool *pool, float *out)
{
    const zero_backend *cpu = &zero_backend_cpu;
    const int64_t n = ROWS * COLS;
    float *bias = test_floats(pool, COLS), *x = test_floats(pool, n);
    float *dy = test_floats(pool, n), *sums = out + 6 * n;
    memcpy(out, x, (size_t)n * sizeof *x);
    cpu->add_bias(
        math, &(zero_bias){
                  .rows = ROWS, .cols = COLS, .type = ZERO_FP32, .bias = bias, .x = out});
    cpu->bias_gelu(math, &(zero_bias){.rows = ROWS,
                                      .cols = COLS,
                                      .type = ZERO_FP32,
                                      .bias = bias,
                                      .x = out,
                                      .y = out + n});
    cpu->bias_gelu_backward(math, &(zero_bias_grad){.rows = ROWS,
                                                    .cols = COLS,
                                                    .x = out,
                                                    .dy = dy,
                                                    .dx = out + 2 * n,
                                                    .dbias = sums});
    cpu->bias_backward(
        math,
        &(zero_bias_grad){.rows = ROWS, .cols = COLS, .dy = dy, .dbias = sums + COLS});
    cpu->bias_backward(
        math,
        &(zero_bias_grad){
            .rows = ROWS, .cols = COLS, .dy = x, .accumulate = true, .dbias = sums + COLS});
    for (int masked = 0; masked < 2; masked++) {
        const zero_branch branch = {.dropout = {.p = masked ? 0.3f : 0.0f},
                                    .B = 3,
                                    .T = ROWS / 3,
                                    .cols = COLS,
                                    .bias = bias,
                                    .residual = x,
                                    .in = dy,
                                    .out = out + (3 + masked) * n};
        cpu->add_branch(math, &branch);
    }
    const zero_dropout d = {.p = 0.4f};
    cpu->dropout(math, &d, ZERO_FP32, 1, n, dy, out + 5 * n);
}

static void norms(const zero_math *math, test_pool *pool, float *out)
{
    const int64_t n = ROWS * COLS;
    float *x = test_floats(pool, n), *gain = test_floats(pool, COLS);
    float *bias = test_floats(pool, COLS), *dy = test_floats(pool, n);
    uint16_t *half = test_bytes(pool, 2 * COLS);
    zero_convert(ZERO_FP32, ZERO_BF16, COLS, gain, half);
    float *moments = out + 4 * n, *sums = moments + 4 * ROWS;
    for (int i = 0; i < 2; i++) {
        const zero_type type = i ? ZERO_BF16 : ZERO_FP32;
        const void *g = i ? (const void *)half : gain, *b = i ? (const void *)half : bias;
        float *mean = moments + 2 * i * ROWS, *rstd = mean + ROWS;
        const zero_layernorm_args a = {.rows = ROWS,
                                       .C = COLS,
                                       .x = x,
                                       .type = type,
                                       .gain = g,
                                       .bias = b,
                                       .y = out + i * n,
                                       .mean = mean,
                                       .rstd = rstd};
        zero_backend_cpu.layernorm(math, &a);
        const zero_layernorm_grad_args d = {.rows = ROWS,
                                            .C = COLS,
                                            .x = x,
                                            .type = type,
                                            .gain = g,
                                            .mean = mean,
                                            .rstd = rstd,
                                            .dy = dy,
                                            .dx = out + (2 + i) * n,
                                            .accumulate = i == 1,
                                            .dgain = sums,
                                            .dbias = sums + COLS};
        zero_backend_cpu.layernorm_backward(math, &d);
    }
}

static void words(const zero_math *math, test_pool *pool, float *out)
{
    enum { B = 3, T = 90, C = 500, V = 40 };
    const int64_t n = B * T * C;
    const int32_t *tokens = test_tokens(pool, B * T, V);
    const float *wte = test_floats(pool, V * C), *wpe = test_floats(pool, T * C);
    for (int shared = 0; shared < 2; shared++, out += n + (V + T) * C) {
        const zero_embedding e = {.B = B,
                                  .T = T,
                                  .C = C,
                                  .first = shared ? 10 : 0,
                                  .words = shared ? 20 : 0,
                                  .tokens = tokens,
                                  .wte = wte,
                                  .wpe = wpe,
                                  .out = out};
        const zero_embedding_grad d = {.B = B,
                                       .T = T,
                                       .C = C,
                                       .first = e.first,
                                       .words = e.words,
                                       .tokens = tokens,
                                       .dout = wte,
                                       .dwte = out + n,
                                       .dwpe = out + n + V * C};
        zero_backend_cpu.embedding(math, &e);
        zero_embedding_grad grad = d;
        grad.dout = out;
        zero_backend_cpu.embedding_backward(math, &grad);
    }
}

static void loss(const zero_math *math, test_pool *pool, float *out)
{
    enum { V = 1500 };
    const int32_t *targets = test_tokens(pool, ROWS, V);
    const float *logits = test_floats(pool, ROWS * V);
    const size_t bytes = ROWS * V * sizeof(float);
    memcpy(out, logits, bytes);
    zero_backend_cpu.cross_entropy(math, ROWS, V, targets, 0.1f, out, out + ROWS * V);
    out += ROWS * (V + 1);
    memcpy(out, logits, bytes);
    float *stats = out + ROWS * V;
    const int64_t ends[] = {700, V};
    const zero_softmax s = {.rows = ROWS,
                            .V = V,
                            .slices = 2,
                            .ends = ends,
                            .targets = targets,
                            .logits = out,
                            .stats = stats,
                            .ranks = 1,
                            .all = stats,
                            .dscale = 0.1f,
                            .loss = stats + 5 * ROWS};
    zero_backend_cpu.softmax_slices(math, &s);
    zero_backend_cpu.softmax_loss(math, &s);
}

static void operations_on_rows_do_not_depend_on_threads(void **state)
{
    check(state, rows);
    check(state, norms);
    check(state, words);
    check(state, loss);
}

/* ---- flat ranges ---- */

static void flat(const zero_math *math, test_pool *pool, float *out)
{
    const zero_backend *cpu = &zero_backend_cpu;
    const int64_t n = 3 * ZERO_CPU_PIECE + 77;
    float *x = test_floats(pool, n), *y = test_floats(pool, n);
    zero_exact exact = {{0}};
    double sums[2];
    cpu->clear(math, 100, out);
    cpu->accumulate(math, ZERO_BF16, n, x, y, out);
    cpu->round(math, ZERO_FP16, n, x, out + n);
    for (int64_t less = 0; less < n; less += ZERO_CPU_PIECE - 65) {
        cpu->sum_squares(math, ZERO_FP32, n - less, x, &sums[0]);
        cpu->exact_squares(math, ZERO_FP32, n - less, x, &exact);
        sums[1] = zero_exact_value(&exact);
        memcpy(out + 2 * n, sums, sizeof sums), out += 4;
    }
    const zero_adamw h = {.lr = 0.1f,
                          .beta1 = 0.9f,
                          .beta2 = 0.99f,
                          .eps = 1e-8f,
                          .weight_decay = 0.1f,
                          .grad_scale = 0.5f,
                          .step = 2};
    const zero_adamw_arrays a = {
        .n = n / 2, .grad = x, .master = y, .m = out + 3 * n, .v = out + 4 * n};
    cpu->adamw(math, &h, &a);
    memcpy(out + 2 * n, y, (size_t)(n / 2) * sizeof *y);
}

static void operations_on_flat_ranges_do_not_depend_on_threads(void **state)
{
    check(state, flat);
}

/* ---- waiting ---- */

#define CALLS 40

/* In each call all threads write, wait and read what the others wrote. */
typedef struct {
    int call, said[MOST];
    atomic_int seen; /* by threads that saw all others' */
} round_table;

static void say_and_hear(const zero_thread *t, void *arg)
{
    round_table *table = arg;
    /* One is late, past the looks and yields of the others in every second call. */
    const struct timespec late = {.tv_nsec = table->call % 2 ? 1000000 : 10000};
    if (t->index == table->call % t->size) nanosleep(&late, NULL);
    table->said[t->index] = table->call;
    zero_thread_wait(t);
    int n = 0;
    for (int i = 0; i < t->size; i++) n += table->said[i] == table->call;
    if (n == t->size) table->seen++;
    zero_thread_wait(t);
}

typedef struct {
    zero_math *math;
    round_table table;
} sitting;

static void sit(void *arg)
{
    sitting *s = arg;
    for (s->table.call = 1; s->table.call <= CALLS; s->table.call++) {
        const struct timespec late = {.tv_nsec = s->table.call % 3 ? 0 : 1000000};
        nanosleep(&late, NULL); /* the others sleep */
        zero_team_run(s->math, say_and_hear, &s->table);
    }
}

static void sit_once_more(void *arg)
{
    sitting *s = arg;
    zero_team_hold(s->math, sit, s); /* held already */
}

static void threads_wait_for_each_other_awake_or_asleep(void **state)
{
    (void)state;
    if (!zero_team_is_built()) skip();
    for (size_t i = 0; i < COUNT(teams); i++) {
        zero_math math = {.threads = teams[i]};
        sitting s = {.math = &math};
        zero_team_hold(&math, sit_once_more, &s);
        assert_int_equal(s.table.seen, CALLS * teams[i]);
        s.table.seen = 0;
        sit(&s); /* OpenMP waits */
        assert_int_equal(s.table.seen, CALLS * teams[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_wait_for_each_other_awake_or_asleep),
        cmocka_unit_test_setup_teardown(products_do_not_depend_on_threads, test_pool_make,
                                        test_pool_free),
        cmocka_unit_test_setup_teardown(no_kernel_for_products_depends_on_threads,
                                        test_pool_make, test_pool_free),
        cmocka_unit_test_setup_teardown(attention_does_not_depend_on_threads,
                                        test_pool_make, test_pool_free),
        cmocka_unit_test_setup_teardown(tokens_do_not_depend_on_threads, test_pool_make,
                                        test_pool_free),
        cmocka_unit_test_setup_teardown(operations_on_rows_do_not_depend_on_threads,
                                        test_pool_make, test_pool_free),
        cmocka_unit_test_setup_teardown(operations_on_flat_ranges_do_not_depend_on_threads,
                                        test_pool_make, test_pool_free),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
