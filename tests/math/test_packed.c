/* Packed products by each kernel that this machine runs: against the oracle (those in bf16 on
 * factors rounded one by one), and laws that hold for all sizes. */
#include "support/math_test.h"
#include "support/share.h"

#include "base/half.h"
#include "math/cpu_state.h"

/* Sums of products of bf16 numbers in fp32, against those in double, relative to |a||b|: up
 * to a thousand roundings of 6e-8, mostly cancelling. A wrong term is off by 1e-3 or more. */
#define TOLERANCE 1e-6

#define GUARD 64 /* bytes before and after the memory that a product may write */

typedef struct {
    const zero_packed_kernels *kernels;
    zero_math math;
    char *scratch; /* with its guards */
    size_t bytes;
} machine;

/* All products use them; NULL: BLAS. */
static void use_kernels(machine *m, const zero_packed_kernels *kernels)
{
    m->math.state[ZERO_CPU_FP32_PRODUCTS] = kernels;
    m->math.state[ZERO_CPU_BF16_PRODUCTS] = kernels;
}

static int make_machines(test_pool *pool, machine m[ZERO_PACKED_VARIANTS])
{
    const zero_packed_kernels *kernels;
    int n = 0;
    for (int i = 0; (kernels = zero_packed_at(i)); i++, n++) {
        m[i] = (machine){.kernels = kernels};
        m[i].bytes = (size_t)zero_math_scratch() * sizeof(float);
        m[i].scratch = test_bytes(pool, (int64_t)m[i].bytes + 2 * GUARD);
        memset(m[i].scratch, 0xff, m[i].bytes + 2 * GUARD); /* NaN */
        assert_ok(zero_backend_cpu.open(&m[i].math));
        use_kernels(&m[i], kernels);
        m[i].math.scratch = (float *)(void *)(m[i].scratch + GUARD);
    }
    assert_true(n >= 1);
    return n;
}

static void assert_guarded(const machine *m)
{
    for (int i = 0; i < GUARD; i++) {
        assert_true(m->scratch[i] == (char)0xff);
        assert_true(m->scratch[GUARD + m->bytes + (size_t)i] == (char)0xff);
    }
}

/* One product; its factors as given, and rounded to bf16 one by one. */
typedef struct {
    zero_gemm g;
    int64_t len_a, len_b, len_c; /* with what lies between the rows */
    float *a, *b, *c, *rounded_a, *rounded_b;
    uint16_t *half_b; /* aligned to two bytes and no more */
} product;

static float *round_all(test_pool *pool, int64_t n, const float *x)
{
    float *y = test_bytes(pool, n * (int64_t)sizeof *y);
    for (int64_t i = 0; i < n; i++) y[i] = zero_from_bf16(zero_to_bf16(x[i]));
    return y;
}

/* flags: 1 a transposed, 2 b transposed, 4 accumulates, 8 b is bf16 */
static product make_product(test_pool *pool, const int64_t size[3], int flags, int64_t pad)
{
    product x = {.g = {.m = size[0], .n = size[1], .k = size[2], .factors = ZERO_BF16}};
    zero_gemm *g = &x.g;
    g->transpose_a = flags & 1, g->transpose_b = flags & 2, g->accumulate = flags & 4;
    int64_t rows_a = g->transpose_a ? g->k : g->m, cols_a = g->transpose_a ? g->m : g->k;
    int64_t rows_b = g->transpose_b ? g->n : g->k, cols_b = g->transpose_b ? g->k : g->n;
    g->lda = cols_a + pad, g->ldb = cols_b + 2 * pad, g->ldc = g->n + 3 * pad;
    x.len_a = rows_a * g->lda, x.len_b = rows_b * g->ldb, x.len_c = g->m * g->ldc;
    x.a = test_floats(pool, x.len_a), x.b = test_floats(pool, x.len_b);
    x.c = test_floats(pool, x.len_c);
    x.rounded_a = round_all(pool, x.len_a, x.a);
    x.rounded_b = round_all(pool, x.len_b, x.b);
    x.half_b = (uint16_t *)test_bytes(pool, 2 * (x.len_b + 1)) + 1;
    for (int64_t i = 0; i < x.len_b; i++) x.half_b[i] = zero_to_bf16(x.b[i]);
    g->a = x.a, g->b = x.b;
    if (flags & 8) g->b = x.half_b, g->b_type = ZERO_BF16;
    return x;
}

