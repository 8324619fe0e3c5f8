/* Bits that every CPU gives: each level's kernels for products in fp32 against their
 * definition, and what decides which kernels multiply. */
#include "support/math_test.h"

#include "base/cpu_level.h"
#include "base/type.h"
#include "math/cpu_state.h"

/* Element (i, j) as defined: along k fused multiply-adds from zero, block by block; each
 * block is then added to c. */
static float defined(const zero_gemm *g, const float *a, const float *b, float c, int64_t i,
                     int64_t j)
{
    const int64_t step = zero_block_len(g->k, 768, 1);
    for (int64_t p = 0; p < g->k; p += step) {
        float sum = 0.0f;
        for (int64_t q = p; q < zero_min(p + step, g->k); q++)
            sum = fmaf(a[g->transpose_a ? q * g->lda + i : i * g->lda + q],
                       b[g->transpose_b ? j * g->ldb + q : q * g->ldb + j], sum);
        c = g->accumulate || p > 0 ? sum + c : sum;
    }
    return c;
}

/* Numbers whose sums often lie halfway between two floats, and some below the normal
 * ones. */
static void make_ties(int64_t n, float *x)
{
    zero_rng rng = {.seed = 3, .purpose = ZERO_RNG_TEST};
    for (int64_t i = 0; i < n; i++) {
        const uint64_t bits = zero_rng_bits(&rng, (uint64_t)i);
        x[i] = ldexpf((float)(1 + (bits & 7)), (int)(bits >> 8 & 31) - 24);
        if ((bits >> 16 & 63) == 0) x[i] = ldexpf(x[i], -60);
        if ((bits >> 24 & 1) == 1) x[i] = -x[i];
    }
}

static void check(test_pool *pool, const zero_panel_kernels *panels, const zero_gemm *shape,
                  bool ties)
{
    const zero_gemm *s = shape;
    const int64_t m = s->m, n = s->n, k = s->k;
    float *a = test_floats(pool, m * k), *b = test_floats(pool, k * n);
    float *c = test_floats(pool, m * n), *wide_b = test_bytes(pool, k * n * 4);
    if (ties) make_ties(m * k, a), make_ties(k * n, b), make_ties(m * n, c);
    void *stored = test_bytes(pool, k * n * 4);
    zero_convert(ZERO_FP32, s->b_type, k * n, b, stored);
    zero_convert(s->b_type, ZERO_FP32, k * n, stored, wide_b);
    zero_gemm g = *s;
    g.a = a, g.b = stored, g.c = c;
    g.lda = g.transpose_a ? m : k, g.ldb = g.transpose_b ? k : n, g.ldc = n;
    float *want = test_bytes(pool, m * n * 4);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            want[i * n + j] = defined(&g, a, wide_b, c[i * n + j], i, j);
    const zero_math math = test_opened(&zero_backend_cpu);
    zero_cpu_packed_gemm(&math, &panels->packed, &g);
    for (int64_t e = 0; e < m * n; e++)
        if (memcmp(&c[e], &want[e], sizeof *c) != 0)
            fail_msg("%s, %" PRId64 " x %" PRId64 " x %" PRId64 ": %a at %" PRId64
                     ", not %a",
                     panels->packed.name, m, n, k, (double)c[e], e, (double)want[e]);
}

TEST(every_level_multiplies_as_defined)
{
    static const int64_t shapes[][3] = {
        {1, 1, 1}, {5, 33, 7}, {13, 40, 300}, {30, 17, 1501}};
    const zero_panel_kernels *panels;
    for (int i = 0; (panels = zero_panels_at(i)); i++)
        for (size_t s = 0; s < COUNT(shapes); s++)
            for (int way = 0; way < 16; way++) {
                const zero_gemm g = {.m = shapes[s][0],
                                     .n = shapes[s][1],
                                     .k = shapes[s][2],
                                     .transpose_a = way & 1,
                                     .transpose_b = way & 2,
                                     .accumulate = way & 4,
                                     .b_type = way & 4 ? ZERO_BF16 : ZERO_FP16};
                zero_gemm whole = g;
                whole.b_type = way % 3 == 0 ? ZERO_FP32 : g.b_type;
                check(*state, panels, &whole, way & 8);
            }
}

/* Which kernels multiply factors of a type, and whether all CPUs have their bits. */
static zero_products products_of(zero_bits bits, zero_type factors)
{
    zero_math math = {.bits = bits};
    assert_ok(zero_backend_cpu.open(&math));
    return zero_backend_cpu.products(&math, factors);
}

TEST(bits_decide_which_kernels_multiply)
{
    const char *panels = zero_panels_at(0)->packed.name;
    const zero_packed_kernels *bf16 = zero_packed_bf16(), *fp32 = zero_packed_fp32();
    for (int type = ZERO_FP32; type <= ZERO_FP16; type++) {
        assert_true(products_of(ZERO_BITS_PORTABLE, type).is_portable);
        assert_string_equal(products_of(ZERO_BITS_PORTABLE, type).name, panels);
        const bool own = type == ZERO_BF16 && bf16;
        assert_int_equal(products_of(ZERO_BITS_AUTO, type).is_portable, !own);
        assert_string_equal(products_of(ZERO_BITS_AUTO, type).name,
                            own ? bf16->name : panels);
        assert_string_equal(products_of(ZERO_BITS_FASTEST, type).name, own    ? bf16->name
                                                                       : fp32 ? fp32->name
                                                                              : "BLAS");
    }
}

TEST(a_contest_measures_what_runs_here_and_takes_what_it_is_told)
{
    const zero_contest *contest = zero_backend_cpu.contest;
    zero_math math = test_opened(&zero_backend_cpu);
    for (int i = 0; i < contest->kernels; i++) {
        const bool is_panel = i == contest->kernels - 1;
        const int64_t least = contest->measure(&math, i);
        assert_true(least > 0);
        assert_int_equal(least < INT64_MAX, is_panel || zero_packed_bf16_at(i));
        if (least == INT64_MAX) continue;
        contest->take(&math, i);
        assert_int_equal(zero_backend_cpu.products(&math, ZERO_BF16).is_portable, is_panel);
        if (!is_panel)
            assert_string_equal(zero_backend_cpu.products(&math, ZERO_BF16).name,
                                zero_packed_bf16_at(i)->name);
    }
}

TEST(a_level_that_is_none_is_refused)
{
    assert_ok(zero_cpu_level_check());
    setenv("ZERO_CPU_LEVEL", "v9", 1);
    assert_int_equal(zero_cpu_level_check(), ZERO_ERR_INVALID);
    assert_non_null(strstr(zero_last_error(), "v9"));
    unsetenv("ZERO_CPU_LEVEL");
}
