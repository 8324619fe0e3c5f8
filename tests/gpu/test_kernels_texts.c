/* Kernels of generated texts, in both orders of threads: keys and values that are kept, attention over
 * them, products of few rows. Fp32 against the oracle; rows of 16 bits against the same kernel on these
 * numbers in fp32; and each text has the bits that it has alone. */
#include "gpu/kernels_test.h"

#define TOLERANCE 5e-6

static const zero_type types[] = {ZERO_FP32, ZERO_BF16, ZERO_FP16};

/* ---- keys and values ---- */

enum { MOST_TEXTS = 3 };

typedef struct {
    int64_t B, C, H, room;
    int64_t past[MOST_TEXTS];
    int shift; /* of arrays, in numbers */
} texts;

/* Heads of fewer numbers than lanes take at once, of 8 and more, and of more than a warp has; texts whose
 * keys do not fill a turn of a block, and fill several. */
static const texts shapes[] = {
    {1, 5, 1, 3, {0}, 0},
    {3, 15, 3, 41, {40, 0, 7}, 0},
    {2, 3 * 64, 3, 300, {299, 31}, 0},
    {2, 2 * 64, 2, 70, {69, 64}, 1},
    {1, 2 * 128, 2, 20, {17}, 0},
    {2, 320, 1, 40, {38, 5}, 0},
    {3, 4 * 24, 4, 90, {1, 89, 33}, 0},
};

/* Arrays of a call: B rows of qkv, which it reads, B caches that hold earlier positions, B rows of out. */
typedef struct {
    void *qkv, *caches, *out;
} arrays;

static int64_t cache_bytes(const texts *t, zero_type type)
{
    return 4 * t->B * zero_cache_floats(type, t->room, t->H, t->H, t->C / t->H);
}

static zero_cached call_of(const texts *t, zero_type type)
{
    zero_cached a = {
        .B = t->B, .T = 1, .H = t->H, .K = t->H, .D = t->C / t->H, .room = t->room};
    a.past = t->past, a.rows_type = type;
    return a;
}

/* Keys and values of x[B][2 room C], of `type`, as caches of it. */
static void *make_caches(test_pool *pool, const texts *t, zero_type type, const void *x)
{
    char *caches = (char *)test_bytes(pool, cache_bytes(t, type));
    const int64_t kept = test_type_bytes(type, 2 * t->room * t->C);
    memset(caches, 0, (size_t)cache_bytes(t, type));
    for (int64_t b = 0; b < t->B; b++)
        memcpy(caches + b * cache_bytes(t, type) / t->B, (const char *)x + b * kept,
               (size_t)kept);
    return caches;
}

/* The row of each text is kept, then its query meets what is kept. */
static arrays run(test_pool *pool, const texts *t, zero_type type, const arrays *from)
{
    test_gpu g = test_gpu_begin(test_gpu_shared);
    zero_cached a = call_of(t, type);
    const int64_t qkv = test_type_bytes(type, t->B * 3 * t->C),
                  out = test_type_bytes(type, t->B * t->C);
    const int shift = (int)test_type_bytes(type, t->shift);
    test_cached_rows(&a, test_gpu_in(&g, from->qkv, qkv, shift));
    a.cache = (float *)test_gpu_out(&g, from->caches, cache_bytes(t, type), 0);
    a.out = test_gpu_out(&g, NULL, out, shift);
    while (test_gpu_next(&g)) {
        zero_cuda_remember(g.stream, &a);
        zero_cuda_recall(g.stream, &a);
    }
    arrays got = {NULL, test_bytes(pool, cache_bytes(t, type)), test_bytes(pool, out)};
    memcpy(got.caches, test_gpu_result(&g, a.cache), (size_t)cache_bytes(t, type));
    memcpy(got.out, test_gpu_result(&g, a.out), (size_t)out);
    return got;
}

static const void *kept_of(const texts *t, zero_type type, const void *caches, int64_t b)
{
    return (const char *)caches + b * cache_bytes(t, type) / t->B;
}

/* The same keys and values, bit for bit; those that no text has yet are as they were. */
static void check_kept(const texts *t, zero_type type, const void *got, const void *want)
{
    for (int64_t b = 0; b < t->B; b++)
        assert_memory_equal(kept_of(t, type, got, b), kept_of(t, type, want, b),
                            (size_t)test_type_bytes(type, 2 * t->room * t->C));
}

/* Text b alone. */
static void check_alone(test_pool *pool, const texts *t, zero_type type, const arrays *from,
                        const void *out, int64_t b)
{
    texts one = *t;
    one.B = 1, one.past[0] = t->past[b];
    const arrays its = {(char *)from->qkv + test_type_bytes(type, b * 3 * t->C),
                        (char *)from->caches + b * cache_bytes(t, type) / t->B, NULL};
    const arrays got = run(pool, &one, type, &its);
    assert_memory_equal(got.out, (const char *)out + test_type_bytes(type, b * t->C),
                        (size_t)test_type_bytes(type, t->C));
}

