/* Launchers that promise the CPU's bits, on flat ranges: what test_kernels.c has no rows for. */
#include "gpu/kernels_test.h"

#include "base/half.h"

static const zero_backend *const cpu = &zero_backend_cpu;
static const zero_type types[] = {ZERO_FP32, ZERO_BF16, ZERO_FP16};

#define LONGEST 4097

/* One element's bytes, or none. */
static int shift_of(zero_type type, bool shifted)
{
    return shifted ? (int)test_type_bytes(type, 1) : 0;
}

/* ---- the optimizer ---- */

typedef struct {
    float *master, *m, *v;
    uint16_t *param;
} states;

/* Moments are as any, or denormal, or at the limits below which they count as zero. */
static states make_states(test_pool *pool, int64_t n)
{
    static const float small[] = {0x1p-125f,  0x1.fffffep-126f, -0x1p-126f, 0x1p-149f,
                                  -0x1p-127f, 0x1p-90f,         0x1p-91f,   0.0f};
    states s = {test_floats(pool, n), test_floats(pool, n), test_floats(pool, n), NULL};
    s.param = (uint16_t *)test_bytes(pool, 2 * n);
    memset(s.param, 0xff, (size_t)(2 * n));
    for (int64_t i = 0; i < n; i++) s.v[i] *= i % 31 == 30 ? 1.0f : s.v[i];
    for (int64_t i = 0; i < n; i += 5) s.m[i] = small[(size_t)(i / 5) % COUNT(small)];
    for (int64_t i = 2; i < n; i += 7) s.v[i] = small[(size_t)(i / 7) % COUNT(small)];
    return s;
}

static void check_adamw_at(test_pool *pool, zero_type type, int64_t n, bool shifted,
                           const zero_adamw *h)
{
    const void *grad = test_odd_numbers(pool, type, n);
    states s = make_states(pool, n);
    test_gpu g = test_gpu_begin(test_gpu_shared);
    const int64_t bytes = 4 * n;
    const int shift = shift_of(ZERO_FP32, shifted);
    zero_adamw_arrays a = {.n = n, .type = type};
    a.grad = test_gpu_in(&g, grad, test_type_bytes(type, n), shift_of(type, shifted));
    a.master = (float *)test_gpu_out(&g, s.master, bytes, shift);
    a.m = (float *)test_gpu_out(&g, s.m, bytes, shift);
    a.v = (float *)test_gpu_out(&g, s.v, bytes, shift);
    if (type != ZERO_FP32) a.param = test_gpu_out(&g, NULL, 2 * n, shift_of(type, shifted));
    while (test_gpu_next(&g)) zero_cuda_adamw(g.stream, h, &a);

    zero_math math = test_opened(cpu);
    zero_adamw_arrays want = {n, type, grad, s.master, s.m, s.v, NULL, 0, NULL};
    if (type != ZERO_FP32) want.param = s.param;
    cpu->adamw(&math, h, &want);
    assert_same_typed(ZERO_FP32, n, test_gpu_result(&g, a.master), s.master);
    assert_same_typed(ZERO_FP32, n, test_gpu_result(&g, a.m), s.m);
    assert_same_typed(ZERO_FP32, n, test_gpu_result(&g, a.v), s.v);
    if (type != ZERO_FP32)
        assert_same_typed(type, n, test_gpu_result(&g, a.param), s.param);
}

/* Other recipes: no decay, large eps, late steps, gradients scaled far down. */
TEST(the_optimizer_has_the_cpus_bits_with_other_recipes)
{
    for (int i = 0; i < 12; i++) {
        zero_adamw h = test_recipe();
        if (i % 2) h.weight_decay = 0.0f;
        if (i % 3 == 0) h.eps = 0.25f;
        h.step = i < 6 ? 1 + i : 100000 + i;
        h.grad_scale = i % 4 == 0 ? 1e-20f : 1.0f;
        h.beta2 = i % 5 ? 0.999f : 0.95f;
        check_adamw_at(*state, types[i % 3], LONGEST, i % 2, &h);
    }
}