static bool rounds(const machine *m)
{
    return m->kernels->type == ZERO_BF16;
}

/* The oracle's c, from factors as the kernel rounds them. */
static float *expected(test_pool *pool, const machine *m, const product *x)
{
    zero_math slow = {0};
    zero_gemm g = x->g;
    if (rounds(m)) g.a = x->rounded_a, g.b = x->rounded_b, g.b_type = ZERO_FP32;
    g.c = test_copy(pool, x->len_c, x->c);
    zero_backend_naive.gemm(&slow, &g);
    return g.c;
}

static float *computed(test_pool *pool, const machine *m, const product *x)
{
    zero_gemm g = x->g;
    g.c = test_copy(pool, x->len_c, x->c);
    if (!g.accumulate) /* must not be read */
        for (int64_t i = 0; i < g.m; i++)
            for (int64_t j = 0; j < g.n; j++) ((float *)g.c)[i * g.ldc + j] = NAN;
    zero_backend_cpu.gemm(&m->math, &g);
    assert_guarded(m);
    return g.c;
}

static double length(int64_t n, const float *x, int64_t step)
{
    double sum = 0.0;
    for (int64_t i = 0; i < n; i++) sum += (double)x[i * step] * (double)x[i * step];
    return sqrt(sum);
}

static void assert_near(const product *x, const float *got, const float *want)
{
    const zero_gemm *g = &x->g;
    for (int64_t i = 0; i < g->m; i++) {
        double a = g->transpose_a ? length(g->k, x->rounded_a + i, g->lda)
                                  : length(g->k, x->rounded_a + i * g->lda, 1);
        for (int64_t j = 0; j < g->ldc; j++) {
            int64_t at = i * g->ldc + j;
            double error = fabs((double)got[at] - (double)want[at]), b = 0.0;
            if (j < g->n)
                b = g->transpose_b ? length(g->k, x->rounded_b + j * g->ldb, 1)
                                   : length(g->k, x->rounded_b + j, g->ldb);
            double size = g->accumulate && j < g->n ? fabs((double)x->c[at]) : 0.0;
            if (!(error <= TOLERANCE * (a * b + size)))
                fail_msg("%lld x %lld x %lld, c[%lld,%lld]: %g, not %g", (long long)g->m,
                         (long long)g->n, (long long)g->k, (long long)i, (long long)j,
                         (double)got[at], (double)want[at]);
        }
    }
}

/* Every n-th combination of flags. Each size has a pool of its own: one pool would overflow. */
static void check_sizes(const int64_t size[3], int every)
{
    for (int flags = 0; flags < 16; flags += every) {
        void *pool;
        machine m[ZERO_PACKED_VARIANTS];
        assert_int_equal(test_pool_make(&pool), 0);
        int n = make_machines(pool, m);
        product x = make_product(pool, size, flags, 5 * (flags % 3));
        const float *want[2] = {NULL, NULL}; /* in fp32, in bf16 */
        for (int i = 0; i < n; i++) {
            const float **w = &want[rounds(&m[i])];
            if (!*w) *w = expected(pool, &m[i], &x);
            assert_near(&x, computed(pool, &m[i], &x), *w);
        }
        test_pool_free(&pool);
    }
}

TEST(all_sizes_from_1_to_70_agree_with_the_oracle)
{
    for (int64_t s = 1; s <= 70; s += TEST_SHARE(7)) {
        const int64_t others[][3] = {{s, 33, 35}, {31, s, 17}, {5, 34, s}};
        for (int i = 0; i < 3; i++) check_sizes(others[i], 1);
    }
}

