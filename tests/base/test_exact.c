/* Exact sums of squares: their value is the true one rounded once, in whatever order, cut or type
 * numbers come, and on every instruction set. */
#include <float.h>

#include "support/test.h"

#include "base/exact.h"
#include "base/number.h"
#include "base/type.h"
#include "base/vector.h"
#include "support/tree_oracle.h"

enum { MOST = 5 * ZERO_VECTOR_EXACT + 77 };

static float x[MOST];

static uint64_t next(uint64_t *random)
{
    return *random = oracle_mix(*random);
}

/* 24 random bits times 2^least .. 2^(least + range). */
static void fill(uint64_t seed, int least, int range)
{
    uint64_t random = seed;
    for (int i = 0; i < MOST; i++) {
        const float m = (float)(next(&random) % 0x1000000);
        const int e = least + (range > 0 ? (int)(next(&random) % (uint64_t)range) : 0);
        x[i] = ldexpf(next(&random) % 2 ? m : -m, e);
    }
}

static zero_exact one_by_one(int64_t n)
{
    zero_exact sum = {0};
    for (int64_t i = n; i-- > 0;) zero_exact_add_square(&sum, x[i]);
    return sum;
}

static zero_exact together(int64_t n)
{
    zero_exact sum = {0};
    zero_exact_add_squares(&sum, ZERO_FP32, n, x);
    return sum;
}

#define assert_equal(a, b) assert_memory_equal(&(a), &(b), sizeof(zero_exact))

/* ---- the value ---- */

__extension__ typedef unsigned __int128 wide;

/* The true sum in 128 bits, in units of 2^(2 least); its conversion to double rounds once. */
static double reference(int64_t n, int least)
{
    wide sum = 0;
    for (int64_t i = 0; i < n; i++) {
        const uint64_t m = (uint64_t)fabsf(ldexpf(x[i], -least));
        sum += (wide)m * m;
    }
    return ldexp((double)sum, 2 * least);
}

/* At all places within a word, from the smallest numbers to large ones; 10 binary orders apart. */
TEST(the_value_is_the_true_sum_rounded_once)
{
    for (int least = -149; least < 90; least++) {
        const int64_t n = 1 + (least + 149) * 37;
        fill((uint64_t)(least + 1000), least, 10);
        const zero_exact sum = together(n);
        assert_true(zero_exact_value(&sum) == reference(n, least));
    }
}

static double value_of(int n, const float *numbers, int exponent)
{
    zero_exact sum = {0};
    for (int i = 0; i < n; i++) zero_exact_add_square(&sum, ldexpf(numbers[i], exponent));
    return zero_exact_value(&sum);
}

/* 2^54 + 2 lies halfway between two doubles; the least number tells, however far below. */
TEST(ties_go_to_even_unless_anything_is_below)
{
    const float tie[] = {0x1p27f, 1, 1}, odd[] = {0x1p27f, 2, 1, 1};
    for (int e = -149; e < 100; e++) {
        assert_true(value_of(3, tie, e) == ldexp(0x1p54, 2 * e));
        assert_true(value_of(4, odd, e) == ldexp(0x1p54 + 8.0, 2 * e));
    }
    for (int k = 1; k < 150; k++) {
        const float more[] = {0x1p27f, 1, 1, ldexpf(1, -k)};
        for (int e = -149 + k; e < 100; e++)
            assert_true(value_of(4, more, e) == ldexp(0x1p54 + 4.0, 2 * e));
    }
    const float above[] = {0x1p27f, 1, 1, 0x1p-149f}, below[] = {0x1p27f, 1, 0x1p-149f};
    assert_true(value_of(4, above, 0) == 0x1p54 + 4.0);
    assert_true(value_of(3, below, 0) == 0x1p54);
    assert_true(value_of(0, NULL, 0) == 0.0);
    assert_true(value_of(1, (float[]){0x1p-149f}, 0) == 0x1p-298);
    assert_true(value_of(1, (float[]){FLT_MAX}, 0) == (double)FLT_MAX * (double)FLT_MAX);
    assert_true(value_of(2, (float[]){0x1p127f, 0x1p-149f}, 0) == 0x1p254);
}

TEST(numbers_that_are_not_finite_are_told)
{
    for (int i = 0; i < 3; i++) {
        fill(5, -20, 20);
        x[17 + i * ZERO_VECTOR_EXACT] = i % 2 ? -INFINITY : INFINITY;
        zero_exact sum = together(MOST), plain = one_by_one(MOST);
        assert_equal(sum, plain);
        assert_true(isinf(zero_exact_value(&sum)));
        x[40] = NAN;
        zero_exact_add_squares(&sum, ZERO_FP32, 41, x);
        assert_true(isnan(zero_exact_value(&sum)));
    }
}

