#include "base/reduction.h"

#include "base/number.h"

#define TILE 512 /* numbers */

zero_status zero_reduction_check(zero_reduction reduction, zero_number number)
{
    static const char *const names[] = {"sum",      "mean", "product", "least",
                                        "greatest", "and",  "or",      "xor"};
    ZERO_INVALID_IF(zero_number_size(number) == 0 || (unsigned)reduction > ZERO_XOR,
                    "reduction %d of numbers of type %d: expected those of zero/number.h",
                    (int)reduction, (int)number);
    bool is_float = number <= ZERO_NUMBER_FP64;
    ZERO_FAIL_IF(!(is_float ? reduction < ZERO_AND : reduction != ZERO_MEAN),
                 ZERO_ERR_UNSUPPORTED, "the %s of %s: expected sum, %s", names[reduction],
                 zero_number_name(number),
                 is_float ? "mean, product, least or greatest"
                          : "product, least, greatest, and, or, xor");
    return ZERO_OK;
}

/* ---- in double ---- */

static void read_floats(zero_number number, int64_t n, const void *in, double *out)
{
    float narrow[TILE];
    if (number == ZERO_NUMBER_FP64) {
        zero_copy(out, in, n);
        return;
    }
    zero_convert((zero_type)number, ZERO_FP32, n, in, narrow);
    for (int64_t i = 0; i < n; i++) out[i] = (double)narrow[i];
}

static void write_floats(zero_number number, int64_t n, const double *in, void *out)
{
    float narrow[TILE];
    if (number == ZERO_NUMBER_FP64) {
        memcpy(out, in, (size_t)n * sizeof *in);
        return;
    }
    for (int64_t i = 0; i < n; i++) narrow[i] = (float)in[i];
    zero_convert(ZERO_FP32, (zero_type)number, n, narrow, out);
}

static void combine_floats(zero_reduction reduction, int64_t n, const double *x, double *to)
{
    switch (reduction) {
    case ZERO_PRODUCT:
        for (int64_t i = 0; i < n; i++) to[i] *= x[i];
        break;
    case ZERO_LEAST:
        for (int64_t i = 0; i < n; i++) to[i] = fmin(to[i], x[i]);
        break;
    case ZERO_GREATEST:
        for (int64_t i = 0; i < n; i++) to[i] = fmax(to[i], x[i]);
        break;
    default:
        for (int64_t i = 0; i < n; i++) to[i] += x[i];
    }
}

/* ---- in int64 ---- */

static void read_integers(zero_number number, int64_t n, const void *in, int64_t *out)
{
    switch (number) {
    case ZERO_NUMBER_INT8:
        for (int64_t i = 0; i < n; i++) out[i] = ((const int8_t *)in)[i];
        break;
    case ZERO_NUMBER_UINT8:
        for (int64_t i = 0; i < n; i++) out[i] = ((const uint8_t *)in)[i];
        break;
    case ZERO_NUMBER_INT16:
        for (int64_t i = 0; i < n; i++) out[i] = ((const int16_t *)in)[i];
        break;
    case ZERO_NUMBER_INT32:
        for (int64_t i = 0; i < n; i++) out[i] = ((const int32_t *)in)[i];
        break;
    default: zero_copy(out, in, n);
    }
}

static void write_integers(zero_number number, int64_t n, const int64_t *in, void *out)
{
    switch (zero_number_size(number)) {
    case 1:
        for (int64_t i = 0; i < n; i++) ((uint8_t *)out)[i] = (uint8_t)in[i];
        break;
    case 2:
        for (int64_t i = 0; i < n; i++) ((uint16_t *)out)[i] = (uint16_t)in[i];
        break;
    case 4:
        for (int64_t i = 0; i < n; i++) ((uint32_t *)out)[i] = (uint32_t)in[i];
        break;
    default: memcpy(out, in, (size_t)n * sizeof *in);
    }
}

static int64_t combine_integers(zero_reduction reduction, int64_t a, int64_t b)
{
    switch (reduction) {
    case ZERO_PRODUCT: return (int64_t)((uint64_t)a * (uint64_t)b);
    case ZERO_LEAST: return zero_min(a, b);
    case ZERO_GREATEST: return zero_max(a, b);
    case ZERO_AND: return a & b;
    case ZERO_OR: return a | b;
    case ZERO_XOR: return a ^ b;
    default: return (int64_t)((uint64_t)a + (uint64_t)b);
    }
}

/* ---- tile by tile ---- */

/* What an element of a tile is added up in. */
typedef union {
    double floats[TILE];
    int64_t integers[TILE];
} tile;

static void read_tile(zero_number number, int64_t n, const void *in, tile *out)
{
    if (number <= ZERO_NUMBER_FP64)
        read_floats(number, n, in, out->floats);
    else
        read_integers(number, n, in, out->integers);
}

static void in_turn(zero_reduction reduction, zero_number number, int n,
                    const zero_tree_term *terms, int64_t at, int64_t len, int divisor,
                    void *out)
{
    const size_t skip = (size_t)at * zero_number_size(number);
    tile sum, x;
    read_tile(number, len, (const char *)terms[0].data + skip, &sum);
    for (int t = 1; t < n; t++) {
        read_tile(number, len, (const char *)terms[t].data + skip, &x);
        if (number <= ZERO_NUMBER_FP64)
            combine_floats(reduction, len, x.floats, sum.floats);
        else
            for (int64_t i = 0; i < len; i++)
                sum.integers[i] =
                    combine_integers(reduction, sum.integers[i], x.integers[i]);
    }
    for (int64_t i = 0; reduction == ZERO_MEAN && i < len; i++) sum.floats[i] /= divisor;
    if (number <= ZERO_NUMBER_FP64)
        write_floats(number, len, sum.floats, (char *)out + skip);
    else
        write_integers(number, len, sum.integers, (char *)out + skip);
}

void zero_reduce_terms(zero_reduction reduction, zero_number number, int n,
                       const zero_tree_term *terms, int64_t len, int divisor, void *out)
{
    for (int64_t at = 0; at < len; at += TILE)
        in_turn(reduction, number, n, terms, at, zero_min(len - at, TILE), divisor, out);
}