/* Two parameters have a flipped bit, or none: the CPU's word, and all other bits as without. */
static void check_changes(test_pool *pool, zero_type type, int64_t n, bool shifted)
{
    const zero_adamw h = test_recipe();
    const void *grad = test_odd_numbers(pool, type, n);
    for (int flips = 0; flips < (n > 0 ? 2 : 1); flips++) {
        states s = make_states(pool, n);
        uint64_t word = 0;
        zero_convert(ZERO_FP32, type, n, s.master, s.param);
        if (flips) s.param[n - 1] ^= 0x40, s.param[n / 2] ^= 1;
        test_gpu g = test_gpu_begin(test_gpu_shared);
        const int shift = shift_of(ZERO_FP32, shifted);
        zero_adamw_arrays a = {.n = n, .type = type, .first = 7};
        a.grad = test_gpu_in(&g, grad, 2 * n, shift_of(type, shifted));
        a.master = (float *)test_gpu_out(&g, s.master, 4 * n, shift);
        a.m = (float *)test_gpu_out(&g, s.m, 4 * n, shift);
        a.v = (float *)test_gpu_out(&g, s.v, 4 * n, shift);
        a.param = test_gpu_out(&g, s.param, 2 * n, shift_of(type, shifted));
        a.changed = (uint64_t *)test_gpu_out(&g, &word, sizeof word, 0);
        while (test_gpu_next(&g)) zero_cuda_adamw(g.stream, &h, &a);

        zero_math math = test_opened(cpu);
        const zero_adamw_arrays want = {n,   type,    grad, s.master, s.m,
                                        s.v, s.param, 7,    &word};
        cpu->adamw(&math, &h, &want);
        assert_true(flips ? word == zero_changed(7 + n / 2) : word == 0);
        assert_memory_equal(test_gpu_result(&g, a.changed), &word, sizeof word);
        assert_same_typed(type, n, test_gpu_result(&g, a.param), s.param);
    }
}

TEST(the_optimizer_tells_the_first_changed_parameter)
{
    static const int64_t lengths[] = {0, 1, 2, 7, 8, 31, 64, 129, 1024, LONGEST};
    for (size_t t = 1; t < COUNT(types); t++)
        for (size_t i = 0; i < COUNT(lengths); i++)
            for (int shifted = 0; shifted < 2; shifted++)
                check_changes(*state, types[t], lengths[i], shifted);
}

/* Only one of the arrays is not aligned: none may be taken as if it were. */
TEST(each_array_of_the_optimizer_may_be_aligned_to_its_elements)
{
    const int64_t n = 261;
    const zero_adamw h = test_recipe();
    zero_math math = test_opened(cpu);
    for (int odd = 0; odd < 5; odd++) {
        const void *grad = test_odd_numbers(*state, ZERO_BF16, n);
        states s = make_states(*state, n);
        test_gpu g = test_gpu_begin(test_gpu_shared);
        zero_adamw_arrays a = {.n = n, .type = ZERO_BF16};
        a.grad = test_gpu_in(&g, grad, 2 * n, odd == 0 ? 2 : 0);
        a.master = (float *)test_gpu_out(&g, s.master, 4 * n, odd == 1 ? 4 : 0);
        a.m = (float *)test_gpu_out(&g, s.m, 4 * n, odd == 2 ? 8 : 0);
        a.v = (float *)test_gpu_out(&g, s.v, 4 * n, odd == 3 ? 12 : 0);
        a.param = test_gpu_out(&g, NULL, 2 * n, odd == 4 ? 6 : 0);
        while (test_gpu_next(&g)) zero_cuda_adamw(g.stream, &h, &a);
        const zero_adamw_arrays want = {n,   ZERO_BF16, grad, s.master, s.m,
                                        s.v, s.param,   0,    NULL};
        cpu->adamw(&math, &h, &want);
        assert_same_typed(ZERO_FP32, n, test_gpu_result(&g, a.master), s.master);
        assert_same_typed(ZERO_BF16, n, test_gpu_result(&g, a.param), s.param);
    }
}

/* First moments that move no parameter: a master of zero shows it. */
TEST(tiny_moments_move_nothing)
{
    enum { N = 64 };
    const float grad[N] = {0}, zeros[N] = {0};
    float *m = test_floats(*state, N), *master = test_copy(*state, N, zeros);
    float *v = test_copy(*state, N, zeros);
    for (int i = 0; i < N; i++) m[i] = ldexpf(i % 2 ? -1.0f : 1.0f, -105 + i / 2);
    zero_adamw h = test_recipe();
    zero_math math = test_opened(cpu);
    test_gpu g = test_gpu_begin(test_gpu_shared);
    zero_adamw_arrays a = {.n = N, .type = ZERO_FP32};
    a.grad = test_gpu_in(&g, grad, 4 * N, 0);
    a.master = (float *)test_gpu_out(&g, master, 4 * N, 0);
    a.m = (float *)test_gpu_out(&g, m, 4 * N, 0);
    a.v = (float *)test_gpu_out(&g, v, 4 * N, 0);
    while (test_gpu_next(&g)) zero_cuda_adamw(g.stream, &h, &a);
    cpu->adamw(&math, &h,
               &(zero_adamw_arrays){N, ZERO_FP32, grad, master, m, v, NULL, 0, NULL});
    assert_true(master[0] == 0.0f && master[N - 1] != 0.0f);
    assert_same(N, test_gpu_result(&g, a.master), master);
}

