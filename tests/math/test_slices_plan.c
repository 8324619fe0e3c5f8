/* How products in slices are divided, into the scratch, whatever their shape; and the kernels' tiles and
 * panels. */
#include "support/math_test.h"

#include "math/cpu_panel.h"
#include "math/cpu_slices.h"

static int64_t bytes_of(const zero_packed_kernels *kernels, const zero_slices_plan *plan)
{
    const int64_t number = (int64_t)zero_type_size(kernels->type);
    const int64_t buffers = plan->buffers * plan->block_m * plan->width;
    return buffers * (int64_t)sizeof(float) +
           zero_round_up(plan->block_m * plan->packed * number, ZERO_SLICES_LINE) +
           plan->block_n * plan->packed * number;
}

/* Returns the bytes that the plan uses. */
static int64_t check_plan(const zero_packed_kernels *kernels, int slices, int64_t m,
                          int64_t n, int64_t slice)
{
    const zero_type c_type = slice % 2 ? ZERO_FP32 : ZERO_BF16;
    const zero_gemm g = {
        .m = m, .n = n, .k = slice * slices, .slices = slices, .c_type = c_type};
    zero_slices_plan plan;
    const int left = zero_slices_split(kernels, &g, slices, &plan);
    assert_in_range(left, 0, slices - 1);
    assert_true(plan.packed > 0 && plan.block_m > 0 && plan.block_n > 0);
    const int64_t bytes = bytes_of(kernels, &plan);
    if (bytes > zero_math_scratch() * (int64_t)sizeof(float))
        fail_msg("%s, %d slices, %lld x %lld x %lld: %lld bytes", kernels->name, slices,
                 (long long)m, (long long)n, (long long)slice, (long long)bytes);
    return bytes;
}

TEST(all_plans_fit_the_scratch)
{
    const int64_t scratch = zero_math_scratch() * (int64_t)sizeof(float);
    const int64_t rows[] = {1, 300, 4000};
    const int slices[] = {2, 3, 4, 8, 12, 64};
    const zero_packed_kernels *kernels;
    int64_t most = 0;
    for (int i = 0; (kernels = zero_packed_at(i)); i++)
        for (size_t s = 0; s < COUNT(slices); s++)
            for (size_t m = 0; m < COUNT(rows); m++)
                for (int64_t slice = 1; slice < 30000; slice += slice / 7 + 1)
                    for (int64_t n = 1; n < 60000; n = 3 * n + 2)
                        most = zero_max(most,
                                        check_plan(kernels, slices[s], rows[m], n, slice));
    assert_true(most > scratch - scratch / 64); /* it is used, too */
}

/* The cases that test_packed.c relies on do occur. */
TEST(plans_follow_the_shape)
{
    const zero_packed_kernels *fp32 = &zero_panels_at(0)->packed;
    const struct {
        int64_t m, n, slice;
        int left, group, buffers;
    } cases[] = {
        {512, 768, 192, 0, 4, 0},  /* all slices at one time */
        {512, 768, 768, 2, 2, 0},  /* pairs, in whole blocks, then pairs in groups */
        {13, 33, 20000, 0, 0, 2}}; /* no slice fits */
    for (size_t i = 0; i < COUNT(cases); i++) {
        const zero_gemm g = {
            .m = cases[i].m, .n = cases[i].n, .k = 4 * cases[i].slice, .slices = 4};
        zero_slices_plan plan;
        assert_int_equal(zero_slices_split(fp32, &g, 4, &plan), cases[i].left);
        assert_int_equal(plan.group, cases[i].group);
        assert_int_equal(plan.buffers, cases[i].buffers);
    }
}

/* ---- tiles and panels ---- */

/* adds_sums: (the sum of a b) + c, rounded once. The tree takes this for an addition. */
TEST(kernels_add_as_they_promise)
{
    const zero_packed_kernels *kernels;
    for (int i = 0; (kernels = zero_packed_at(i)); i++) {
        const int64_t n = kernels->rows * kernels->cols,
                      k = 5 * zero_max(kernels->depth, 8);
        const zero_operand x = {
            .data = test_floats(*state, 32 * k), .stride = k, .along_k = true};
        const zero_operand y = {.data = test_floats(*state, 32 * k), .stride = 32};
        void *a = test_floats(*state, 32 * k), *b = test_floats(*state, 32 * k);
        float *c = test_floats(*state, n), *got = test_copy(*state, n, c);
        float sum[ZERO_PACKED_TILE];
        kernels->pack_a(&x, kernels->rows, k, a);
        kernels->pack_b(&y, kernels->cols, k, b);
        kernels->begin();
        kernels->multiply(k, a, b, false, sum, kernels->cols);
        kernels->multiply(k, a, b, true, got, kernels->cols);
        kernels->end();
        float *added = test_copy(*state, n, c);
        kernels->add(sum, added, kernels->cols);
        for (int64_t e = 0; e < n; e++) c[e] = sum[e] + c[e];
        assert_same(n, added, c);
        const bool adds = memcmp(got, c, (size_t)n * sizeof *got) == 0;
        if (adds != kernels->adds_sums) fail_msg("%s: %d", kernels->name, adds);
    }
}

TEST(parts_of_panels_are_packed_where_they_belong)
{
    const zero_packed_kernels *kernels;
    for (int i = 0; (kernels = zero_packed_at(i)); i++)
        for (int along_k = 0; along_k < 2; along_k++) {
            const int64_t k = 96, cut = 64, lanes = 70;
            const size_t bytes = 96 * 96 * sizeof(float);
            char *whole = memset(test_bytes(*state, (int64_t)bytes), 0, bytes);
            char *parts = memset(test_bytes(*state, (int64_t)bytes), 0, bytes);
            zero_operand x = {.data = test_floats(*state, k * lanes), .along_k = along_k};
            x.stride = along_k ? k : lanes;
            kernels->pack_b(&x, lanes, k, whole);
            x.panel_k = k;
            kernels->pack_b(&x, lanes, cut, parts);
            x.data = (const float *)x.data + cut * (along_k ? 1 : lanes), x.panel_at = cut;
            kernels->pack_b(&x, lanes, k - cut, parts);
            assert_memory_equal(parts, whole, bytes);
        }
}
