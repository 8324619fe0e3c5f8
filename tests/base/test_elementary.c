/* test_elementary.c - functions whose bits no machine may change. */
#include "support/test.h"

#include <math.h>
#include <string.h>

#include "base/elementary.h"
#include "base/rng.h"

static const zero_rng rng = {.purpose = ZERO_RNG_TEST};

/* In units of the last place of the exact value. */
static double error_of(double got, long double exact)
{
    int exponent;
    frexpl(exact, &exponent);
    return (double)(fabsl((long double)got - exact) / ldexpl(1.0L, exponent - 53));
}

TEST(errors_are_below_two_units_in_the_last_place)
{
    for (uint64_t i = 0; i < 200000; i++) {
        const double u = zero_rng_uniform(&rng, 2 * i),
                     v = zero_rng_uniform(&rng, 2 * i + 1);
        const double positive = ldexp(0.5 + u, (int)(200.0 * v) - 100);
        const double power = 1400.0 * u - 700.0, angle = 2000.0 * (v - 0.5);
        double sine, cosine;
        zero_sine_cosine(angle, &sine, &cosine);
        const double worst = fmax(error_of(zero_log(positive), logl(positive)),
                                  error_of(zero_exp(power), expl(power)));
        const double turn =
            fmax(fabs(sine - (double)sinl(angle)), fabs(cosine - (double)cosl(angle)));
        if (!(worst < 2.0) || !(turn < 0x1p-52))
            fail_msg("%a, %a, %a: %g units, %g", positive, power, angle, worst, turn);
    }
    for (int64_t n = 0; n < 100; n++)
        assert_true(error_of(zero_power(0.9, n), powl(0.9, (long double)n)) < 100.0);
}

TEST(ends_are_those_of_the_c_library)
{
    assert_true(zero_log(1.0) == 0.0 && zero_exp(0.0) == 1.0 && zero_power(7.0, 0) == 1.0);
    assert_true(isinf(zero_log(0.0)) && zero_log(0.0) < 0.0 && isnan(zero_log(-1.0)));
    assert_true(isinf(zero_log(INFINITY)) && isnan(zero_log(NAN)) && isnan(zero_exp(NAN)));
    assert_true(zero_exp(-INFINITY) == 0.0 && zero_exp(-709.0) == 0.0);
    assert_true(isinf(zero_exp(INFINITY)) && isinf(zero_exp(710.0)));
    assert_true(error_of(zero_log(0x1p-1074), logl(0x1p-1074L)) < 2.0);
}

/* The sum of all bits of many results: the same number on every machine. */
TEST(bits_are_the_same_on_every_machine)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < 100000; i++) {
        const double u = zero_rng_uniform(&rng, i);
        double result[5] = {zero_log(u + 0x1p-60), zero_exp(40.0 * u - 20.0),
                            zero_power(u, 20)};
        zero_sine_cosine(100.0 * u, &result[3], &result[4]);
        for (int r = 0; r < 5; r++) {
            uint64_t bits;
            memcpy(&bits, &result[r], sizeof bits);
            sum = sum * 0x9e3779b97f4a7c15 + bits;
        }
    }
    assert_int_equal(sum, UINT64_C(0xd1eb38c90ccc113b));
}