static arrays by_the_oracle(test_pool *pool, const texts *t, zero_type type,
                            const arrays *from)
{
    zero_math math = test_opened(&zero_backend_naive);
    zero_cached a = call_of(t, type);
    arrays want = {NULL, test_bytes(pool, cache_bytes(t, type)),
                   test_bytes(pool, test_type_bytes(type, t->B * t->C))};
    memcpy(want.caches, from->caches, (size_t)cache_bytes(t, type));
    test_cached_rows(&a, from->qkv);
    a.cache = (float *)want.caches, a.out = want.out;
    zero_backend_naive.remember(&math, &a);
    zero_backend_naive.recall(&math, &a);
    return want;
}

/* As fp32, in place of numbers of a type. */
static void *widen(test_pool *pool, zero_type type, int64_t n, const void *x)
{
    void *wide = test_bytes(pool, 4 * n);
    zero_convert(type, ZERO_FP32, n, x, wide);
    return wide;
}

static void check_texts(test_pool *pool, const texts *t, zero_type type)
{
    const int64_t kept = t->B * 2 * t->room * t->C, rows = t->B * 3 * t->C, n = t->B * t->C;
    void *x = test_numbers(pool, type, kept), *qkv = test_numbers(pool, type, rows);
    const arrays from = {qkv, make_caches(pool, t, type, x), NULL};
    const arrays got = run(pool, t, type, &from),
                 plain = by_the_oracle(pool, t, type, &from);
    check_kept(t, type, got.caches, plain.caches);
    for (int64_t b = 0; b < t->B; b++) check_alone(pool, t, type, &from, got.out, b);

    const arrays wide = {widen(pool, type, rows, qkv),
                         make_caches(pool, t, ZERO_FP32, widen(pool, type, kept, x)), NULL};
    const arrays want = run(pool, t, ZERO_FP32, &wide),
                 exact = by_the_oracle(pool, t, ZERO_FP32, &wide);
    assert_true(test_error(n, (float *)want.out, (float *)exact.out) < TOLERANCE);
    void *rounded = test_bytes(pool, test_type_bytes(type, n));
    zero_convert(ZERO_FP32, type, n, want.out, rounded);
    assert_same_typed(type, n, got.out, rounded);
}

TEST(a_token_attends_to_what_is_kept)
{
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (size_t i = 0; i < COUNT(types); i++) {
            void *pool = NULL;
            assert_int_equal(test_pool_make(&pool), 0);
            check_texts((test_pool *)pool, &shapes[s], types[i]);
            test_pool_free(&pool);
        }
}

/* A prompt is kept in the place of its text: T positions, from the first one on. */
TEST(a_prompt_is_kept)
{
    enum { T = 9, C = 48, H = 2, ROOM = 12 };
    for (size_t i = 0; i < COUNT(types); i++) {
        const zero_type type = types[i];
        const texts t = {1, C, H, ROOM, {0}, 0};
        zero_cached a = call_of(&t, type), plain = a;
        void *caches = test_bytes(*state, cache_bytes(&t, type)),
             *qkv = test_numbers(*state, type, T * 3 * C);
        memset(caches, 0, (size_t)cache_bytes(&t, type));
        test_gpu g = test_gpu_begin(test_gpu_shared);
        a.T = plain.T = T, a.past = plain.past = NULL;
        test_cached_rows(&a, test_gpu_in(&g, qkv, test_type_bytes(type, T * 3 * C), 0));
        a.cache = (float *)test_gpu_out(&g, caches, cache_bytes(&t, type), 0);
        while (test_gpu_next(&g)) zero_cuda_remember(g.stream, &a);
        zero_math math = test_opened(&zero_backend_naive);
        test_cached_rows(&plain, qkv);
        plain.cache = (float *)caches;
        zero_backend_naive.remember(&math, &plain);
        check_kept(&t, type, test_gpu_result(&g, a.cache), caches);
    }
}