/* ---- order, cuts, merges ---- */

/* Random cuts, dealt to four sums that are merged. */
static void check_cuts(uint64_t *random, const zero_exact *want)
{
    zero_exact sums[4] = {{{0}}};
    for (int64_t at = 0, len; at < MOST; at += len) {
        const bool small = next(random) % 2;
        len = zero_min(MOST - at, 1 + (int64_t)(next(random) % (small ? 50 : 9000)));
        zero_exact_add_squares(&sums[next(random) % 4], ZERO_FP32, len, x + at);
    }
    for (int i = 1; i < 4; i++) zero_exact_merge(&sums[0], &sums[i]);
    assert_equal(sums[0], *want);
}

static void shuffle(uint64_t *random)
{
    for (int i = MOST - 1; i > 0; i--) {
        const int j = (int)(next(random) % (uint64_t)(i + 1));
        const float other = x[j];
        x[j] = x[i], x[i] = other;
    }
}

/* Numbers of one size, of 12 decades, of all that there are, denormal and large ones. In the last two
 * rounds: rows of which some are far below others, and mostly zeros. */
TEST(order_and_cuts_do_not_matter)
{
    static const int ranges[][2] = {{-30, 0}, {-50, 40}, {-149, 250}, {-149, 3}, {80, 20}};
    uint64_t random = 99;
    for (size_t r = 0; r < COUNT(ranges) + 2; r++) {
        const int *range = ranges[r % COUNT(ranges)];
        fill(r, range[0], range[1]);
        for (int i = 0; r > COUNT(ranges) && i < MOST; i++) x[i] *= i % 50 ? 0.0f : 1.0f;
        for (int i = 0; r == COUNT(ranges) && i < MOST; i++)
            x[i] = ldexpf(x[i], -(i / 700 * 29 % 50));
        const zero_exact want = one_by_one(MOST), whole = together(MOST);
        assert_equal(whole, want);
        for (int i = 0; i < 20; i++) {
            check_cuts(&random, &want);
            shuffle(&random);
        }
    }
}

/* 2^40 of the largest number on each of 2^20 ranks, whose words are added as integers. */
TEST(the_largest_sums_have_room)
{
    const double square = (double)FLT_MAX * (double)FLT_MAX;
    zero_exact sum = {0};
    zero_exact_add_square(&sum, FLT_MAX);
    zero_exact_add_square(&sum, 0x1.fffffep-127f);
    for (int doublings = 0; doublings < 40; doublings++) {
        const zero_exact same = sum;
        zero_exact_merge(&sum, &same);
    }
    for (int i = 0; i < ZERO_EXACT_WORDS; i++) {
        assert_in_range(sum.word[i], 0, UINT32_MAX);
        sum.word[i] *= 1 << 20;
    }
    assert_true(zero_exact_value(&sum) == ldexp(square, 60));
    zero_exact none = {0};
    zero_exact_merge(&none, &sum);
    assert_true(zero_exact_value(&none) == ldexp(square, 60));
}

/* ---- types and instruction sets ---- */

TEST(numbers_of_16_bits_count_as_widened)
{
    static uint16_t half[MOST];
    for (zero_type type = ZERO_BF16; type <= ZERO_FP16; type++) {
        fill(11, -40, type == ZERO_FP16 ? 20 : 60);
        zero_convert(ZERO_FP32, type, MOST, x, half);
        zero_convert(type, ZERO_FP32, MOST, half, x);
        zero_exact sum = {0};
        const zero_exact want = one_by_one(MOST);
        zero_exact_add_squares(&sum, type, MOST, half);
        assert_equal(sum, want);
    }
}

/* Also for rests, addresses and numbers too far apart, which every level refuses. */
TEST(every_instruction_set_gives_the_same_counts)
{
    const zero_vector_kernels *kernels;
    for (int i = 0; (kernels = zero_vector_kernels_at(i)); i++)
        for (int range = 0; range < 60; range++) {
            const int64_t n = range % 2 ? range : ZERO_VECTOR_EXACT - range;
            zero_vector_windows best = {{0}, {0}}, sum = best;
            fill((uint64_t)range, -90 + range, range);
            const bool fits =
                zero_vector_kernels_at(0)->exact_squares(ZERO_FP32, n, x + range, &best);
            assert_int_equal(kernels->exact_squares(ZERO_FP32, n, x + range, &sum), fits);
            if (fits) assert_memory_equal(&sum, &best, sizeof sum);
            assert_true(fits || range > 30);
        }
}
