/* Products by the oracle, by BLAS, by each packed kernel that this machine runs and as few rows: how
 * they may be cut, and what kernels promise. With slices their sum over k is a tree: any subtree has
 * the bits of a product of it alone. That all are near the oracle: test_operations.c. */
#include "support/calls.h"
#include "support/share.h"

#include "base/half.h"
#include "base/tree.h"
#include "base/type.h"
#include "math/cpu_state.h"

#define ALL_MACHINES (ZERO_PACKED_VARIANTS + 3)

/* kernels NULL: the oracle, or the cpu backend with BLAS or for few rows. */
typedef struct {
    site at;
    const zero_packed_kernels *kernels;
    bool is_few;
} machine;

enum { ORACLE, BLAS, FEW, PACKED }; /* the first packed one */

/* All products use them; NULL: BLAS. */
static int make_machines(test_pool *pool, machine m[ALL_MACHINES])
{
    static char none[1];
    int n = 0;
    for (; n < PACKED || zero_packed_at(n - PACKED); n++) {
        m[n] = (machine){.kernels = n < PACKED ? NULL : zero_packed_at(n - PACKED)};
        m[n].is_few = n == FEW;
        m[n].at =
            host_site(m[n].kernels  ? m[n].kernels->name
                      : n == ORACLE ? "naive"
                                    : "cpu",
                      n == ORACLE ? &zero_backend_naive : &zero_backend_cpu, pool, none, 1);
        if (n == ORACLE) continue;
        m[n].at.math.state[ZERO_CPU_FP32_PRODUCTS] = m[n].kernels;
        m[n].at.math.state[ZERO_CPU_BF16_PRODUCTS] = m[n].kernels;
    }
    assert_true(n > PACKED);
    return n;
}

static bool rounds(const machine *m)
{
    return m->kernels && m->kernels->type == ZERO_BF16;
}

/* ---- products ---- */

typedef struct {
    int64_t m, n, piece;
    int slices, parts;
} size;

/* flags: 1 a transposed, 2 b transposed, 4 strides are longer than rows, 8 each of several parts is
 * longer than the one before */
typedef struct {
    size size;
    int flags;
    zero_type b_type;
} kind;

static const zero_type types[] = {ZERO_FP32, ZERO_BF16, ZERO_FP16};

static bool has_kind(const machine *m, const kind *x)
{
    return !(rounds(m) && x->b_type == ZERO_FP16);
}

/* The numbers of a slice in a part. */
static int64_t piece_of(const kind *x, int part)
{
    return x->size.piece + (x->flags & 8 ? 5 * part : 0);
}

static zero_gemm describe(const kind *x, int slices)
{
    const size *s = &x->size;
    zero_gemm g = {.transpose_a = x->flags & 1, .transpose_b = x->flags & 2};
    g.m = s->m, g.n = s->n;
    g.slices = slices, g.slice_parts = s->parts, g.b_type = x->b_type;
    for (int i = 0; i < s->parts; i++) {
        if (x->flags & 8) g.part[i] = slices * piece_of(x, i);
        g.k += slices * piece_of(x, i);
    }
    int64_t pad = x->flags & 4 ? 3 : 0;
    g.lda = (g.transpose_a ? g.m : g.k) + pad;
    g.ldb = (g.transpose_b ? g.k : g.n) + 2 * pad;
    g.ldc = g.n + pad;
    return g;
}

static int64_t len_a(const zero_gemm *g)
{
    return g->lda * (g->transpose_a ? g->k : g->m);
}

static int64_t len_b(const zero_gemm *g)
{
    return g->ldb * (g->transpose_b ? g->n : g->k);
}

static zero_gemm make_product(test_pool *pool, const kind *x)
{
    zero_gemm g = describe(x, x->size.slices);
    const float *b = test_floats(pool, len_b(&g));
    void *typed = test_bytes(pool, len_b(&g) * (int64_t)sizeof(float));
    zero_convert(ZERO_FP32, x->b_type, len_b(&g), b, typed);
    g.a = test_floats(pool, len_a(&g)), g.b = typed;
    return g;
}

