/* Random numbers, and the summation tree over scalars. */

#include <Random123/philox.h>

#include "support/test.h"

#include "base/rng.h"
#include "base/tree.h"

#define N 100000

/* Random123, tests/kat_vectors, philox4x64 with 10 rounds: counter, key, result. */
TEST(philox_gives_the_published_vectors)
{
    const uint64_t ones = UINT64_MAX;
    const uint64_t vectors[3][10] = {
        {0, 0, 0, 0, 0, 0, 0x16554d9eca36314c, 0xdb20fe9d672d0fdc, 0xd7e772cee186176b,
         0x7e68b68aec7ba23b},
        {ones, ones, ones, ones, ones, ones, 0x87b092c3013fe90b, 0x438c3c67be8d0224,
         0x9cc7d7c69cd777b6, 0xa09caebf594f0ba0},
        {0x243f6a8885a308d3, 0x13198a2e03707344, 0xa4093822299f31d0, 0x082efa98ec4e6c89,
         0x452821e638d01377, 0xbe5466cf34e90c6c, 0xa528f45403e61d95, 0x38c72dbd566e9788,
         0xa5a1610e72fd18b5, 0x57bd43b5e52b7fe6}};
    for (int i = 0; i < 3; i++) {
        const uint64_t *v = vectors[i];
        philox4x64_ctr_t counter = {{v[0], v[1], v[2], v[3]}};
        philox4x64_key_t key = {{v[4], v[5]}};
        philox4x64_ctr_t got = philox4x64(counter, key);
        assert_memory_equal(got.v, v + 6, 4 * sizeof *v);
    }
}

/* Every checkpoint depends on the meaning of each word of counter and key. */
TEST(a_stream_is_philox_of_its_documented_counter_and_key)
{
    zero_rng rng = {
        .seed = 11, .purpose = ZERO_RNG_ORDER, .step = 12, .sample = 13, .tensor = 14};
    for (uint64_t i = 0; i < 40; i++) {
        philox4x64_ctr_t counter = {{i / 4, 14, 13, 12}};
        philox4x64_key_t key = {{11, ZERO_RNG_ORDER}};
        uint64_t word = philox4x64(counter, key).v[i % 4];
        assert_true(zero_rng_bits(&rng, i) == word);
        assert_true(zero_rng_uniform(&rng, i) == (double)(word >> 11) * 0x1p-53);
    }
}

static const zero_rng stream = {
    .seed = 1, .purpose = ZERO_RNG_TEST, .step = 2, .tensor = 3};

TEST(any_range_of_a_stream_equals_the_whole)
{
    float whole[100], part[100];
    for (int kind = 0; kind < 2; kind++) {
        for (int first = 0; first < 20; first++) {
            for (int n = 0; n <= 60; n += 3) {
                if (kind == 0) {
                    zero_rng_normal(&stream, 5, 100, whole);
                    zero_rng_normal(&stream, 5 + (uint64_t)first, n, part);
                } else {
                    zero_rng_dropout(&stream, 0.5f, 5, 100, whole);
                    zero_rng_dropout(&stream, 0.5f, 5 + (uint64_t)first, n, part);
                }
                assert_memory_equal(part, whole + first, (size_t)n * sizeof *part);
            }
        }
    }
}

/* The vector kernels know log, sin and cos to 2^-45 only: about ten of these numbers lie closer than
 * that to a border between two floats. */
TEST(all_kernels_give_the_bits_of_the_definition)
{
    enum { ROUNDS = 250, MOST = 50000 };
    float *plain = malloc(MOST * sizeof *plain), *fast = malloc(MOST * sizeof *fast);
    int64_t all = 0;
    assert_true(plain && fast);
    for (int round = 0; round < ROUNDS; round++) {
        zero_rng rng = {.seed = (uint64_t)round * 0x9e3779b97f4a7c15,
                        .purpose = ZERO_RNG_INIT,
                        .tensor = (uint64_t)round % 7};
        uint64_t first = round % 3 == 0 ? (uint64_t)round : zero_rng_bits(&rng, 0) >> 8;
        int64_t n = round < 60 ? round : MOST - round;
        zero_rng_normal_plain(&rng, first, n, plain);
        const zero_vector_kernels *kernels;
        for (int i = 0; (kernels = zero_vector_kernels_at(i)) != NULL; i++) {
            zero_rng_normal_with(kernels, &rng, first, n, fast);
            if (memcmp(plain, fast, (size_t)n * sizeof *fast) != 0)
                fail_msg("round %d, %s kernels: other bits", round, kernels->name);
        }
        all += n;
    }
    assert_true(all > 9000000);
    free(plain);
    free(fast);
}

