/* The arithmetic of a token: products of few rows, which read weights once, and attention over keys
 * and values that were kept; against the oracle, and bit for bit however work is cut. */
#include "base/type.h"
#include "math/cpu_kernels.h"
#include "math/cpu_state.h"
#include "support/math_test.h"

#define TOLERANCE 5e-6

static const zero_backend *const cpu = &zero_backend_cpu;
static const zero_backend *const naive = &zero_backend_naive;

static const zero_type types[] = {ZERO_FP32, ZERO_BF16, ZERO_FP16};

/* n numbers of a type. */
static void *typed(test_pool *pool, zero_type type, int64_t n)
{
    float *x = test_floats(pool, n);
    void *out = test_bytes(pool, n * (int64_t)zero_type_size(type));
    zero_convert(ZERO_FP32, type, n, x, out);
    return out;
}

/* ---- products ---- */

static zero_gemm product(test_pool *pool, const int64_t size[3], zero_type type,
                         bool transpose_b)
{
    zero_gemm g = {.m = size[0],
                   .n = size[1],
                   .k = size[2],
                   .transpose_b = transpose_b,
                   .factors = type,
                   .b_type = type,
                   .few_rows = true};
    g.a = test_floats(pool, g.m * g.k);
    g.b = typed(pool, type, g.n * g.k);
    g.c = test_floats(pool, g.m * g.n);
    return g;
}

static const int64_t sizes[][3] = {{1, 1, 1},    {1, 70, 33},  {2, 513, 17}, {3, 64, 130},
                                   {8, 1100, 5}, {5, 31, 700}, {1, 16, 0},   {17, 40, 64}};

/* Factors are not rounded, whatever the type of the weights. */
TEST(products_of_few_rows_agree_with_the_oracle)
{
    zero_math fast = test_opened(cpu), slow = test_opened(naive);
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (size_t t = 0; t < COUNT(types); t++)
            for (int transposed = 0; transposed < 2; transposed++) {
                zero_gemm g = product(*state, sizes[s], types[t], transposed);
                float *got = g.c, *want = test_floats(*state, g.m * g.n);
                got[0] = NAN; /* must not be read */
                cpu->gemm(&fast, &g);
                g.c = want;
                g.factors = ZERO_FP32;
                naive->gemm(&slow, &g);
                assert_true(test_error(g.m * g.n, got, want) < TOLERANCE);
            }
}

/* Element (i, j) is that of row i alone and of columns j .. alone. */
TEST(a_cut_of_rows_or_columns_changes_no_bits)
{
    zero_math math = test_opened(cpu);
    for (size_t t = 0; t < COUNT(types); t++)
        for (int transposed = 0; transposed < 2; transposed++) {
            const int64_t size[3] = {5, 611, 203}, from = 77, n = 300;
            const size_t width = zero_type_size(types[t]);
            zero_gemm g = product(*state, size, types[t], transposed), part = g;
            float *row = test_floats(*state, size[1]);
            cpu->gemm(&math, &g);
            part.m = 1, part.n = n, part.a = (const float *)g.a + 3 * size[2], part.c = row;
            part.ldb = transposed ? size[2] : size[1];
            part.b =
                (const char *)g.b + width * (size_t)(transposed ? from * size[2] : from);
            cpu->gemm(&math, &part);
            assert_same(n, row, (float *)g.c + 3 * size[1] + from);
        }
}

/* Two ranks with two slices each, added along the tree, have the sum of one with four. */
static void check_slices(test_pool *pool, int64_t rows, zero_type type, bool transposed)
{
    zero_math math = test_opened(cpu), slow = test_opened(naive);
    const int64_t size[3] = {rows, 90, 4 * 37}, half = 2 * 37, n = size[0] * size[1];
    zero_gemm g = product(pool, size, type, transposed), part = g;
    float *sum = test_floats(pool, n), *other = test_floats(pool, n);
    g.slices = 4;
    cpu->gemm(&math, &g);
    part.k = half, part.lda = size[2], part.slices = 2, part.c = sum;
    part.ldb = transposed ? size[2] : size[1];
    cpu->gemm(&math, &part);
    part.a = (const float *)g.a + half, part.c = other;
    part.b = zero_type_at(type, g.b, half * (transposed ? 1 : size[1]));
    cpu->gemm(&math, &part);
    for (int64_t i = 0; i < n; i++) sum[i] += other[i];
    assert_same(n, sum, g.c);
    /* One row alone has no other bits. */
    zero_gemm one = g;
    one.m = 1, one.a = (const float *)g.a + size[2], one.c = sum;
    cpu->gemm(&math, &one);
    assert_same(size[1], sum, (float *)g.c + size[1]);
    /* Factors are not rounded. */
    const float *whole = g.c;
    g.c = sum, g.factors = ZERO_FP32;
    naive->gemm(&slow, &g);
    assert_true(test_error(n, whole, sum) < TOLERANCE);
}

TEST(slices_add_up_as_the_tree_says)
{
    for (size_t t = 0; t < COUNT(types); t++)
        for (int64_t rows = 3; rows < 50; rows += 41)
            for (int transposed = 0; transposed < 2; transposed++)
                check_slices(*state, rows, types[t], transposed);
}

