/* The conversions of half.h against a second way to round, for a sample of all floats, or for all
 * of them: test_half all. */

#define TEST_HAS_MAIN
#include "support/test.h"

#include "base/half.h"
#include "base/type.h"
#include "base/vector.h"
#include "support/share.h"

#define CHUNK 16384

static float float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* x / 2^shift, to nearest even, by looking at the bits cut off. 1 <= shift <= 31 */
static inline uint32_t shift_right(uint32_t x, uint32_t shift)
{
    uint32_t kept = x >> shift, cut = x & ((1u << shift) - 1), tie = 1u << (shift - 1);
    return kept + (cut > tie || (cut == tie && (kept & 1)));
}

static inline uint16_t bf16_of(uint32_t bits)
{
    uint32_t sign = bits & 0x80000000u, magnitude = bits ^ sign;
    uint32_t half = magnitude < 1u << 23 ? 0 : shift_right(magnitude, 16);
    half = magnitude > 255u << 23 ? magnitude >> 16 | 1 << 6 : half;
    return (uint16_t)(sign >> 16 | half);
}

static inline uint16_t fp16_of(uint32_t bits)
{
    uint32_t sign = bits & 0x80000000u, magnitude = bits ^ sign;
    int32_t exponent = (int32_t)(magnitude >> 23) - 127;
    /* in units of 2^(exponent - 23) */
    uint32_t fraction = (magnitude & 0x7fffff) | 1u << 23;
    int32_t below = -14 - exponent; /* bits that a denormal lacks */
    uint32_t shift = below <= 0 ? 13 : below < 18 ? (uint32_t)(13 + below) : 31;
    uint32_t units = exponent < -126 ? 0 : shift_right(fraction, shift);
    uint32_t half = below > 0 ? units : units + ((uint32_t)(exponent + 14) << 10);
    half = exponent > 15 || half > 31 << 10 ? 31 << 10 : half;
    half = magnitude > 255u << 23 ? 31 << 10 | 1 << 9 | (magnitude >> 13 & 0x3ff) : half;
    return (uint16_t)(sign >> 16 | half);
}

static void convert_by(const zero_vector_kernels *kernels, zero_type from, zero_type to,
                       int64_t n, const void *in, void *out)
{
    zero_vector_sum alone = {.type = from, .a = in};
    kernels->sum(&alone, n, to, out, false);
}

static bool chunk_agrees(uint32_t first, uint32_t stride)
{
    float in[CHUNK];
    uint16_t want_bf16[CHUNK], want_fp16[CHUNK], got[CHUNK];
    const zero_vector_kernels *kernels;
    bool same = true;
    for (uint32_t i = 0; i < CHUNK; i++) {
        uint32_t bits = first + i * stride;
        memcpy(&in[i], &bits, sizeof bits);
        want_bf16[i] = bf16_of(bits);
        want_fp16[i] = fp16_of(bits);
    }
    for (int i = 0; i < CHUNK; i++) {
        same &= zero_to_bf16(in[i]) == want_bf16[i];
        same &= zero_to_fp16(in[i]) == want_fp16[i];
    }
    for (int k = 0; (kernels = zero_vector_kernels_at(k)); k++) {
        convert_by(kernels, ZERO_FP32, ZERO_BF16, CHUNK, in, got);
        same &= memcmp(got, want_bf16, sizeof got) == 0;
        convert_by(kernels, ZERO_FP32, ZERO_FP16, CHUNK, in, got);
        same &= memcmp(got, want_fp16, sizeof got) == 0;
    }
    return same;
}

/* Checks from 0 on; an odd stride meets every pattern of low bits. */
static void check_floats(uint32_t stride)
{
    uint64_t step = (uint64_t)CHUNK * stride;
    for (uint64_t first = 0; first < UINT64_C(1) << 32; first += step)
        if (!chunk_agrees((uint32_t)first, stride))
            fail_msg("among floats with bits %#llx on, each %u", (unsigned long long)first,
                     stride);
}

TEST(every_instruction_set_rounds_a_sample_of_floats_as_defined)
{
    check_floats(61 * TEST_SHARE(7));
}

static void every_instruction_set_rounds_all_floats_as_defined(void **state)
{
    (void)state;
    check_floats(1);
}