/* Ranges that begin and end within blocks of 8 and within registers. */
TEST(all_kernels_give_the_masks_of_the_definition)
{
    enum { MOST = 400 };
    float plain[MOST], fast[MOST];
    for (int round = 0; round < 600; round++) {
        const zero_rng rng = {.seed = zero_rng_bits(&stream, (uint64_t)round),
                              .purpose = ZERO_RNG_DROPOUT,
                              .step = (uint64_t)round,
                              .sample = zero_rng_bits(&stream, 5000 + (uint64_t)round),
                              .tensor = (uint64_t)round % 7};
        const uint64_t first = zero_rng_bits(&rng, 0) >> (round % 2 ? 60 : 8);
        const float p = (float)zero_rng_uniform(&rng, 1);
        const int64_t n = round % MOST;
        zero_rng_dropout_plain(&rng, p, first, n, plain);
        const zero_vector_kernels *kernels;
        for (int i = 0; (kernels = zero_vector_kernels_at(i)) != NULL; i++) {
            for (int k = 0; k < MOST; k++) fast[k] = 2.0f;
            zero_rng_dropout_with(kernels, &rng, p, first, n, fast);
            assert_memory_equal(fast, plain, (size_t)n * sizeof *fast);
            for (int64_t k = n; k < MOST; k++) assert_true(fast[k] == 2.0f);
        }
    }
}

/* Bounds that differ for every third number, and leave a wrong number there. */
static void doubt(int64_t pairs, const uint64_t *radii, const uint64_t *angles,
                  float *least, float *most)
{
    zero_vector_kernels_best()->normals(pairs, radii, angles, least, most);
    for (int64_t k = 0; k < 2 * pairs; k += 3) {
        least[k] -= 1.0f;
        most[k] += 1.0f;
    }
}

TEST(numbers_in_doubt_are_those_of_the_definition)
{
    float plain[3000], fast[3000];
    zero_vector_kernels doubtful = *zero_vector_kernels_best();
    doubtful.normals = doubt;
    for (uint64_t first = 0; first < 9; first++) {
        zero_rng_normal_plain(&stream, first, 3000, plain);
        zero_rng_normal_with(&doubtful, &stream, first, 3000, fast);
        assert_memory_equal(plain, fast, sizeof plain);
    }
}

/* Numbers that the definition computes again cost fifty others. */
TEST(bounds_of_normal_numbers_differ_rarely)
{
    enum { PAIRS_MADE = 50000 };
    uint64_t *words = malloc(2 * PAIRS_MADE * sizeof *words);
    float *bounds = malloc(4 * PAIRS_MADE * sizeof *bounds);
    assert_true(words && bounds);
    for (int i = 0; i < 2 * PAIRS_MADE; i++) words[i] = zero_rng_bits(&stream, (uint64_t)i);
    const zero_vector_kernels *kernels;
    for (int i = 0; (kernels = zero_vector_kernels_at(i)) != NULL; i++) {
        float *least = bounds, *most = bounds + 2 * PAIRS_MADE;
        int differ = 0;
        kernels->normals(PAIRS_MADE, words, words + PAIRS_MADE, least, most);
        for (int k = 0; k < 2 * PAIRS_MADE; k++) {
            assert_true(least[k] <= most[k]);
            differ += least[k] < most[k];
        }
        assert_true(differ < 20);
    }
    free(words);
    free(bounds);
}

