/* Products whose arrays have 16 bits: the bits of the same product of widened factors, its c rounded
 * once. By each packed kernel that this machine runs, as on a CPU where BLAS multiplies floats, by
 * products of few rows, and by one thread or several. */
#include "support/math_test.h"
#include "support/share.h"

#include "base/type.h"
#include "math/cpu_state.h"

#define GUARD        64 /* bytes before and after the scratch */
#define THREADS      3
#define ALL_MACHINES (ZERO_PACKED_VARIANTS + 1)

static const zero_type halves[] = {ZERO_BF16, ZERO_FP16};

/* kernels NULL: BLAS would multiply floats. */
typedef struct {
    const zero_packed_kernels *kernels;
    zero_math math;
    char *scratch;
    int64_t bytes;
} machine;

static void add_machine(test_pool *pool, machine *m, const zero_packed_kernels *kernels)
{
    const int64_t bytes = THREADS * zero_math_scratch() * (int64_t)sizeof(float);
    *m = (machine){.kernels = kernels, .bytes = bytes};
    m->scratch = test_bytes(pool, bytes + 2 * GUARD);
    memset(m->scratch, 0xff, (size_t)bytes + 2 * GUARD); /* NaN */
    assert_ok(zero_backend_cpu.open(&m->math));
    m->math.scratch = (float *)(void *)(m->scratch + GUARD);
    m->math.state[ZERO_CPU_FP32_PRODUCTS] = kernels;
    m->math.state[ZERO_CPU_BF16_PRODUCTS] = kernels;
}

static int make_machines(test_pool *pool, machine m[ALL_MACHINES])
{
    int n = 0;
    add_machine(pool, &m[n++], NULL);
    for (int i = 0; zero_packed_at(i); i++) add_machine(pool, &m[n++], zero_packed_at(i));
    assert_true(n > 1);
    return n;
}

static bool rounds(const machine *m)
{
    return m->kernels && m->kernels->type == ZERO_BF16;
}

static void assert_guarded(const machine *m)
{
    for (int i = 0; i < GUARD; i++)
        assert_true(m->scratch[i] == (char)0xff &&
                    m->scratch[GUARD + m->bytes + i] == (char)0xff);
}

/* ---- products ---- */

enum { A_TRANSPOSED = 1, B_TRANSPOSED = 2, STRIDES = 4, FLAGS = 8 };

/* wide: in fp32, with the numbers of `half`; NULL stands for c. */
typedef struct {
    zero_gemm half, wide;
} product;

/* n numbers of a type, and the same in fp32. */
static void make_factor(test_pool *pool, zero_type type, int64_t n, const void **half,
                        const void **wide)
{
    void *typed = test_bytes(pool, n * (int64_t)sizeof(float));
    float *floats = test_floats(pool, n);
    zero_convert(ZERO_FP32, type, n, floats, typed);
    zero_convert(type, ZERO_FP32, n, typed, floats);
    *half = typed, *wide = floats;
}

static product make_product(test_pool *pool, const int64_t size[3], int flags,
                            zero_type type)
{
    const int64_t pad = flags & STRIDES ? 3 : 0;
    product x;
    zero_gemm *g = &x.half;
    *g = (zero_gemm){.m = size[0], .n = size[1], .k = size[2], .a_type = type};
    g->transpose_a = flags & A_TRANSPOSED, g->transpose_b = flags & B_TRANSPOSED;
    g->lda = (g->transpose_a ? g->m : g->k) + pad;
    g->ldb = (g->transpose_b ? g->k : g->n) + 2 * pad;
    g->ldc = g->n + pad;
    g->b_type = g->c_type = type;
    x.wide = *g;
    make_factor(pool, type, g->lda * (g->transpose_a ? g->k : g->m), &g->a, &x.wide.a);
    make_factor(pool, type, g->ldb * (g->transpose_b ? g->n : g->k), &g->b, &x.wide.b);
    x.wide.a_type = x.wide.b_type = x.wide.c_type = ZERO_FP32;
    return x;
}

/* c, as the machine computes it; what lies between its rows stays 0xff. */
static void *computed(test_pool *pool, machine *m, const zero_gemm *wanted, int threads)
{
    zero_gemm g = *wanted;
    const int64_t bytes = g.m * g.ldc * (int64_t)zero_type_size(g.c_type);
    g.c = test_bytes(pool, bytes);
    memset(g.c, 0xff, (size_t)bytes);
    g.factors = rounds(m) ? ZERO_BF16 : ZERO_FP32;
    m->math.threads = threads;
    zero_backend_cpu.gemm(&m->math, &g);
    assert_guarded(m);
    return g.c;
}

static void assert_rounded(const machine *m, const zero_gemm *half, const char *got,
                           const float *want)
{
    const size_t size = zero_type_size(half->c_type);
    char row[1 << 16];
    for (int64_t i = 0; i < half->m; i++) {
        const char *end = got + size * (size_t)((i + 1) * half->ldc);
        memset(row, 0xff, sizeof row);
        assert_true(size * (size_t)half->ldc <= sizeof row);
        zero_convert(ZERO_FP32, half->c_type, half->n, want + i * half->ldc, row);
        if (memcmp(end - size * (size_t)half->ldc, row, size * (size_t)half->ldc) != 0)
            fail_msg("%s, %lld x %lld x %lld, %d slices, types %d %d %d: row %lld",
                     m->kernels ? m->kernels->name : "BLAS", (long long)half->m,
                     (long long)half->n, (long long)half->k, half->slices, half->a_type,
                     half->b_type, half->c_type, (long long)i);
    }
}

