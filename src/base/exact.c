#include "base/exact.h"

#include "base/number.h"
#include "base/type.h"
#include "base/vector.h"

#define LOWEST     (-320) /* word 0 counts 2^LOWEST */
#define DIGIT_BITS 32
#define DIGIT      INT64_C(0xffffffff)
#define SHORT      128 /* numbers: no longer worth a division */

enum { INFINITIES = ZERO_EXACT_DIGITS, NANS };

/* x / 2^32, rounded down, also below zero. */
static int64_t above(int64_t x)
{
    return (x - (x & DIGIT)) / (DIGIT + 1);
}

/* Leaves what a word should hold, and moves the rest up. */
static void carry(zero_exact *sum)
{
    for (int i = 0; i + 1 < ZERO_EXACT_DIGITS; i++) {
        sum->word[i + 1] += above(sum->word[i]);
        sum->word[i] &= DIGIT;
    }
}

/* *sum += x * 2^exponent, |x| < 2^62; carry() must follow. */
static void add(zero_exact *sum, int64_t x, int exponent)
{
    const int at = exponent - LOWEST, digit = at / DIGIT_BITS;
    const int64_t scale = INT64_C(1) << at % DIGIT_BITS;
    const int64_t lower = (x & DIGIT) * scale, upper = above(x) * scale;
    sum->word[digit] += lower & DIGIT;
    sum->word[digit + 1] += above(lower) + (upper & DIGIT);
    sum->word[digit + 2] += above(upper);
}

/* x = m 2^e, so x^2 = m^2 2^2e. Numbers that are not finite are only counted. */
static void add_square(zero_exact *sum, float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int64_t fraction = bits & 0x7fffff;
    const int exponent = (int)(bits >> 23 & 0xff);
    if (exponent == 0xff) {
        sum->word[fraction ? NANS : INFINITIES]++;
        return;
    }
    const int64_t m = exponent > 0 ? fraction + 0x800000 : fraction;
    const int e = (exponent > 0 ? exponent : 1) - 150;
    add(sum, m * m, 2 * e);
}

void zero_exact_add_square(zero_exact *sum, float x)
{
    add_square(sum, x);
    carry(sum);
}

/* Numbers that are too far apart are divided: gradients of rare words lie beside those of
 * frequent ones. */
static void add_piece(zero_exact *sum, zero_type type, int64_t n, const void *x)
{
    zero_vector_windows part;
    if (zero_vector_kernels_best()->exact_squares(type, n, x, &part)) {
        for (int w = 0; w < ZERO_VECTOR_WINDOWS; w++)
            add(sum, part.count[w], part.exponent[w]);
    } else if (n <= SHORT) {
        float wide[SHORT];
        zero_convert(type, ZERO_FP32, n, x, wide);
        for (int64_t i = 0; i < n; i++) add_square(sum, wide[i]);
    } else {
        add_piece(sum, type, n / 2, x);
        add_piece(sum, type, n - n / 2, zero_type_at(type, x, n / 2));
    }
}

void zero_exact_add_squares(zero_exact *sum, zero_type type, int64_t n, const void *x)
{
    for (int64_t at = 0; at < n; at += ZERO_VECTOR_EXACT) {
        const int64_t len = zero_min(n - at, ZERO_VECTOR_EXACT);
        add_piece(sum, type, len, zero_type_at(type, x, at));
        carry(sum);
    }
}

void zero_exact_merge(zero_exact *sum, const zero_exact *more)
{
    for (int i = 0; i < ZERO_EXACT_WORDS; i++) sum->word[i] += more->word[i];
    carry(sum);
}

static uint64_t digit_at(const zero_exact *sum, int i)
{
    return i >= 0 ? (uint64_t)sum->word[i] : 0;
}

/* The leading 64 bits from the first digit on, of which the last is set as well if anything
 * is below them. The conversion to double then rounds as it would the whole. */
double zero_exact_value(const zero_exact *sum)
{
    zero_exact s = *sum;
    if (s.word[NANS] > 0) return NAN;
    if (s.word[INFINITIES] > 0) return INFINITY;
    carry(&s);
    int top = ZERO_EXACT_DIGITS - 1;
    while (top > 0 && s.word[top] == 0) top--;
    assert(0 <= s.word[top] && s.word[top] <= DIGIT && "more numbers than have room");
    if (s.word[top] == 0) return 0.0;
    const int zeros = __builtin_clzll(digit_at(&s, top)) - DIGIT_BITS;
    const uint64_t next = digit_at(&s, top - 2) << zeros;
    uint64_t leading = digit_at(&s, top) << DIGIT_BITS | digit_at(&s, top - 1);
    leading = leading << zeros | next >> DIGIT_BITS;
    bool below = (next & DIGIT) != 0;
    for (int i = top - 3; i >= 0; i--) below |= s.word[i] != 0;
    return ldexp((double)(leading | below), DIGIT_BITS * (top - 1) + LOWEST - zeros);
}