TEST(rounding_happens_where_it_was_worked_out_by_hand)
{
    static const struct {
        float x;
        uint16_t bf16, fp16;
    } known[] = {
        {0.0f, 0x0000, 0x0000},
        {-0.0f, 0x8000, 0x8000},
        {1.0f, 0x3f80, 0x3c00},
        {-2.0f, 0xc000, 0xc000},
        {0x1.01p0f, 0x3f80, 0x3c04},        /* bf16: a tie, down to even */
        {0x1.03p0f, 0x3f82, 0x3c0c},        /* bf16: a tie, up to even */
        {0x1.010002p0f, 0x3f81, 0x3c04},    /* bf16: a little above the tie */
        {0x1.002p0f, 0x3f80, 0x3c00},       /* fp16: a tie, down */
        {0x1.006p0f, 0x3f80, 0x3c02},       /* fp16: a tie, up */
        {65504.0f, 0x4780, 0x7bff},         /* fp16: the largest */
        {0x1.ffdffep15f, 0x4780, 0x7bff},   /* just below 65520 */
        {65520.0f, 0x4780, 0x7c00},         /* the tie with infinity */
        {0x1.fffffep127f, 0x7f80, 0x7c00},  /* FLT_MAX is above bf16's range, too */
        {0x1.fep127f, 0x7f7f, 0x7c00},      /* bf16: the largest */
        {0x1p-14f, 0x3880, 0x0400},         /* fp16: the smallest normal */
        {0x1.ff8p-15f, 0x3880, 0x03ff},     /* and the largest denormal */
        {0x1p-24f, 0x3380, 0x0001},         /* fp16: the smallest */
        {0x1p-25f, 0x3300, 0x0000},         /* a tie, down to zero */
        {0x1.8p-24f, 0x33c0, 0x0002},       /* a tie, up to even */
        {-0x1.000002p-25f, 0xb300, 0x8001}, /* a little more than the tie */
        {0x1p-126f, 0x0080, 0x0000},        /* bf16: the smallest normal */
        {0x1.fffffcp-127f, 0x0000, 0x0000}, /* a denormal next to it: flushed */
        {-0x1p-127f, 0x8000, 0x8000},       /* bf16 has it; flushed all the same */
        {INFINITY, 0x7f80, 0x7c00},
        {-INFINITY, 0xff80, 0xfc00},
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        assert_int_equal(zero_to_bf16(known[i].x), known[i].bf16);
        assert_int_equal(zero_to_fp16(known[i].x), known[i].fp16);
    }
    /* The quiet bit is set, sign and upper payload stay. */
    assert_int_equal(zero_to_bf16(float_of(0x7f800001)), 0x7fc0);
    assert_int_equal(zero_to_bf16(float_of(0xffa10000)), 0xffe1);
    assert_int_equal(zero_to_fp16(float_of(0x7f800001)), 0x7e00);
    assert_int_equal(zero_to_fp16(float_of(0xffa02000)), 0xff01);
}

/* The value of a 16-bit number, from its fields. */
static float value_of(uint16_t half, int exponent_bits)
{
    int mantissa_bits = 15 - exponent_bits, top = (1 << exponent_bits) - 1;
    int exponent = half >> mantissa_bits & top,
        mantissa = half & ((1 << mantissa_bits) - 1);
    double one = 1 << mantissa_bits, sign = half & 0x8000 ? -1.0 : 1.0;
    int bias = top / 2;
    if (exponent == top) return mantissa ? NAN : (float)sign * INFINITY;
    if (exponent == 0) return (float)(sign * ldexp(mantissa / one, 1 - bias));
    return (float)(sign * ldexp(1.0 + mantissa / one, exponent - bias));
}

TEST(all_16_bit_numbers_widen_to_their_value)
{
    for (uint32_t i = 0; i < 65536; i++) {
        uint16_t half = (uint16_t)i;
        float bf16 = value_of(half, 8), fp16 = value_of(half, 5);
        if (isnan(bf16))
            assert_true(bits_of(zero_from_bf16(half)) == i << 16);
        else
            assert_true(bits_of(zero_from_bf16(half)) == bits_of(bf16));
        if (isnan(fp16)) { /* quiet, with sign and payload */
            uint32_t want = (i & 0x8000) << 16 | 0x7fc00000 | (i & 0x3ff) << 13;
            assert_true(bits_of(zero_from_fp16(half)) == want);
        } else {
            assert_true(bits_of(zero_from_fp16(half)) == bits_of(fp16));
        }
    }
}

TEST(every_instruction_set_widens_as_defined)
{
    uint16_t in[65536];
    float got[65536];
    const zero_vector_kernels *kernels;
    for (uint32_t i = 0; i < 65536; i++) in[i] = (uint16_t)i;
    for (int k = 0; (kernels = zero_vector_kernels_at(k)); k++) {
        convert_by(kernels, ZERO_BF16, ZERO_FP32, 65536, in, got);
        for (int i = 0; i < 65536; i++)
            assert_true(bits_of(got[i]) == bits_of(zero_from_bf16(in[i])));
        convert_by(kernels, ZERO_FP16, ZERO_FP32, 65536, in, got);
        for (int i = 0; i < 65536; i++)
            assert_true(bits_of(got[i]) == bits_of(zero_from_fp16(in[i])));
    }
}