TEST(streams_differ_in_every_coordinate)
{
    zero_rng other[5] = {stream, stream, stream, stream, stream};
    other[0].seed++, other[1].purpose = ZERO_RNG_INIT, other[2].step++;
    other[3].sample++, other[4].tensor++;
    for (int i = 0; i < 5; i++)
        assert_true(zero_rng_bits(&other[i], 0) != zero_rng_bits(&stream, 0));
}

/* Error bars of 5 standard deviations: one stream in a million would fail by chance. */
TEST(normal_numbers_have_the_moments_of_a_normal_distribution)
{
    double sum = 0.0, squares = 0.0, fourth = 0.0, neighbours = 0.0;
    float x[1000];
    for (uint64_t first = 0; first < N; first += 1000) {
        zero_rng_normal(&stream, first, 1000, x);
        for (int i = 0; i < 1000; i++) {
            double v = (double)x[i];
            sum += v, squares += v * v, fourth += v * v * v * v;
            if (i > 0) neighbours += v * (double)x[i - 1];
        }
    }
    assert_true(fabs(sum / N) < 5.0 * sqrt(1.0 / N));
    assert_true(fabs(squares / N - 1.0) < 5.0 * sqrt(2.0 / N));
    assert_true(fabs(fourth / N - 3.0) < 5.0 * sqrt(96.0 / N));
    assert_true(fabs(neighbours / N) < 5.0 * sqrt(1.0 / N));
}

TEST(dropout_keeps_a_share_of_one_minus_p_and_the_mean)
{
    for (float p = 0.0f; p < 0.95f; p += 0.1f) {
        const float keep = 1.0f / (1.0f - p);
        float mask[1000];
        int kept = 0;
        for (uint64_t first = 0; first < N; first += 1000) {
            zero_rng_dropout(&stream, p, first, 1000, mask);
            for (int i = 0; i < 1000; i++) {
                assert_true(mask[i] == 0.0f || mask[i] == keep);
                kept += mask[i] == keep;
            }
        }
        double share = 1.0 - (double)p, bar = 5.0 * sqrt(share * (double)p / N);
        assert_true(fabs((double)kept / N - share) <= bar);
    }
}

TEST(scalars_are_added_along_the_tree)
{
    double x[17], serial = 0.0;
    for (int n = 1; n <= 17; n++) {
        x[n - 1] = 1.0 / n;
        serial += x[n - 1];
        assert_true(fabs(zero_tree_sum_scalars(n, x) - serial) < 1e-12);
    }
    /* 2^53 + 1 is 2^53 in double: the sum shows the order of additions. */
    const double y[6] = {0x1p53, 1.0, 1.0, 1.0, -0x1p53, 1.0};
    assert_true(zero_tree_sum_scalars(6, y) == ((0x1p53 + 1.0) + 2.0) + (-0x1p53 + 1.0));
    for (int n = 2; n <= 17; n++) {
        int64_t left = zero_tree_left(n);
        assert_true(left < n && 2 * left >= n && (left & (left - 1)) == 0);
    }
}

TEST(sums_of_squares_do_not_depend_on_aligned_cuts)
{
    static const int64_t sizes[] = {1,   2,   17,   63,   64,   65,   127,
                                    128, 129, 1000, 4096, 4097, 10001};
    float x[10001];
    zero_rng_normal(&stream, 0, 10001, x);
    assert_true(zero_tree_sum_squares(ZERO_FP32, 0, x) == 0.0);
    for (size_t s = 0; s < COUNT(sizes); s++) {
        int64_t n = sizes[s];
        double blocks[160], serial = 0.0, whole = zero_tree_sum_squares(ZERO_FP32, n, x);
        int n_blocks = 0;
        for (int64_t at = 0; at < n; at += ZERO_TREE_BLOCK, n_blocks++)
            blocks[n_blocks] = zero_tree_sum_squares(
                ZERO_FP32, n - at < ZERO_TREE_BLOCK ? n - at : ZERO_TREE_BLOCK, x + at);
        for (int64_t i = 0; i < n; i++) serial += (double)x[i] * (double)x[i];
        assert_true(zero_tree_sum_scalars(n_blocks, blocks) == whole);
        assert_true(fabs(whole - serial) <= 1e-13 * serial);
    }
}