/* Several blocks of m, k and n: of all kernels at most 516, 768 and 832. */
TEST(larger_sizes_and_empty_sums_agree_with_the_oracle)
{
    const int64_t sizes[][3] = {
        {517, 35, 769}, {40, 1025, 65}, {3, 7, 2051}, {16, 32, 0}, {97, 129, 1000}};
    for (size_t s = 0; s < COUNT(sizes); s++) check_sizes(sizes[s], TEST_SHARE(5));
}

/* fp32 weights and the same weights in bf16; c zero and added to, or not. */
TEST(factors_in_fp32_and_in_bf16_give_the_same_bits)
{
    machine m[ZERO_PACKED_VARIANTS];
    int n = make_machines(*state, m);
    for (int i = 0; i < n; i++)
        for (int flags = 0; flags < 8; flags++) {
            product x = make_product(*state, (const int64_t[]){65, 67, 600}, flags, 1);
            x.g.b = rounds(&m[i]) ? x.b : x.rounded_b;
            const float *wide = computed(*state, &m[i], &x);
            x.g.b = x.half_b, x.g.b_type = ZERO_BF16;
            assert_memory_equal(computed(*state, &m[i], &x), wide,
                                (size_t)x.len_c * sizeof *wide);
        }
}

/* Rows from i on and columns from j on of the whole product. */
static zero_gemm part_of(const product *x, int64_t i, int64_t m, int64_t j, int64_t n)
{
    zero_gemm g = x->g;
    g.m = m, g.n = n;
    g.a = (const float *)g.a + i * (g.transpose_a ? 1 : g.lda);
    g.b = (const char *)g.b +
          zero_type_size(g.b_type) * (size_t)(j * (g.transpose_b ? g.ldb : 1));
    g.c = (float *)g.c + i * g.ldc + j;
    return g;
}

static void check_cuts(test_pool *pool, const machine *m, product x)
{
    const int64_t cuts[] = {1, 31, 512, 529};
    const float *whole = computed(pool, m, &x), *c = x.c;
    for (int k = 0; k < 4; k++) {
        int64_t at = cuts[k], row = x.g.m - at, column = x.g.n - at;
        x.g.c = test_copy(pool, x.len_c, c);
        zero_gemm parts[] = {part_of(&x, 0, at, 0, column), part_of(&x, 0, at, column, at),
                             part_of(&x, at, row, 0, at), part_of(&x, at, row, at, column)};
        for (int p = 0; p < 4; p++) zero_backend_cpu.gemm(&m->math, &parts[p]);
        assert_memory_equal(x.g.c, whole, (size_t)x.len_c * sizeof *whole);
    }
}

TEST(a_cut_of_rows_or_columns_gives_the_same_bits)
{
    for (int flags = 0; flags < 16; flags += 3 * TEST_SHARE(5)) {
        void *pool;
        machine m[ZERO_PACKED_VARIANTS];
        assert_int_equal(test_pool_make(&pool), 0);
        int n = make_machines(pool, m);
        product x = make_product(pool, (const int64_t[]){530, 1050, 1024}, flags, 0);
        for (int i = 0; i < n; i++) check_cuts(pool, &m[i], x);
        test_pool_free(&pool);
    }
}

/* In bf16 accumulating continues the sum: a k cut at the end of an AMX tile has the bits of the
 * whole. In fp32 each block of k is summed separately. */
TEST(a_continued_sum_has_the_bits_of_one)
{
    machine m[ZERO_PACKED_VARIANTS];
    int n = make_machines(*state, m);
    for (int i = 0; i < n; i++) {
        const int64_t cut = rounds(&m[i]) ? 96 : 1100 / 2; /* 768 at most at a time */
        product x = make_product(*state, (const int64_t[]){40, 50, 1100}, 1, 0);
        const float *whole = computed(*state, &m[i], &x);
        zero_gemm g = x.g;
        g.c = test_copy(*state, x.len_c, x.c);
        g.k = cut;
        zero_backend_cpu.gemm(&m[i].math, &g);
        g.a = (const float *)g.a + cut * g.lda, g.b = x.b + cut * g.ldb, g.k = 1100 - cut,
        g.accumulate = true;
        zero_backend_cpu.gemm(&m[i].math, &g);
        assert_memory_equal(g.c, whole, (size_t)x.len_c * sizeof *whole);
    }
}

