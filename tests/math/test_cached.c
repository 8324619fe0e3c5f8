/* The arithmetic of a token: rows of weights that are read once, and attention over keys and values
 * that were kept. */
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