static void multiply(machine *m, zero_gemm g)
{
    char none[1];
    g.few_rows = m->is_few;
    if (rounds(m)) g.factors = ZERO_BF16;
    m->at.ops->gemm(&m->at.math, &g);
    m->at.save(&m->at, none, 0); /* the scratch was large enough */
}

/* c; what lies between its rows stays NaN. */
static float *computed(test_pool *pool, machine *m, zero_gemm g)
{
    float *c = test_bytes(pool, g.m * g.ldc * (int64_t)sizeof *c);
    g.c = memset(c, 0xff, (size_t)(g.m * g.ldc) * sizeof *c);
    multiply(m, g);
    for (int64_t i = 0; i < g.m; i++)
        for (int64_t j = 0; j < g.ldc; j++)
            assert_true((isnan(c[i * g.ldc + j]) != 0) == (j >= g.n));
    return c;
}

/* The factors of slices first .. first + count - 1, as a rank has them. */
static zero_gemm cut_out(test_pool *pool, const kind *x, const zero_gemm *whole, int first,
                         int count)
{
    zero_gemm g = describe(x, count);
    int64_t part = 0, in_part = 0, begin = 0; /* where the part begins in the whole */
    float *a = test_bytes(pool, len_a(&g) * (int64_t)sizeof *a);
    void *b = test_bytes(pool, len_b(&g) * (int64_t)sizeof(float));
    for (int64_t p = 0; p < g.k; p++, in_part++) {
        if (in_part == count * piece_of(x, (int)part)) {
            begin += whole->slices * piece_of(x, (int)part++);
            in_part = 0;
        }
        const int64_t q = begin + first * piece_of(x, (int)part) + in_part;
        for (int64_t i = 0; i < g.m; i++)
            a[g.transpose_a ? p * g.lda + i : i * g.lda + p] =
                ((const float *)
                     whole->a)[g.transpose_a ? q * whole->lda + i : i * whole->lda + q];
        for (int64_t j = 0; j < g.n; j++) {
            int64_t to = g.transpose_b ? j * g.ldb + p : p * g.ldb + j;
            int64_t from = g.transpose_b ? j * whole->ldb + q : q * whole->ldb + j;
            memcpy(zero_type_to(g.b_type, b, to), zero_type_at(g.b_type, whole->b, from),
                   zero_type_size(g.b_type));
        }
    }
    g.a = a, g.b = b;
    return g;
}

static void assert_rows(const machine *m, const kind *x, const char *of, const float *got,
                        const float *want)
{
    const zero_gemm g = describe(x, 1);
    for (int64_t i = 0; i < g.m; i++)
        if (memcmp(got + i * g.ldc, want + i * g.ldc, (size_t)g.n * sizeof *got) != 0)
            fail_msg("%s, few %d, %lld x %lld, %d slices of %d x %lld, flags %d, %s: row "
                     "%lld",
                     m->at.name, m->is_few, (long long)g.m, (long long)g.n, x->size.slices,
                     x->size.parts, (long long)x->size.piece, x->flags, of, (long long)i);
}

/* ---- cuts ---- */

/* `ranks` products of neighbouring slices, added along the tree, are the whole. */
static void check_ranks(test_pool *pool, machine *m, const kind *x, const zero_gemm *whole,
                        int ranks)
{
    zero_tree_term terms[16];
    const float *want = computed(pool, m, *whole);
    const int each = x->size.slices / ranks;
    for (int r = 0; r < ranks; r++) {
        zero_gemm part = cut_out(pool, x, whole, r * each, each);
        terms[r] = (zero_tree_term){computed(pool, m, part), ZERO_FP32, r, 1};
    }
    float *sum = test_bytes(pool, whole->m * whole->ldc * (int64_t)sizeof *sum);
    zero_tree_sum(ranks, terms, whole->m * whole->ldc, ZERO_FP32, sum, false);
    char of[32];
    snprintf(of, sizeof of, "%d ranks", ranks);
    assert_rows(m, x, of, sum, want);
}

static bool is_subtree(int slices)
{
    return (slices & (slices - 1)) == 0;
}