/* 0 1 denormal tie large infinite NaN, met by ones: rounded as zero_to_bf16 does. */
TEST(factors_are_rounded_as_half_h_says)
{
    const float odd[] = {0.0f,        1.0f,        1e-39f,         -1e-39f,  1.00390625f,
                         1.01171875f, 1.00390637f, 3.4e38f,        INFINITY, NAN,
                         -INFINITY,   -2.5f,       1.17549421e-38f};
    enum { ODD = COUNT(odd) };
    machine m[ZERO_PACKED_VARIANTS];
    int n = make_machines(*state, m);
    for (int i = 0; i < n; i++)
        for (int side = 0; side < 2; side++)
            for (int flags = 0; flags < 4; flags++) {
                const float one = 1.0f;
                float c[ODD];
                zero_gemm g = {.factors = ZERO_BF16, .m = 1, .n = 1, .k = 1, .c = c};
                g.transpose_a = flags & 1, g.transpose_b = flags & 2;
                g.a = side ? &one : odd, g.b = side ? odd : &one;
                *(side ? &g.n : &g.m) = ODD;
                zero_backend_cpu.gemm(&m[i].math, &g);
                for (int e = 0; e < ODD; e++) {
                    float want =
                        rounds(&m[i]) ? zero_from_bf16(zero_to_bf16(odd[e])) : odd[e];
                    assert_true(isnan(want) ? isnan(c[e]) != 0 : c[e] == want);
                }
            }
}

/* Row 3 meets a NaN, column 5 an infinity: no other rows and columns change. */
TEST(what_is_not_finite_stays_in_its_row_and_column)
{
    machine m[ZERO_PACKED_VARIANTS];
    int n = make_machines(*state, m);
    for (int i = 0; i < n; i++) {
        product x = make_product(*state, (const int64_t[]){37, 41, 45}, 0, 0);
        x.a[3 * 45 + 44] = NAN;
        x.b[44 * 41 + 5] = INFINITY;
        const float *c = computed(*state, &m[i], &x);
        for (int64_t r = 0; r < 37; r++)
            for (int64_t j = 0; j < 41; j++) {
                assert_true((isnan(c[r * 41 + j]) != 0) == (r == 3));
                assert_true((isinf(c[r * 41 + j]) != 0) == (r != 3 && j == 5));
            }
    }
}

/* One block of the largest size, or two blocks each along m, n and k: half as long, so a block may
 * have twice as many rows. */
TEST(blocks_poll_and_the_largest_fit_the_scratch)
{
    machine m[ZERO_PACKED_VARIANTS];
    int n = make_machines(*state, m), polls = 0;
    for (int i = 0; i < n; i++)
        for (int64_t more = 0; more < 2; more++) {
            const zero_packed_kernels *k = m[i].kernels;
            const int64_t size[] = {(1 + more) * k->block_m + more, k->block_n + more,
                                    k->block_k + more};
            product x = make_product(*state, size, 0, 0);
            m[i].math.poll = test_count_poll, m[i].math.poll_arg = &polls;
            polls = 0;
            computed(*state, &m[i], &x);
            assert_int_equal(polls, more ? 8 : 1);
        }
}

/* Twice the rows of half the length fill as much scratch, so b is packed once. */
TEST(blocks_that_are_shorter_along_k_have_more_rows)
{
    machine m[ZERO_PACKED_VARIANTS];
    int n = make_machines(*state, m), polls = 0;
    for (int i = 0; i < n; i++) {
        const zero_packed_kernels *k = m[i].kernels;
        const int64_t size[] = {2 * k->block_m, k->block_n, k->block_k / 2};
        product x = make_product(*state, size, 0, 0);
        m[i].math.poll = test_count_poll, m[i].math.poll_arg = &polls;
        polls = 0;
        computed(*state, &m[i], &x);
        assert_int_equal(polls, 1);
    }
}

