/* Threads of a rank: products, attention and the products of tokens have the bits of one thread, and
 * threads wait for each other. */
#include "support/team_test.h"

#include <time.h>

#include "math/cpu_packed.h"

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

TEST(products_do_not_depend_on_threads)
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

TEST(no_kernel_for_products_depends_on_threads)
{
    check(state, product_kernels);
}

/* ---- attention ---- */

static void attend(const zero_math *math, test_pool *pool, zero_type factors, float *out)
{
    zero_attention a = {.B = 2,
                        .T = 75,
                        .H = 5,
                        .K = 5,
                        .D = 24,
                        .factors = factors,
                        .dropout = {.p = 0.2f}};
    const int64_t n = a.B * a.T * a.H * a.D;
    a.dout = test_floats(pool, n);
    a.out = out, a.lse = out + n;
    zero_attention_rows(&a, test_floats(pool, 3 * n), out + n + a.B * a.H * a.T);
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

TEST(attention_does_not_depend_on_threads)
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
    zero_cached a = {.B = B, .T = T - 1, .H = H, .K = H, .D = C / H, .room = T, .out = out};
    test_cached_rows(&a, test_floats(pool, B * T * 3 * C));
    a.cache = test_floats(pool, B * zero_cache_floats(ZERO_FP32, T, H, H, C / H));
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

TEST(tokens_do_not_depend_on_threads)
{
    check(state, tokens);
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

TEST(threads_wait_for_each_other_awake_or_asleep)
{
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