/* ---- rounding ---- */

/* Every number of 16 bits, and its neighbours among fp32: ties, and what is just beside
 * them. */
TEST(all_numbers_of_16_bits_and_their_borders_are_rounded_alike)
{
    enum { N = 4 * 65536 };
    for (int t = 1; t < 3; t++) {
        const zero_type type = types[t];
        float *x = (float *)test_bytes(*state, 4 * N);
        for (int i = 0; i < 65536; i++) {
            const uint16_t half = (uint16_t)i;
            zero_convert(type, ZERO_FP32, 1, &half, &x[4 * i]);
            uint32_t bits;
            memcpy(&bits, &x[4 * i], sizeof bits);
            const uint32_t tie = type == ZERO_BF16 ? 0x8000 : 0x1000;
            for (uint32_t k = 1; k < 4; k++) {
                const uint32_t beside = bits + tie + k - 2;
                memcpy(&x[4 * i + (int)k], &beside, sizeof beside);
            }
        }
        void *want = test_bytes(*state, 2 * N);
        test_gpu g = test_gpu_begin(test_gpu_shared);
        const float *in = (const float *)test_gpu_in(&g, x, 4 * N, 0);
        void *out = test_gpu_out(&g, NULL, 2 * N, 0);
        while (test_gpu_next(&g)) zero_cuda_round(g.stream, type, N, in, out);
        zero_convert(ZERO_FP32, type, N, x, want);
        assert_same_typed(type, N, test_gpu_result(&g, out), want);
    }
}

/* ---- convert ---- */

/* Rows `stride` apart, and results cols or cols + 4 apart; what lies between them is NaN. */
static void check_convert(test_pool *pool, zero_type from, zero_type to,
                          const int64_t shape[3], bool shifted)
{
    const int64_t rows = shape[0], cols = shape[1], stride = shape[2], n = rows * cols;
    const int64_t out_stride = stride % 8 == 0 ? cols + 4 : cols, n_out = rows * out_stride;
    const size_t size = (size_t)test_type_bytes(from, 1);
    const char *x = (const char *)test_odd_numbers(pool, from, n);
    char *apart = (char *)test_bytes(pool, test_type_bytes(from, rows * stride));
    float *wide = test_floats(pool, n);
    char *want = (char *)test_bytes(pool, test_type_bytes(to, n_out));
    memset(apart, 0xff, size * (size_t)(rows * stride));
    memset(want, 0xff, (size_t)test_type_bytes(to, n_out));
    for (int64_t r = 0; r < rows; r++)
        memcpy(apart + size * (size_t)(r * stride), x + size * (size_t)(r * cols),
               size * (size_t)cols);
    zero_convert(from, ZERO_FP32, n, x, wide);
    for (int64_t r = 0; r < rows; r++)
        zero_convert(ZERO_FP32, to, cols, wide + r * cols,
                     want + test_type_bytes(to, r * out_stride));
    test_gpu g = test_gpu_begin(test_gpu_shared);
    const void *in = test_gpu_in(&g, apart, test_type_bytes(from, rows * stride),
                                 shift_of(from, shifted));
    void *out = test_gpu_out(&g, NULL, test_type_bytes(to, n_out), 0);
    while (test_gpu_next(&g))
        zero_cuda_convert(g.stream, rows, cols, stride, from, in, to, out_stride, out);
    assert_same_typed(to, n_out, test_gpu_result(&g, out), want);
}