TEST(without_kernels_for_bf16_weights_are_widened)
{
    machine m[ZERO_PACKED_VARIANTS];
    int n = make_machines(*state, m);
    product x = make_product(*state, (const int64_t[]){600, 1100, 600}, 8, 0);
    for (int i = 0; i < n; i++) {
        const float *in_bf16 = computed(*state, &m[i], &x);
        use_kernels(&m[i], NULL);
        const float *widened = computed(*state, &m[i], &x);
        x.g.factors = ZERO_FP32;
        const float *plain = computed(*state, &m[i], &x);
        x.g.factors = ZERO_BF16;
        assert_memory_equal(widened, plain, (size_t)x.len_c * sizeof(float));
        double error = test_error(x.len_c, in_bf16, plain);
        assert_true(rounds(&m[i]) ? error > 1e-5 && error < 1e-2 : error < 1e-5);
    }
}

/* One tile of a kernel, of k numbers. */
typedef struct {
    const zero_packed_kernels *kernels;
    int64_t k;
    void *a, *b; /* packed */
    float c[ZERO_PACKED_TILE];
} one_tile;

static void make_tile(test_pool *pool, const zero_packed_kernels *kernels, one_tile *t)
{
    *t = (one_tile){.kernels = kernels, .k = 5 * zero_max(kernels->depth, 8)};
    const zero_operand a = {
        .data = test_floats(pool, 32 * t->k), .stride = t->k, .along_k = true};
    const zero_operand b = {.data = test_floats(pool, 32 * t->k), .stride = 32};
    t->a = test_bytes(pool, 32 * t->k * (int64_t)sizeof(float));
    t->b = test_bytes(pool, 32 * t->k * (int64_t)sizeof(float));
    kernels->pack_a(&a, kernels->rows, t->k, t->a);
    kernels->pack_b(&b, kernels->cols, t->k, t->b);
    memcpy(t->c, test_floats(pool, ZERO_PACKED_TILE), sizeof t->c);
}

static void multiply(const one_tile *t, bool add, float *c)
{
    t->kernels->begin();
    t->kernels->multiply(t->k, t->a, t->b, add, c, t->kernels->cols);
    t->kernels->end();
}

/* adds_sums: (the sum of a b) + c, rounded once. The tree takes this for an addition. */
TEST(kernels_add_as_they_promise)
{
    const zero_packed_kernels *kernels;
    for (int i = 0; (kernels = zero_packed_at(i)); i++) {
        one_tile t;
        make_tile(*state, kernels, &t);
        const int64_t n = kernels->rows * kernels->cols;
        float sum[ZERO_PACKED_TILE], got[ZERO_PACKED_TILE], want[ZERO_PACKED_TILE];
        multiply(&t, false, sum);
        memcpy(got, t.c, sizeof got);
        multiply(&t, true, got);
        for (int64_t e = 0; e < n; e++) want[e] = sum[e] + t.c[e];
        const bool adds = memcmp(got, want, (size_t)n * sizeof *got) == 0;
        if (adds != kernels->adds_sums) fail_msg("%s: %d", kernels->name, adds);

        memcpy(got, t.c, sizeof got);
        kernels->add(sum, got, kernels->cols);
        assert_same(n, got, want);
    }
}

TEST(parts_of_panels_are_packed_where_they_belong)
{
    const zero_packed_kernels *kernels;
    for (int i = 0; (kernels = zero_packed_at(i)); i++)
        for (int along_k = 0; along_k < 2; along_k++) {
            const int64_t k = 96, cut = 64, lanes = 70;
            const size_t bytes = 96 * 96 * sizeof(float);
            char *whole = test_bytes(*state, (int64_t)bytes);
            char *parts = test_bytes(*state, (int64_t)bytes);
            zero_operand x = {.data = test_floats(*state, k * lanes), .along_k = along_k};
            x.stride = along_k ? k : lanes;
            memset(whole, 0, bytes), memset(parts, 0, bytes);
            kernels->pack_b(&x, lanes, k, whole);
            x.panel_k = k;
            kernels->pack_b(&x, lanes, cut, parts);
            x.data = (const float *)x.data + cut * (along_k ? 1 : lanes), x.panel_at = cut;
            kernels->pack_b(&x, lanes, k - cut, parts);
            assert_memory_equal(parts, whole, bytes);
        }
}
