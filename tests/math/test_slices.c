/* Products whose sum over k is a tree of slices, by the oracle, each packed kernel that this machine
 * runs, and as on a CPU where BLAS multiplies: any subtree has the bits of a product of it alone. */
#include "support/math_test.h"
#include "support/share.h"

#include "base/half.h"
#include "base/tree.h"
#include "math/cpu_state.h"

/* Of the largest result: roundings of sums in fp32. A wrong term is off by 1e-3 or more. */
#define TOLERANCE 5e-6

#define GUARD        64 /* bytes before and after the scratch */
#define ALL_MACHINES (ZERO_PACKED_VARIANTS + 2)

/* kernels NULL: the oracle, or the cpu backend with BLAS. */
typedef struct {
    const char *name;
    const zero_backend *ops;
    const zero_packed_kernels *kernels;
    zero_math math;
    char *scratch;
} machine;

static void add_machine(test_pool *pool, machine *m, const zero_backend *ops,
                        const zero_packed_kernels *kernels)
{
    const int64_t bytes = zero_math_scratch() * (int64_t)sizeof(float) + 2 * GUARD;
    *m = (machine){.ops = ops, .kernels = kernels, .scratch = test_bytes(pool, bytes)};
    m->name = kernels ? kernels->name : ops == &zero_backend_cpu ? "BLAS" : "naive";
    memset(m->scratch, 0xff, (size_t)bytes); /* NaN */
    assert_ok(ops->open(&m->math));
    m->math.scratch = (float *)(void *)(m->scratch + GUARD);
    if (ops != &zero_backend_cpu) return;
    m->math.state[ZERO_CPU_FP32_PRODUCTS] = kernels;
    m->math.state[ZERO_CPU_BF16_PRODUCTS] = kernels;
}

static int make_machines(test_pool *pool, machine m[ALL_MACHINES])
{
    int n = 0;
    add_machine(pool, &m[n++], &zero_backend_naive, NULL);
    add_machine(pool, &m[n++], &zero_backend_cpu, NULL);
    for (int i = 0; zero_packed_at(i); i++)
        add_machine(pool, &m[n++], &zero_backend_cpu, zero_packed_at(i));
    assert_true(n > 2);
    return n;
}

static bool rounds(const machine *m)
{
    return m->kernels && m->kernels->type == ZERO_BF16;
}

static void assert_guarded(const machine *m)
{
    const char *end = m->scratch + GUARD + zero_math_scratch() * (int64_t)sizeof(float);
    for (int i = 0; i < GUARD; i++)
        assert_true(m->scratch[i] == (char)0xff && end[i] == (char)0xff);
}

/* ---- products ---- */

typedef struct {
    int64_t m, n, piece;
    int slices, parts;
} shape;

/* flags: 1 a transposed, 2 b transposed, 4 strides are longer than rows, 8 each of several parts is
 * longer than the one before */
typedef struct {
    shape size;
    int flags;
    zero_type b_type;
} kind;

/* The numbers of a slice in a part. */
static int64_t piece_of(const kind *x, int part)
{
    return x->size.piece + (x->flags & 8 ? 5 * part : 0);
}

static zero_gemm describe(const kind *x, int slices)
{
    const shape *s = &x->size;
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

/* c; what lies between its rows stays NaN. */
static float *computed(test_pool *pool, machine *m, zero_gemm g)
{
    float *c = test_bytes(pool, g.m * g.ldc * (int64_t)sizeof *c);
    memset(c, 0xff, (size_t)(g.m * g.ldc) * sizeof *c);
    g.c = c;
    g.factors = rounds(m) ? ZERO_BF16 : ZERO_FP32;
    m->ops->gemm(&m->math, &g);
    assert_guarded(m);
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
    const size_t size = zero_type_size(g.b_type);
    float *a = test_bytes(pool, len_a(&g) * (int64_t)sizeof *a);
    char *b = test_bytes(pool, len_b(&g) * (int64_t)size);
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
            memcpy(b + size * (size_t)to, (const char *)whole->b + size * (size_t)from,
                   size);
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
            fail_msg("%s, %lld x %lld, %d slices of %d x %lld, flags %d, %s: row %lld",
                     m->name, (long long)g.m, (long long)g.n, x->size.slices, x->size.parts,
                     (long long)x->size.piece, x->flags, of, (long long)i);
}

/* ---- laws ---- */

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

/* By machine `first` and those after it: the oracle, which is slow, is machine 0. */
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
                !(rounds(&m[i]) && x->b_type == ZERO_FP16))
                check_ranks(pool, &m[i], x, &whole, ranks);
    test_pool_free(&pool);
}