TEST(tables_are_converted_between_all_types)
{
    static const int64_t shapes[][3] = {{1, 1, 1},     {1, 4097, 4097}, {3, 64, 64},
                                        {7, 64, 96},   {9, 20, 22},     {17, 33, 40},
                                        {5, 128, 129}, {130, 12, 12},   {0, 4, 4}};
    for (size_t from = 0; from < COUNT(types); from++)
        for (size_t to = 0; to < COUNT(types); to++)
            for (size_t s = 0; s < COUNT(shapes); s++)
                for (int shifted = 0; shifted < 2; shifted++)
                    check_convert(*state, types[from], types[to], shapes[s], shifted);
}

/* ---- sums of squares ---- */

static void check_squares_in(test_pool *pool, zero_type type, const void *x, int64_t n,
                             bool shifted, int64_t room_bytes)
{
    zero_math math = test_opened(cpu);
    double want, got;
    test_gpu g = test_gpu_begin(test_gpu_shared);
    const void *in = test_gpu_in(&g, x, test_type_bytes(type, n), shift_of(type, shifted));
    zero_cuda_room room = test_gpu_room(&g, room_bytes);
    double *sum = (double *)test_gpu_out(&g, NULL, sizeof *sum, 0);
    while (test_gpu_next(&g)) zero_cuda_sum_squares(g.stream, type, n, in, room, sum);
    cpu->sum_squares(&math, type, n, x, &want);
    memcpy(&got, test_gpu_result(&g, sum), sizeof got);
    if (isnan(got) && isnan(want)) return;
    if (memcmp(&got, &want, sizeof got) != 0)
        fail_msg("%lld squares: %a, not %a", (long long)n, got, want);
    (void)pool;
}

TEST(squares_of_denormals_infinities_and_nan_are_summed_alike)
{
    static const float odd[] = {1e-40f, 1e-30f, 3e38f, INFINITY, NAN};
    for (size_t t = 0; t < COUNT(types); t++)
        for (size_t k = 0; k < COUNT(odd); k++) {
            float *x = test_floats(*state, 4000);
            for (int64_t i = 0; k == 0 && i < 4000; i++) x[i] *= 1e-40f;
            x[3001] = odd[k];
            void *typed = test_bytes(*state, test_type_bytes(types[t], 4000));
            zero_convert(ZERO_FP32, types[t], 4000, x, typed);
            check_squares_in(*state, types[t], typed, 4000, false, 65536);
        }
}

/* Longer than what all blocks take at once. Last: on CPUs without protection keys the emulator
 * protects all memory that was ever used at each launch. */
TEST(long_ranges_take_several_turns)
{
    const int64_t n = ((int64_t)8192 + 77) * 1024 + 3;
    zero_math math = test_opened(cpu);
    uint16_t *want = (uint16_t *)test_bytes(*state, 2 * n);
    float *x = (float *)test_bytes(*state, 4 * n);
    for (int64_t i = 0; i < n; i++) x[i] = (float)(i % 1000003);
    for (int shifted = 0; shifted < 2; shifted++) {
        test_gpu g = test_gpu_begin(test_gpu_shared);
        const int64_t len = shifted ? n / 4 : n;
        const float *in = (const float *)test_gpu_in(&g, x, 4 * len, 4 * shifted);
        void *out = test_gpu_out(&g, NULL, 2 * len, 2 * shifted);
        while (test_gpu_next(&g)) zero_cuda_round(g.stream, ZERO_BF16, len, in, out);
        cpu->round(&math, ZERO_BF16, len, x, want);
        assert_memory_equal(test_gpu_result(&g, out), want, (size_t)(2 * len));
    }
}

/* More rows, and more columns, than all blocks take at once. */
TEST(large_tables_take_several_turns)
{
    check_convert(*state, ZERO_FP32, ZERO_BF16, (const int64_t[]){8 * 8192 + 9, 1, 2},
                  false);
    check_convert(*state, ZERO_FP32, ZERO_FP16,
                  (const int64_t[]){1, 32 * 8192 + 5, 32 * 8192 + 5}, false);
}

/* Many blocks, and so little room that each takes many turns. */
TEST(long_sums_of_squares_take_several_turns)
{
    static const int64_t sizes[] = {8191, 65537, 131072, 200000, 300001};
    static const int64_t rooms[] = {8, 24, 128, 65536};
    for (size_t t = 0; t < COUNT(types); t++)
        for (size_t s = 0; s < COUNT(sizes); s++)
            for (size_t r = 0; r < COUNT(rooms); r++) {
                const void *x = test_numbers(*state, types[t], sizes[s]);
                check_squares_in(*state, types[t], x, sizes[s], r % 2, rooms[r]);
            }
}
