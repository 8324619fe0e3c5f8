#include "base/quantity.h"

#include "base/number.h"

#define FRACTION_DIGITS 6 /* at most: times 1024^4 they fit 63 bits */

static size_t count_digits(const char *text)
{
    return strspn(text, "0123456789");
}

/* The factor of a suffix: 1 without one, 0 for an unknown one. */
static int64_t scale_of(const char *suffix)
{
    static const char units[] = "KMGT";
    if (*suffix == '\0') return 1;
    const char *unit = strchr(units, *suffix);
    bool is_binary = zero_same_text(suffix + 1, "iB");
    bool is_decimal = suffix[1] == '\0' || zero_same_text(suffix + 1, "B");
    if (!unit || (!is_binary && !is_decimal)) return 0;
    int64_t scale = 1;
    for (const char *u = units; u <= unit; u++) scale *= is_binary ? 1024 : 1000;
    return scale;
}

/* n digits after the decimal point, times the scale; -1 unless that is whole. */
static int64_t read_fraction(const char *digits, size_t n, int64_t scale)
{
    int64_t numerator = 0, denominator = 1;
    if (n == 0 || n > FRACTION_DIGITS) return -1;
    for (size_t i = 0; i < n; i++) {
        numerator = 10 * numerator + (digits[i] - '0');
        denominator *= 10;
    }
    return numerator * scale % denominator == 0 ? numerator * scale / denominator : -1;
}

bool zero_quantity_whole(const char *text, int64_t *number)
{
    bool is_negative = *text == '-';
    const char *digits = text + is_negative, *after = digits + count_digits(digits);
    const char *suffix = after;
    size_t n_fraction = 0;
    if (*after == '.') {
        n_fraction = count_digits(after + 1);
        suffix = after + 1 + n_fraction;
    }
    errno = 0;
    int64_t whole = strtoll(digits, NULL, 10), scale = scale_of(suffix);
    if (after == digits || errno != 0 || scale == 0) return false;
    int64_t fraction = suffix > after ? read_fraction(after + 1, n_fraction, scale) : 0;
    if (fraction < 0 || __builtin_mul_overflow(whole, scale, &whole) ||
        __builtin_add_overflow(whole, fraction, &whole))
        return false;
    *number = is_negative ? -whole : whole;
    return true;
}

/* A number before a suffix that begins with one of those letters. strtod() would take nan,
 * inf and hexadecimal, too. */
static bool read_decimal(const char *text, const char *letters, double *number,
                         const char **end)
{
    char *after;
    if (strspn(text, "0123456789+-.eE") < strcspn(text, letters)) return false;
    errno = 0;
    *number = strtod(text, &after);
    *end = after;
    return after != text && errno == 0 && isfinite(*number);
}

bool zero_quantity_real(const char *text, double *number)
{
    double read;
    const char *end;
    if (!read_decimal(text, "KMGT", &read, &end) || *end != '\0') return false;
    *number = read;
    return true;
}

bool zero_quantity_rate(const char *text, double *number)
{
    double read;
    const char *end;
    if (!read_decimal(text, "KMGT", &read, &end)) return false;
    read *= (double)scale_of(end);
    if (scale_of(end) == 0 || !isfinite(read)) return false;
    *number = read;
    return true;
}

bool zero_quantity_seconds(const char *text, double *seconds)
{
    static const struct {
        const char *suffix;
        double divisor; /* 1us is the number that 1e-6 is: 1e-6 itself is not exact */
    } units[] = {{"s", 1.0}, {"ms", 1e3}, {"us", 1e6}, {"ns", 1e9}};
    double read;
    const char *end;
    if (!read_decimal(text, "KMGTsmun", &read, &end)) return false;
    for (int i = 0; i < ZERO_COUNT(units); i++) {
        if (!zero_same_text(end, units[i].suffix)) continue;
        *seconds = read / units[i].divisor;
        return true;
    }
    return zero_quantity_rate(text, seconds);
}