static const zero_type types[] = {ZERO_FP32, ZERO_BF16, ZERO_FP16};

/* Edges of tiles; pieces that begin and end within AMX tiles, and those that do not. */
TEST(ranks_that_add_along_the_tree_have_the_bits_of_one)
{
    const shape shapes[] = {{37, 45, 7, 4, 3},  {33, 67, 32, 8, 1},  {5, 3, 50, 3, 1},
                            {24, 64, 64, 6, 3}, {13, 33, 16, 12, 3}, {40, 70, 192, 4, 1},
                            {64, 96, 1, 16, 1}, {31, 40, 96, 2, 3}};
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (int flags = 0; flags < 16; flags += TEST_SHARE(3)) {
            kind x = {shapes[s], flags, types[((size_t)flags + s) % COUNT(types)]};
            check_all_ranks(&x, 0);
        }
}

/* The oracle on the factors as the kernel rounds them. */
static void check_oracle(const kind *x)
{
    void *pool;
    machine m[ALL_MACHINES];
    assert_int_equal(test_pool_make(&pool), 0);
    int n = make_machines(pool, m);
    zero_gemm g = make_product(pool, x);
    const zero_type type =
        x->b_type; /* bf16: rounding changes nothing in b, and a is rounded */
    float *a = test_copy(pool, len_a(&g), g.a);
    for (int64_t i = 0; type == ZERO_BF16 && i < len_a(&g); i++)
        a[i] = zero_from_bf16(zero_to_bf16(a[i]));
    g.a = a;
    const float *want = computed(pool, &m[0], g);
    for (int i = 1; i < n; i++) {
        if (rounds(&m[i]) && type != ZERO_BF16) continue;
        const float *got = computed(pool, &m[i], g);
        if (!(test_error(g.m * g.ldc, got, want) < TOLERANCE))
            fail_msg("%s, flags %d: %g", m[i].name, x->flags,
                     test_error(g.m * g.ldc, got, want));
    }
    test_pool_free(&pool);
}

TEST(products_in_slices_agree_with_the_oracle)
{
    const shape shapes[] = {{37, 45, 7, 4, 3}, {33, 67, 32, 8, 1}, {70, 130, 20, 6, 3},
                            {5, 3, 50, 3, 1},  {1, 1, 1, 2, 1},    {13, 33, 800, 4, 1}};
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (int flags = 0; flags < 16; flags++)
            for (size_t t = 0; t < COUNT(types); t++) {
                kind x = {shapes[s], flags, types[t]};
                check_oracle(&x);
            }
}

/* Slices of several blocks of k, with and without room to pack one at once; buffers; groups whose
 * rows and columns are cut otherwise than those of one slice. */
TEST(long_slices_and_many_rows_keep_the_bits)
{
    const shape shapes[] = {{13, 33, 800, 4, 1},   {25, 40, 300, 4, 3},
                            {13, 33, 20000, 4, 1}, {530, 40, 200, 4, 1},
                            {30, 500, 768, 4, 1},  {270, 130, 390, 8, 1}};
    for (size_t s = 0; s < COUNT(shapes); s += TEST_SHARE(2)) {
        kind x = {shapes[s], s % 2 ? 2 : 0, s % 3 ? ZERO_BF16 : ZERO_FP32};
        check_all_ranks(&x, 1);
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
        zero_gemm g = {
            .m = 1, .n = 1, .k = slices, .slices = slices, .a = a, .b = b, .c = &c};
        m[0].ops->gemm(&m[0].math, &g);
        zero_tree_sum(slices, terms, 1, ZERO_FP32, &want, false);
        assert_memory_equal(&c, &want, sizeof c);
    }
}