/* By machine `first` and those after it. Each kind has a pool of its own: one would overflow. */
static void check_all_ranks(const kind *x, int first)
{
    void *pool;
    machine m[ALL_MACHINES];
    assert_int_equal(test_pool_make(&pool), 0);
    int n = make_machines(pool, m);
    const zero_gemm whole = make_product(pool, x);
    for (int i = first; i < n; i++)
        for (int ranks = 2; ranks <= x->size.slices; ranks++)
            if (x->size.slices % ranks == 0 && is_subtree(x->size.slices / ranks) &&
                has_kind(&m[i], x))
                check_ranks(pool, &m[i], x, &whole, ranks);
    test_pool_free(&pool);
}

/* Edges of tiles; pieces that begin and end within AMX tiles, and those that do not. */
TEST(ranks_that_add_along_the_tree_have_the_bits_of_one)
{
    const size sizes[] = {{37, 45, 7, 4, 3},  {33, 67, 32, 8, 1},  {5, 3, 50, 3, 1},
                          {24, 64, 64, 6, 3}, {13, 33, 16, 12, 3}, {40, 70, 192, 4, 1},
                          {64, 96, 1, 16, 1}, {31, 40, 96, 2, 3},  {3, 90, 37, 4, 1}};
    for (size_t s = 0; s < COUNT(sizes); s++)
        for (int flags = 0; flags < 16; flags += TEST_SHARE(3)) {
            kind x = {sizes[s], flags, types[((size_t)flags + s) % COUNT(types)]};
            check_all_ranks(&x, ORACLE);
        }
}

/* Slices of several blocks of k, with and without room to pack one at once; buffers; groups whose
 * rows and columns are cut otherwise than those of one slice. The oracle would be slow. */
TEST(long_slices_and_many_rows_keep_the_bits)
{
    const size sizes[] = {{13, 33, 800, 4, 1},   {25, 40, 300, 4, 3},
                          {13, 33, 20000, 4, 1}, {530, 40, 200, 4, 1},
                          {30, 500, 768, 4, 1},  {270, 130, 390, 8, 1}};
    for (size_t s = 0; s < COUNT(sizes); s += TEST_SHARE(2)) {
        kind x = {sizes[s], s % 2 ? 2 : 0, s % 3 ? ZERO_BF16 : ZERO_FP32};
        check_all_ranks(&x, BLAS);
    }
}

/* In four, at a row and a column: the parts are planned otherwise. */
TEST(a_cut_of_rows_or_columns_keeps_the_bits)
{
    static const struct {
        kind of;
        int64_t row, col;
    } cuts[] = {{{{530, 1050, 1024, 1, 1}, 0, ZERO_FP32}, 1, 1049},
                {{{530, 1050, 1024, 1, 1}, 3, ZERO_BF16}, 529, 31},
                {{{530, 1050, 1024, 1, 1}, 1, ZERO_FP32}, 512, 538},
                {{{530, 290, 390, 4, 3}, 2, ZERO_BF16}, 17, 101},
                {{{5, 611, 203, 1, 1}, 0, ZERO_FP16}, 3, 77},
                {{{5, 611, 203, 1, 1}, 2, ZERO_FP32}, 4, 377},
                {{{44, 90, 37, 4, 1}, 2, ZERO_FP16}, 1, 16},
                {{{44, 90, 37, 4, 1}, 4, ZERO_BF16}, 43, 17}};
    machine m[ALL_MACHINES];
    int n = make_machines(*state, m);
    for (size_t s = 0; s < COUNT(cuts); s++) {
        const kind *x = &cuts[s].of;
        const zero_gemm g = make_product(*state, x);
        const int64_t rows[] = {0, cuts[s].row, g.m}, cols[] = {0, cuts[s].col, g.n};
        for (int i = BLAS; i < n; i++) {
            if (!has_kind(&m[i], x)) continue;
            const float *want = computed(*state, &m[i], g);
            float *got = test_copy(*state, g.m * g.ldc, want);
            memset(got, 0, (size_t)(g.m * g.ldc) * sizeof *got);
            for (int k = 0; k < 4; k++) {
                const int64_t at = rows[k / 2], from = cols[k % 2];
                zero_gemm part = g;
                part.m = rows[k / 2 + 1] - at, part.n = cols[k % 2 + 1] - from;
                part.a = (const float *)g.a + at * (g.transpose_a ? 1 : g.lda);
                part.b = zero_type_at(g.b_type, g.b, from * (g.transpose_b ? g.ldb : 1));
                part.c = got + at * g.ldc + from;
                multiply(&m[i], part);
            }
            assert_rows(&m[i], x, "cut in four", got, want);
        }
    }
}

