/* Launchers of dropout, residual branches and embeddings: they have the CPU's bits. */
#include "gpu/kernels_test.h"

static const zero_backend *const cpu = &zero_backend_cpu;

static const zero_type types[] = {ZERO_FP32, ZERO_BF16, ZERO_FP16};
static const int64_t shapes[][2] = {{1, 1},   {1, 17},  {3, 16},   {7, 257},   {64, 48},
                                    {5, 768}, {2, 129}, {131, 36}, {33, 1025}, {4, 1344}};

/* ---- dropout ---- */

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
    check_dropout(*state, 0.2f, 1, 10007, 0, false);
    check_dropout(*state, 0.2f, 2500, 3, 0, false); /* more samples than blocks at once */
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

TEST(long_samples_take_several_turns)
{
    check_dropout(*state, 0.2f, 1, (int64_t)2048 * 2048 + 4100, 0, true);
}

static void check_branch(test_pool *pool, zero_branch b, int shift, bool in_place)
{
    const int64_t n = b.B * b.T * b.cols;
    float *want = test_floats(pool, n);
    b.in = test_copy(pool, n, want), b.residual = test_floats(pool, n);
    b.bias = test_numbers(pool, b.type, b.cols);
    zero_branch on = b;
    zero_math math = test_opened(cpu);
    test_gpu g = test_gpu_begin(test_gpu_shared);
    on.out = out_floats(&g, in_place ? b.in : NULL, n, 4 * shift);
    on.in = in_place ? on.out : in_floats(&g, b.in, n, 4 * shift);
    on.residual = in_floats(&g, b.residual, n, 4 * shift);
    on.bias = test_gpu_in(&g, b.bias, test_type_bytes(b.type, b.cols),
                          shift * (int)test_type_bytes(b.type, 1));
    while (test_gpu_next(&g)) zero_cuda_add_branch(g.stream, &on);
    b.out = want;
    cpu->add_branch(&math, &b);
    assert_same_typed(ZERO_FP32, n, test_gpu_result(&g, on.out), want);
}

TEST(branches_end_with_the_cpus_bits)
{
    for (size_t s = 0; s < COUNT(shapes); s++)
        for (size_t t = 0; t < COUNT(types); t++)
            for (int k = 0; k < 4; k++)
                check_branch(*state,
                             (zero_branch){.dropout = dropout_of(k % 2 ? 0.3f : 0.0f),
                                           .B = 3,
                                           .T = shapes[s][0],
                                           .cols = shapes[s][1],
                                           .type = types[t]},
                             k / 2, ((int)(s + t) + k) % 2);
}

/* ---- embeddings ---- */

static void check_embedding(test_pool *pool, zero_type type, const int64_t shape[4],
                            int shift)
{
    const int64_t B = shape[0], T = shape[1], C = shape[2], V = shape[3], n = B * T * C;
    const int step = shift * (int)test_type_bytes(type, 1);
    zero_math math = test_opened(cpu);
    zero_embedding e = {.B = B, .T = T, .C = C, .tokens = test_tokens(pool, B * T, V)};
    zero_embedding on = e;
    float *want = test_floats(pool, n);
    e.type = on.type = type;
    e.wte = test_numbers(pool, type, V * C), e.wpe = test_numbers(pool, type, T * C);
    e.out = want;
    test_gpu g = test_gpu_begin(test_gpu_shared);
    on.tokens = (const int32_t *)test_gpu_in(&g, e.tokens, 4 * B * T, 4 * shift);
    on.wte = test_gpu_in(&g, e.wte, test_type_bytes(type, V * C), step);
    on.wpe = test_gpu_in(&g, e.wpe, test_type_bytes(type, T * C), step);
    on.out = out_floats(&g, NULL, n, 4 * shift);
    while (test_gpu_next(&g)) zero_cuda_embedding(g.stream, &on);
    cpu->embedding(&math, &e);
    assert_same_typed(ZERO_FP32, n, test_gpu_result(&g, on.out), want);
}

static void check_embedding_backward(test_pool *pool, const int64_t shape[4], int shift)
{
    const int64_t B = shape[0], T = shape[1], C = shape[2], V = shape[3], n = B * T * C;
    zero_math math = test_opened(cpu);
    const int64_t more = 300; /* words past the end, which are none of this batch */
    zero_embedding_grad e = {.B = B, .T = T, .C = C};
    e.tokens = test_tokens(pool, B * T + more, V);
    zero_embedding_grad on = e;
    e.dout = test_floats(pool, n);
    e.dwte = test_floats(pool, V * C), e.dwpe = test_floats(pool, T * C);
    test_gpu g = test_gpu_begin(test_gpu_shared);
    on.tokens = (const int32_t *)test_gpu_in(&g, e.tokens, 4 * (B * T + more), 4 * shift);
    on.dout = in_floats(&g, e.dout, n, 4 * shift);
    on.dwte = out_floats(&g, e.dwte, V * C, 4 * shift);
    on.dwpe = out_floats(&g, e.dwpe, T * C, 4 * shift);
    while (test_gpu_next(&g)) zero_cuda_embedding_backward(g.stream, &on);
    cpu->embedding_backward(&math, &e);
    assert_same_typed(ZERO_FP32, V * C, test_gpu_result(&g, on.dwte), e.dwte);
    assert_same_typed(ZERO_FP32, T * C, test_gpu_result(&g, on.dwpe), e.dwpe);
}

/* B, T, C, V: few words, so that most positions share one; many; more columns than a block
 * takes. */
TEST(embeddings_have_the_cpus_bits)
{
    static const int64_t cases[][4] = {{1, 1, 1, 1},     {2, 7, 5, 3},    {3, 100, 12, 2},
                                       {2, 150, 64, 40}, {2, 9, 1030, 4}, {4, 5, 2060, 1},
                                       {1, 600, 3, 1},   {2, 33, 260, 50}};
    for (size_t c = 0; c < COUNT(cases); c++)
        for (int shift = 0; shift < 2; shift++) {
            for (size_t t = 0; t < COUNT(types); t++)
                check_embedding(*state, types[t], cases[c], shift);
            check_embedding_backward(*state, cases[c], shift);
        }
    check_embedding_backward(*state, (const int64_t[]){1, 2100, 2, 900}, 0);
}