/* Positions count from those before, with the CPU's bits. */
TEST(tokens_have_positions_of_their_own)
{
    enum { B = 3, V = 11, C = 24, T = 50 };
    static const int64_t past[B] = {49, 0, 7};
    static const int32_t tokens[B] = {10, 0, 4};
    for (size_t i = 0; i < COUNT(types); i++) {
        const zero_type type = types[i];
        void *wte = test_numbers(*state, type, V * C),
             *wpe = test_numbers(*state, type, T * C),
             *want = test_bytes(*state, test_type_bytes(type, B * C));
        zero_embedding e = {.B = B, .T = 1, .C = C, .type = type, .rows_type = type};
        e.past = past, e.tokens = tokens, e.wte = wte, e.wpe = wpe, e.out = want;
        zero_math math = test_opened(&zero_backend_naive);
        zero_backend_naive.embedding(&math, &e);
        test_gpu g = test_gpu_begin(test_gpu_shared);
        e.tokens = (const int32_t *)test_gpu_in(&g, tokens, sizeof tokens, 0);
        e.wte = test_gpu_in(&g, wte, test_type_bytes(type, V * C), 0);
        e.wpe = test_gpu_in(&g, wpe, test_type_bytes(type, T * C), 0);
        e.out = test_gpu_out(&g, NULL, test_type_bytes(type, B * C), 0);
        while (test_gpu_next(&g)) zero_cuda_embedding(g.stream, &e);
        assert_memory_equal(test_gpu_result(&g, e.out), want,
                            (size_t)test_type_bytes(type, B * C));
    }
}

/* ---- products of few rows ---- */

/* m, n, k, and the shift of b in numbers. With MANY columns k is cut into few, long parts: one type is
 * enough for them. */
#define MANY 1000
static const int64_t sizes[][4] = {{1, 1, 1, 0},     {1, 70, 33, 0},   {2, 130, 17, 0},
                                   {8, 96, 400, 0},  {3, 65, 64, 1},   {17, 40, 72, 0},
                                   {1, 64, 1000, 1}, {2, 4200, 400, 0}};

typedef struct {
    zero_type type, rows, sums; /* of b, a and c */
    bool transposed;
    int64_t m, n, k, shift;
    const void *a, *b;
} factors;

/* c by the kernel, from row `first` of a on; with a room for 64 KiB of sums. */
static const void *multiply(test_pool *pool, const factors *f, int64_t first, int64_t m)
{
    test_gpu g = test_gpu_begin(test_gpu_shared);
    const int64_t bytes = test_type_bytes(f->sums, m * f->n);
    zero_gemm p = {.transpose_b = f->transposed, .m = m, .n = f->n, .k = f->k};
    p.a_type = f->rows, p.b_type = f->type, p.c_type = f->sums, p.few_rows = true;
    p.a = test_gpu_in(&g, (const char *)f->a + test_type_bytes(f->rows, first * f->k),
                      test_type_bytes(f->rows, m * f->k), 0);
    p.b = test_gpu_in(&g, f->b, test_type_bytes(f->type, f->n * f->k),
                      (int)test_type_bytes(f->type, f->shift));
    p.c = test_gpu_out(&g, NULL, bytes, 0);
    const zero_cuda_room room = test_gpu_room(&g, 1 << 16);
    while (test_gpu_next(&g)) zero_cuda_few_rows(g.stream, &p, room);
    void *c = test_bytes(pool, bytes);
    memcpy(c, test_gpu_result(&g, p.c), (size_t)bytes);
    return c;
}

static void check_product(test_pool *pool, const int64_t size[4], zero_type type,
                          zero_type rows, bool transposed)
{
    factors f = {.type = type, .rows = rows, .transposed = transposed};
    f.m = size[0], f.n = size[1], f.k = size[2], f.shift = size[3];
    f.a = test_numbers(pool, rows, f.m * f.k), f.b = test_numbers(pool, type, f.n * f.k);
    const float *sums = (const float *)multiply(pool, &f, 0, f.m);
    float *want = test_floats(pool, f.m * f.n);
    zero_math math = test_opened(&zero_backend_naive);
    zero_gemm g = {.transpose_b = transposed, .m = f.m, .n = f.n, .k = f.k};
    g.a = f.a, g.a_type = rows, g.b = f.b, g.b_type = type, g.c = want;
    zero_backend_naive.gemm(&math, &g);
    assert_true(test_error(f.m * f.n, sums, want) < TOLERANCE);

    const int64_t last = f.m - 1; /* alone, it has these bits */
    assert_same(f.n, (const float *)multiply(pool, &f, last, 1), sums + last * f.n);
    f.sums = rows;
    void *rounded = test_bytes(pool, test_type_bytes(rows, f.m * f.n));
    zero_convert(ZERO_FP32, rows, f.m * f.n, sums, rounded);
    assert_memory_equal(multiply(pool, &f, 0, f.m), rounded,
                        (size_t)test_type_bytes(rows, f.m * f.n));
}

TEST(products_of_few_rows_agree_and_do_not_depend_on_each_other)
{
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (size_t i = 0; i < COUNT(types); i++)
            for (int way = 0; way < 4; way++) {
                if (sizes[s][1] > MANY && (types[i] != ZERO_BF16 || way & 2)) continue;
                void *pool = NULL;
                assert_int_equal(test_pool_make(&pool), 0);
                check_product((test_pool *)pool, sizes[s], types[i],
                              way & 1 ? types[i] : ZERO_FP32, way & 2);
                test_pool_free(&pool);
            }
}
