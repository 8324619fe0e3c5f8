/* The masks of dropout: the CPU's bits, for many lengths and probabilities. */
#include "gpu/kernels_test.h"

static const zero_backend *const cpu = &zero_backend_cpu;

static zero_dropout dropout_of(float p)
{
    zero_dropout d = {
        {.seed = 5, .purpose = ZERO_RNG_DROPOUT, .step = 9, .sample = 3, .tensor = 11}, p};
    return d;
}

static void check_dropout(test_pool *pool, float p, int64_t B, int64_t n, int shift,
                          bool in_place)
{
    const zero_dropout d = dropout_of(p);
    const float *x = (const float *)test_odd_numbers(pool, ZERO_FP32, B * n);
    float *want = test_floats(pool, B * n);
    zero_math math = test_opened(cpu);
    test_gpu g = test_gpu_begin(test_gpu_shared);
    float *y = out_floats(&g, in_place ? x : NULL, B * n, 4 * shift);
    const float *in = in_place ? y : in_floats(&g, x, B * n, 4 * shift);
    while (test_gpu_next(&g)) zero_cuda_dropout(g.stream, &d, ZERO_FP32, B, n, in, y);
    cpu->dropout(&math, &d, ZERO_FP32, B, n, x, want);
    assert_same_typed(ZERO_FP32, B * n, test_gpu_result(&g, y), want);
}

TEST(dropout_has_the_cpus_masks)
{
    static const int64_t lengths[] = {1,  3,  4,   7,    8,    9,    12,  15,
                                      16, 31, 257, 2047, 2048, 2052, 4097};
    static const float p[] = {0.0f, 0.1f, 0.3f, 0.5f, 0.99999994f, 1e-9f};
    for (size_t l = 0; l < COUNT(lengths); l++)
        for (size_t k = 0; k < COUNT(p); k++)
            check_dropout(*state, p[k], 3, lengths[l], (int)(l + k) % 2, k % 3 == 0);
}

/* An element is dropped if its 32 bits are less than p. Where they are equal to it, and one
 * more or less, shows which side the border is on. */
TEST(masks_have_the_cpus_borders)
{
    const zero_dropout d = dropout_of(0.5f);
    int found = 0;
    for (uint64_t i = 0; i < 8192 && found < 4; i++) {
        const uint64_t word = zero_rng_bits(&d.stream, i / 2);
        const uint32_t bits = (uint32_t)(word >> (32 * (i & 1)));
        if (bits % 256 != 0) continue; /* a float holds 24 bits */
        const float p = (float)ldexp((double)bits, -32);
        check_dropout(*state, p, 1, (int64_t)i + 9, 0, false);
        check_dropout(*state, nextafterf(p, 0.0f), 1, (int64_t)i + 9, 0, false);
        check_dropout(*state, nextafterf(p, 1.0f), 1, (int64_t)i + 9, 0, false);
        found++;
    }
    assert_int_equal(found, 4);
}