TEST(every_instruction_set_gives_the_same_bits)
{
    const zero_cpu_kernels *best = zero_cpu_kernels_at(0), *kernels;
    for (int level = 1; (kernels = zero_cpu_kernels_at(level)); level++)
        for (size_t t = 0; t < COUNT(types); t++)
            for (int64_t n = 1; n < 150; n += 7) {
                void *b = typed(*state, types[t], 9 * n);
                float *x = test_floats(*state, 7 * (n + 9)),
                      *out = test_floats(*state, 7 * n),
                      *again = test_copy(*state, 7 * n, out), dots[63], dots_again[63];
                float *start = test_copy(*state, 7 * n, out),
                      *room = test_floats(*state, zero_rows_room(9, n));
                zero_rows rows = {7, 9, n, x, n + 9, b, n, out, n, NULL};
                best->add_rows(types[t], &rows);
                rows.out = again;
                kernels->add_rows(types[t], &rows);
                assert_same(7 * n, out, again);
                rows.out = start, rows.room = room;
                (level > 1 ? kernels : best)->add_rows(types[t], &rows);
                assert_same(7 * n, out, start);
                rows.out = dots, rows.out_stride = 9;
                best->row_dots(types[t], &rows);
                rows.out = dots_again;
                kernels->row_dots(types[t], &rows);
                assert_same(63, dots, dots_again);
            }
}

TEST(long_products_poll)
{
    int polls = 0;
    zero_math math = test_opened(cpu);
    math.poll = test_count_poll, math.poll_arg = &polls;
    for (int transposed = 0; transposed < 2; transposed++) {
        zero_gemm g =
            product(*state, (const int64_t[]){1, 1200, 900}, ZERO_FP32, transposed);
        polls = 0;
        cpu->gemm(&math, &g);
        assert_true(polls >= 2);
    }
}

/* ---- attention ---- */

enum { B = 3, T = 37, H = 4, C = 20, ROOM = 41 };

/* Keeps the first `past[b]` positions of each text's qkv[T,3C], then the rest one by one; out[B,T,C]
 * of the latter. Text b is one position longer than text b - 1 at each moment. */
static void recall_all(const zero_backend *backend, zero_math *math, test_pool *pool,
                       int64_t K, const float *qkv, float *out)
{
    const int64_t row = C + 2 * K * (C / H);
    float *cache = test_floats(pool, B * zero_cache_floats(ZERO_FP32, ROOM, H, K, C / H));
    float *rows = test_floats(pool, B * row), *mixed = test_floats(pool, B * C);
    for (int64_t b = 0; b < B; b++) { /* as a prompt is kept: one text in its place */
        zero_cached prompt = {.B = 1,
                              .T = b + 1,
                              .H = H,
                              .K = K,
                              .D = C / H,
                              .room = ROOM,
                              .cache = cache +
                                       b * zero_cache_floats(ZERO_FP32, ROOM, H, K, C / H)};
        test_cached_rows(&prompt, qkv + b * T * row);
        backend->remember(math, &prompt);
    }
    for (int64_t made = 1; made + B - 1 < T; made++) {
        int64_t past[B];
        for (int64_t b = 0; b < B; b++) {
            past[b] = b + made;
            memcpy(rows + b * row, qkv + (b * T + past[b]) * row,
                   (size_t)row * sizeof *rows);
        }
        zero_cached token = {.B = B, .T = 1, .H = H, .K = K, .D = C / H, .room = ROOM};
        token.past = past, token.cache = cache, token.out = mixed;
        test_cached_rows(&token, rows);
        backend->remember(math, &token);
        backend->recall(math, &token);
        for (int64_t b = 0; b < B; b++)
            memcpy(out + (b * T + past[b]) * C, mixed + b * C, C * sizeof *out);
    }
}

/* One token at a time gives what attention gives to all positions at once. */
static void check_texts(void **state, int64_t K)
{
    zero_math fast = test_opened(cpu), slow = test_opened(naive);
    zero_attention a = {.B = B, .T = T, .H = H, .K = K, .D = C / H};
    float *want = test_floats(*state, B * T * C);
    const float *qkv = test_floats(*state, B * T * (C + 2 * K * (C / H)));
    zero_attention_rows(&a, qkv, NULL);
    a.out = want;
    a.lse = test_floats(*state, B * H * T);
    a.work = test_floats(*state, naive->attention_workspace(&a));
    naive->attention(&slow, &a);
    float *got = test_copy(*state, B * T * C, want),
          *plain = test_copy(*state, B * T * C, want);
    recall_all(cpu, &fast, *state, K, qkv, got);
    recall_all(naive, &slow, *state, K, qkv, plain);
    assert_true(test_error(B * T * C, got, want) < TOLERANCE);
    assert_true(test_error(B * T * C, plain, want) < TOLERANCE);
    assert_memory_not_equal(got, want, B * T * C * sizeof *got); /* they were computed */
}

TEST(tokens_attend_as_whole_texts_do)
{
    for (int64_t K = 1; K <= H; K *= 2) check_texts(state, K);
}