/* In bf16 accumulating continues the sum: a k cut at the end of an AMX tile has the bits of the
 * whole. In fp32 each block of k is summed separately, 768 at most at a time. */
TEST(a_continued_sum_has_the_bits_of_one)
{
    const kind x = {{40, 50, 1100, 1, 1}, 1, ZERO_FP32};
    machine m[ALL_MACHINES];
    int n = make_machines(*state, m);
    zero_gemm g = make_product(*state, &x);
    for (int i = PACKED; i < n; i++) {
        const int64_t cut = rounds(&m[i]) ? 96 : 1100 / 2;
        const float *whole = computed(*state, &m[i], g);
        zero_gemm part = g;
        part.slices = part.slice_parts = 0, part.k = cut;
        part.c = test_copy(*state, g.m * g.ldc, whole);
        multiply(&m[i], part);
        part.a = (const float *)g.a + cut * g.lda, part.k = 1100 - cut;
        part.b = (const float *)g.b + cut * g.ldb, part.accumulate = true;
        multiply(&m[i], part);
        assert_rows(&m[i], &x, "continued", part.c, whole);
    }
}

/* The oracle's tree is that of base/tree.h: with k = slices each is one product. */
TEST(the_oracle_adds_in_fp32_along_the_tree)
{
    machine m[ALL_MACHINES];
    make_machines(*state, m);
    for (int slices = 2; slices < 16; slices++) {
        float a[16], b[16], products[16], c, want;
        zero_tree_term terms[16];
        for (int i = 0; i < slices; i++) {
            a[i] = 1.0f + 1e-3f * (float)(i * i), b[i] = 1.0f / (float)(3 + i);
            products[i] = (float)((double)a[i] * (double)b[i]);
            terms[i] = (zero_tree_term){&products[i], ZERO_FP32, i, 1};
        }
        multiply(
            &m[ORACLE],
            (zero_gemm){
                .m = 1, .n = 1, .k = slices, .slices = slices, .a = a, .b = b, .c = &c});
        zero_tree_sum(slices, terms, 1, ZERO_FP32, &want, false);
        assert_memory_equal(&c, &want, sizeof c);
    }
}

/* Where there are kernels, 0 and 1 are one product; empty ones are zeros. */
TEST(one_slice_is_a_plain_product)
{
    machine m[ALL_MACHINES];
    int n = make_machines(*state, m);
    const kind x = {{37, 45, 900, 1, 3}, 0, ZERO_BF16}, empty = {{37, 45, 0, 4, 3}, 0, 0};
    zero_gemm one = make_product(*state, &x), none = one, g = make_product(*state, &empty);
    none.slices = none.slice_parts = 0;
    for (int i = PACKED; i < n; i++)
        assert_rows(&m[i], &x, "0 slices", computed(*state, &m[i], none),
                    computed(*state, &m[i], one));
    for (int i = 0; i < n; i++)
        for (int64_t j = 0; j < g.n; j++)
            assert_true(computed(*state, &m[i], g)[j] == 0.0f);
    g.m = g.n = 0;
    for (int i = 0; i < n; i++) multiply(&m[i], g);
}

/* ---- numbers ---- */