/* Except NaN, which becomes quiet, and bf16's denormals, which become zero. */
TEST(widened_numbers_round_back_to_themselves)
{
    for (uint32_t i = 0; i < 65536; i++) {
        uint16_t half = (uint16_t)i;
        uint16_t flushed = i & 0x7f80 ? half : (uint16_t)(i & 0x8000);
        if (!isnan(value_of(half, 8)))
            assert_int_equal(zero_to_bf16(zero_from_bf16(half)), flushed);
        if (!isnan(value_of(half, 5)))
            assert_int_equal(zero_to_fp16(zero_from_fp16(half)), half);
    }
}

#if defined(__FLT16_MANT_DIG__) && !defined(__clang__) /* Clang names it, and may lack it */
TEST(fp16_is_the_compilers)
{
    __extension__ typedef _Float16 half;
    for (uint64_t bits = 0; bits < UINT64_C(1) << 32; bits += 40009) {
        float x = float_of((uint32_t)bits);
        half h = (half)x;
        uint16_t want;
        memcpy(&want, &h, sizeof want);
        if (isnan(x)) continue;
        assert_int_equal(zero_to_fp16(x), want);
        assert_true(bits_of(zero_from_fp16(want)) == bits_of((float)h));
    }
}
#else
TEST(fp16_is_the_compilers)
{
    skip();
}
#endif

#define MOST 70

/* One number, by the functions for single numbers. */
static void convert_one(zero_type from, zero_type to, const char *in, char *out)
{
    float x;
    uint16_t half;
    memcpy(&half, in, sizeof half);
    if (from == ZERO_FP32) memcpy(&x, in, sizeof x);
    if (from == ZERO_BF16) x = zero_from_bf16(half);
    if (from == ZERO_FP16) x = zero_from_fp16(half);
    if (to == ZERO_BF16) half = zero_to_bf16(x);
    if (to == ZERO_FP16) half = zero_to_fp16(x);
    if (to == ZERO_FP32) memcpy(out, &x, sizeof x);
    if (to != ZERO_FP32) memcpy(out, from == to ? in : (char *)&half, sizeof half);
}

static void check_convert(zero_type from, zero_type to, size_t n, size_t offset)
{
    size_t from_size = zero_type_size(from), to_size = zero_type_size(to);
    _Alignas(64) char in[(MOST + 32) * 4], out[(MOST + 32) * 4], want[(MOST + 32) * 4];
    for (size_t i = 0; i < sizeof in; i++) in[i] = (char)(i * i * 37 + i * 11 + 5);
    memset(out, 0x55, sizeof out);
    memset(want, 0x55, sizeof want);
    const char *from_here = in + offset * from_size;
    size_t to_here = (31 - offset) * to_size;
    for (size_t i = 0; i < n; i++)
        convert_one(from, to, from_here + i * from_size, want + to_here + i * to_size);
    zero_convert(from, to, (int64_t)n, from_here, out + to_here);
    assert_memory_equal(out, want, sizeof out); /* and nothing next to it */
    if (from_size != to_size) return;
    zero_convert(from, to, (int64_t)n, from_here, in + offset * from_size);
    assert_memory_equal(from_here, want + to_here, n * to_size);
}

TEST(any_length_at_any_place_converts_alike)
{
    for (int from = ZERO_FP32; from <= ZERO_FP16; from++)
        for (int to = ZERO_FP32; to <= ZERO_FP16; to++)
            for (size_t n = 0; n <= MOST; n++)
                for (size_t offset = 0; offset < 32; offset++)
                    check_convert((zero_type)from, (zero_type)to, n, offset);
}

TEST(types_have_names_by_which_they_are_found_and_sizes)
{
    static const char *const names[] = {"fp32", "bf16", "fp16"};
    zero_type found;
    for (int t = 0; t < ZERO_TYPES; t++) {
        found = (zero_type)((t + 1) % ZERO_TYPES);
        assert_string_equal(zero_type_name((zero_type)t), names[t]);
        assert_int_equal(zero_type_size((zero_type)t), t == ZERO_FP32 ? 4 : 2);
        assert_true(zero_type_find(names[t], &found) && found == (zero_type)t);
    }
    found = ZERO_BF16;
    assert_false(zero_type_find("fp64", &found) || zero_type_find("", &found));
    assert_int_equal(found, ZERO_BF16);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest sweep[] = {
        cmocka_unit_test(every_instruction_set_rounds_all_floats_as_defined)};
    if (argc > 1 && strcmp(argv[1], "all") == 0)
        return cmocka_run_group_tests(sweep, NULL, NULL);
    return run_here(NULL, NULL);
}