/* BLAS has none of these products, and its own would have other bits: one slice is by our kernels. */
static void check_product(test_pool *pool, machine *m, product x, int threads)
{
    if (!m->kernels) x.wide.slices = (int)zero_max(x.wide.slices, 1);
    const float *want = computed(pool, m, &x.wide, 1);
    assert_rounded(m, &x.half, computed(pool, m, &x.half, threads), want);
    x.half.c_type = ZERO_FP32; /* gradients of weights, logits */
    assert_rounded(m, &x.half, computed(pool, m, &x.half, threads), want);
    x.half.c_type = x.half.a_type, x.half.a_type = ZERO_FP32, x.half.a = x.wide.a;
    assert_rounded(m, &x.half, computed(pool, m, &x.half, threads), want);
}

/* Kernels for bf16 have no factors of fp16. */
static void check(const int64_t size[3], int flags, int slices, int parts, int threads)
{
    for (size_t t = 0; t < COUNT(halves); t++) {
        void *pool;
        machine m[ALL_MACHINES];
        assert_int_equal(test_pool_make(&pool), 0);
        const int n = make_machines(pool, m);
        product x = make_product(pool, size, flags, halves[t]);
        x.half.slices = x.wide.slices = slices;
        x.half.slice_parts = x.wide.slice_parts = parts;
        for (int i = 0; i < n; i++)
            if (!rounds(&m[i]) || halves[t] == ZERO_BF16)
                check_product(pool, &m[i], x, threads);
        test_pool_free(&pool);
    }
}

/* ---- laws ---- */

TEST(all_sizes_from_1_to_70_have_the_bits_of_floats)
{
    for (int64_t s = 1; s <= 70; s += TEST_SHARE(6)) {
        const int64_t sizes[][3] = {{s, 33, 35}, {31, s, 17}, {5, 34, s}};
        for (int i = 0; i < 3; i++) check(sizes[i], (int)((s + i) % FLAGS), 0, 0, 1);
    }
}

/* Several blocks of m, n and k; sums that wait for all columns, and for some; an empty sum. */
TEST(sums_of_several_blocks_are_rounded_once)
{
    const int64_t sizes[][3] = {{517, 35, 769},   {40, 1025, 65},  {3, 7, 2051},
                                {16, 32, 0},      {97, 129, 1000}, {300, 700, 3000},
                                {200, 3000, 900}, {37, 41, 9000}};
    for (size_t s = 0; s < COUNT(sizes); s++) check(sizes[s], (int)s % FLAGS, 0, 0, 1);
    check(sizes[4], A_TRANSPOSED | B_TRANSPOSED, 0, 0, 1);
    check(sizes[5], A_TRANSPOSED, 0, 0, 1);
}

TEST(threads_have_the_bits_of_one)
{
    const int64_t sizes[][3] = {
        {97, 129, 1000}, {130, 300, 2000}, {2, 3, 40}, {1, 500, 40}};
    for (size_t s = 0; s < COUNT(sizes); s++) {
        check(sizes[s], (int)s % FLAGS, 0, 0, THREADS);
        check(sizes[s], (int)s % FLAGS, 4, 1, THREADS);
    }
}

/* Groups of slices, slices one by one, pieces of several parts. */
TEST(slices_are_rounded_when_all_are_added)
{
    const struct {
        int64_t m, n, piece;
        int slices, parts;
    } cases[] = {{37, 45, 7, 4, 3},    {33, 67, 32, 8, 1},    {5, 3, 50, 3, 1},
                 {13, 33, 800, 4, 1},  {25, 40, 300, 4, 3},   {13, 33, 20000, 4, 1},
                 {530, 40, 200, 4, 1}, {270, 130, 390, 8, 1}, {30, 500, 768, 4, 1}};
    for (size_t s = 0; s < COUNT(cases); s++) {
        const int64_t k = cases[s].piece * cases[s].slices * cases[s].parts;
        const int64_t size[3] = {cases[s].m, cases[s].n, k};
        check(size, (int)s % FLAGS, cases[s].slices, cases[s].parts, 1);
    }
}

/* Sizes whose rows, or columns, do not fit the scratch at one time, too. */
TEST(products_of_few_rows_have_the_bits_of_floats)
{
    const int64_t sizes[][3] = {{1, 1, 1},      {1, 70, 33},    {2, 513, 17}, {8, 1100, 5},
                                {5, 31, 700},   {1, 16, 0},     {17, 40, 64}, {3, 9000, 40},
                                {4, 40, 90000}, {700, 90, 1200}};
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (int slices = 0; slices <= 4; slices += 4)
            for (int threads = 1; threads <= THREADS; threads += 2) {
                machine m;
                void *pool;
                assert_int_equal(test_pool_make(&pool), 0);
                add_machine(pool, &m, zero_packed_at(0));
                const int flags = slices || s % 2 ? 0 : B_TRANSPOSED;
                product x = make_product(pool, sizes[s], flags | (s % 3 ? 0 : STRIDES),
                                         halves[s / 2 % 2]);
                x.half.few_rows = x.wide.few_rows = true;
                x.half.slices = x.wide.slices = sizes[s][2] % 4 == 0 ? slices : 0;
                check_product(pool, &m, x, threads);
                test_pool_free(&pool);
            }
    (void)state;
}