/* Where there are kernels, 0 and 1 are one product; empty ones are zeros. */
TEST(one_slice_is_a_plain_product)
{
    machine m[ALL_MACHINES];
    int n = make_machines(*state, m);
    const kind x = {{37, 45, 900, 1, 3}, 0, ZERO_BF16};
    zero_gemm one = make_product(*state, &x), none = one;
    none.slices = none.slice_parts = 0;
    for (int i = 2; i < n; i++)
        assert_rows(&m[i], &x, "0 slices", computed(*state, &m[i], none),
                    computed(*state, &m[i], one));
    const kind empty = {{37, 45, 0, 4, 3}, 0, ZERO_FP32};
    zero_gemm g = make_product(*state, &empty);
    for (int i = 0; i < n; i++)
        for (int64_t j = 0; j < g.n; j++)
            assert_true(computed(*state, &m[i], g)[j] == 0.0f);
    g.m = g.n = 0;
    for (int i = 0; i < n; i++) m[i].ops->gemm(&m[i].math, &g);
}

TEST(weights_of_16_bits_have_the_bits_of_widened_ones)
{
    machine m[ALL_MACHINES];
    int n = make_machines(*state, m);
    for (size_t t = 1; t < COUNT(types); t++)
        for (int flags = 0; flags < 4; flags++) {
            const kind x = {{37, 45, 50, 4, 3}, flags, types[t]};
            const zero_gemm half = make_product(*state, &x);
            float *b = test_bytes(*state, len_b(&half) * (int64_t)sizeof *b);
            zero_convert(types[t], ZERO_FP32, len_b(&half), half.b, b);
            zero_gemm wide = half;
            wide.b = b, wide.b_type = ZERO_FP32;
            for (int i = 0; i < n; i++)
                if (!rounds(&m[i]) || types[t] == ZERO_BF16)
                    assert_rows(&m[i], &x, "widened", computed(*state, &m[i], half),
                                computed(*state, &m[i], wide));
        }
}

/* As often as a whole product of the largest blocks, or nearly: communication waits for it. */
TEST(slices_poll_between_blocks)
{
    machine m[ALL_MACHINES];
    int n = make_machines(*state, m), polls = 0;
    const int64_t pieces[] = {40, 400, 2000};
    for (size_t s = 0; s < COUNT(pieces); s++) {
        const kind x = {{520, 200, pieces[s], 4, 1}, 0, ZERO_BF16};
        const zero_gemm g = make_product(*state, &x);
        for (int i = 2; i < n; i += TEST_SHARE(2)) {
            const zero_packed_kernels *k = m[i].kernels;
            const int64_t block = k->block_m * k->block_n * k->block_k;
            m[i].math.poll = test_count_poll, m[i].math.poll_arg = &polls;
            polls = 0;
            computed(*state, &m[i], g);
            if (polls < 1 ||
                1.1 * (double)polls * (double)block < (double)(g.m * g.n * g.k))
                fail_msg("%s: %d polls", m[i].name, polls);
        }
    }
}

/* Rows and columns cut in two are planned otherwise. */
TEST(a_cut_of_rows_or_columns_keeps_the_bits)
{
    machine m[ALL_MACHINES];
    int n = make_machines(*state, m);
    const kind x = {{530, 290, 390, 4, 3}, 2, ZERO_BF16};
    zero_gemm g = make_product(*state, &x);
    for (int i = 1; i < n; i++) {
        const float *want = computed(*state, &m[i], g);
        zero_gemm half = g;
        half.factors = rounds(&m[i]) ? ZERO_BF16 : ZERO_FP32;
        half.c = test_copy(*state, g.m * g.ldc, want);
        memset(half.c, 0, (size_t)(g.m * g.ldc) * sizeof(float));
        float *got = half.c;
        const int64_t rows[] = {0, 17, 530}, cols[] = {0, 101, 290};
        for (int r = 0; r < 2; r++)
            for (int c = 0; c < 2; c++) {
                half.m = rows[r + 1] - rows[r], half.n = cols[c + 1] - cols[c];
                half.a = (const float *)g.a + rows[r] * g.lda;
                half.b = (const uint16_t *)g.b + cols[c] * g.ldb;
                half.c = got + rows[r] * g.ldc + cols[c];
                zero_backend_cpu.gemm(&m[i].math, &half);
            }
        assert_rows(&m[i], &x, "cut in four", got, want);
    }
}