/* 0 1 denormal tie large infinite NaN, met by ones: rounded as zero_to_bf16 does. */
TEST(factors_are_rounded_as_half_h_says)
{
    const float odd[] = {0.0f,        1.0f,        1e-39f,         -1e-39f,  1.00390625f,
                         1.01171875f, 1.00390637f, 3.4e38f,        INFINITY, NAN,
                         -INFINITY,   -2.5f,       1.17549421e-38f};
    enum { ODD = COUNT(odd) };
    machine m[ALL_MACHINES];
    int n = make_machines(*state, m);
    for (int i = PACKED; i < n; i++)
        for (int side = 0; side < 2; side++)
            for (int flags = 0; flags < 4; flags++) {
                const float one = 1.0f;
                float c[ODD];
                zero_gemm g = {.m = 1, .n = 1, .k = 1, .c = c};
                g.transpose_a = flags & 1, g.transpose_b = flags & 2;
                g.a = side ? &one : odd, g.b = side ? odd : &one;
                *(side ? &g.n : &g.m) = ODD;
                multiply(&m[i], g);
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
    const kind x = {{37, 41, 45, 1, 1}, 0, ZERO_FP32};
    float c[37 * 41];
    machine m[ALL_MACHINES];
    int n = make_machines(*state, m);
    zero_gemm g = make_product(*state, &x);
    float *a = test_copy(*state, len_a(&g), g.a), *b = test_copy(*state, len_b(&g), g.b);
    a[3 * 45 + 44] = NAN, b[44 * 41 + 5] = INFINITY;
    g.a = a, g.b = b, g.c = c;
    for (int i = PACKED; i < n; i++) {
        multiply(&m[i], g);
        for (int e = 0; e < 37 * 41; e++) {
            assert_true((isnan(c[e]) != 0) == (e / 41 == 3));
            assert_true((isinf(c[e]) != 0) == (e / 41 != 3 && e % 41 == 5));
        }
    }
}

/* Without kernels for bf16. */
TEST(weights_are_widened_where_factors_cannot_be_bf16)
{
    const kind x = {{600, 1100, 600, 1, 1}, 0, ZERO_BF16};
    machine m[ALL_MACHINES];
    make_machines(*state, m);
    zero_gemm g = make_product(*state, &x);
    g.slices = g.slice_parts = 0;
    const float *plain = computed(*state, &m[BLAS], g);
    g.factors = ZERO_BF16;
    assert_rows(&m[BLAS], &x, "bf16", computed(*state, &m[BLAS], g), plain);
}

static int polls_of(test_pool *pool, machine *m, zero_gemm g)
{
    int polls = 0;
    m->at.math.poll = test_count_poll, m->at.math.poll_arg = &polls;
    computed(pool, m, g);
    return polls;
}

/* One block of the largest size, or two blocks each along m, n and k. Twice the rows of half the
 * length fill as much scratch, so b is packed once. */
TEST(blocks_poll_and_the_largest_fit_the_scratch)
{
    machine m[ALL_MACHINES];
    int n = make_machines(*state, m);
    for (int i = PACKED; i < n; i++) {
        const int64_t rows = m[i].kernels->block_m, cols = m[i].kernels->block_n,
                      k = m[i].kernels->block_k;
        const kind one = {{rows, cols, k, 1, 1}, 0, 0},
                   eight = {{2 * rows + 1, cols + 1, k + 1, 1, 1}, 0, 0},
                   shorter = {{2 * rows, cols, k / 2, 1, 1}, 0, 0};
        assert_int_equal(polls_of(*state, &m[i], make_product(*state, &one)), 1);
        assert_int_equal(polls_of(*state, &m[i], make_product(*state, &eight)), 8);
        assert_int_equal(polls_of(*state, &m[i], make_product(*state, &shorter)), 1);
    }
}

/* As often as a whole product of the largest blocks, or nearly: communication waits for it. */
TEST(slices_poll_between_blocks)
{
    machine m[ALL_MACHINES];
    int n = make_machines(*state, m);
    const int64_t pieces[] = {40, 400, 2000};
    for (size_t s = 0; s < COUNT(pieces); s++) {
        const kind x = {{520, 200, pieces[s], 4, 1}, 0, ZERO_BF16};
        const zero_gemm g = make_product(*state, &x);
        for (int i = PACKED; i < n; i += TEST_SHARE(2)) {
            const zero_packed_kernels *k = m[i].kernels;
            const int64_t block = k->block_m * k->block_n * k->block_k;
            const int polls = polls_of(*state, &m[i], g);
            if (polls < 1 ||
                1.1 * (double)polls * (double)block < (double)(g.m * g.n * g.k))
                fail_msg("%s: %d polls", m[i].at.name, polls);
        }
    }
}
