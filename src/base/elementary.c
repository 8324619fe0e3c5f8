#include "base/elementary.h"

/* ln 2 in two parts: products of the first with integers below 2^11 are exact. */
#define LN2_HIGH 0x1.62e42fefa38p-1
#define LN2_LOW  0x1.ef35793c7673p-45

/* x = 2^n m with sqrt(1/2) <= m < sqrt(2); log m = 2 artanh(s), s = (m - 1) / (m + 1). */
double zero_log(double x)
{
    if (!(x > 0.0)) return x == 0.0 ? -INFINITY : NAN;
    if (x > 1.7976931348623157e308) return x;
    int exponent;
    double m = 2.0 * frexp(x, &exponent);
    if (m > 0x1.6a09e667f3bcdp+0)
        m *= 0.5;
    else
        exponent--;
    const double f = m - 1.0, s = f / (m + 1.0), z = s * s, n = exponent;
    double p = 1.0 / 23.0;
    for (int k = 21; k >= 3; k -= 2) p = p * z + 1.0 / k;
    /* 2 s = f - s f */
    return n * LN2_HIGH + (f - (s * (f - 2.0 * z * p) - n * LN2_LOW));
}

/* x = n ln 2 + r, |r| <= ln(2)/2 */
double zero_exp(double x)
{
    if (!(x > -708.0)) return x <= -708.0 ? 0.0 : x;
    if (x > 709.7) return INFINITY;
    const double rounding = 0x1.8p52, shifted = x * 0x1.71547652b82fep+0 + rounding;
    const double n = shifted - rounding, r = x - n * LN2_HIGH - n * LN2_LOW;
    double p = 1.0;
    for (int k = 14; k >= 3; k--) p = p * r / k + 1.0; /* 1 + r/3 (1 + r/4 (...)) */
    return ldexp(1.0 + (r + 0.5 * r * r * p), (int)n);
}
