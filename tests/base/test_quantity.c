/* Numbers as people write them, and the table of a struct's fields. */

#include "support/test.h"

#include "base/field.h"
#include "base/quantity.h"

static void whole(const char *text, int64_t expected)
{
    int64_t number = -7;
    if (!zero_quantity_whole(text, &number) || number != expected)
        fail_msg("'%s' gave %lld", text, (long long)number);
}

static void not_whole(const char *text)
{
    int64_t number = -7;
    if (zero_quantity_whole(text, &number) || number != -7)
        fail_msg("'%s' gave %lld", text, (long long)number);
}

TEST(suffixes_are_powers_of_1000_and_with_i_of_1024)
{
    whole("0", 0);
    whole("-12", -12);
    whole("8K", 8000);
    whole("8KB", 8000);
    whole("8KiB", 8192);
    whole("4MiB", INT64_C(4) << 20);
    whole("8GB", INT64_C(8000000000));
    whole("8GiB", INT64_C(8) << 30);
    whole("2T", INT64_C(2000000000000));
    whole("2TiB", INT64_C(2) << 40);
    whole("9223372036854775807", INT64_MAX);
}

TEST(fractions_count_where_the_result_is_whole)
{
    whole("1.5K", 1500);
    whole("1.5GiB", INT64_C(3) << 29);
    whole("0.5KiB", 512);
    whole("0.001K", 1);
    not_whole("1.5");
    not_whole("0.0001K");
    not_whole("1.1KiB");
    not_whole("1.");
    not_whole("1.K");
}

TEST(other_texts_are_no_numbers)
{
    const char *texts[] = {"",
                           "K",
                           "-",
                           "8k",
                           "8KIB",
                           "8Ki",
                           "8B",
                           "8 K",
                           " 8",
                           "0x10",
                           "1e3",
                           "8GBB",
                           "+8",
                           "--8",
                           "1.2.3",
                           "8P",
                           "9223372036854775808",
                           "9223372036854775807K"};
    for (size_t i = 0; i < COUNT(texts); i++) not_whole(texts[i]);
}

TEST(only_rates_among_reals_have_a_suffix)
{
    double x = 0.0;
    assert_true(zero_quantity_real("3e-4", &x) && fabs(x - 3e-4) < 1e-19);
    assert_true(zero_quantity_rate("12.5G", &x) && fabs(x - 12.5e9) < 1e-3);
    assert_true(zero_quantity_rate("1KiB", &x) && fabs(x - 1024.0) < 1e-9);
    assert_true(zero_quantity_rate("1e-6", &x) && fabs(x - 1e-6) < 1e-20);
    x = 5.0;
    const char *not_real[] = {"0.5K", "", "nan", "inf", "0x1p3", "1e999", "1.5 ", "x"};
    for (size_t i = 0; i < COUNT(not_real); i++)
        assert_false(zero_quantity_real(not_real[i], &x));
    const char *not_rate[] = {"", "G", "nan", "inf", "0x1p3K", "1e999", "1.5P", "1e308T"};
    for (size_t i = 0; i < COUNT(not_rate); i++)
        if (zero_quantity_rate(not_rate[i], &x)) fail_msg("'%s' is a rate", not_rate[i]);
    assert_true(x > 4.9 && x < 5.1);
}

typedef struct {
    bool flag;
    int count;
    zero_field_kind kind;
    int64_t whole;
    double real;
    const char *text;
} sample;

static const zero_field fields[] = {
    ZERO_FIELD(sample, flag),  ZERO_FIELD(sample, count), ZERO_FIELD(sample, kind),
    ZERO_FIELD(sample, whole), ZERO_FIELD(sample, real),  ZERO_FIELD(sample, text),
};

TEST(a_field_reads_as_a_user_would_write_it)
{
    const sample s = {true, -3, ZERO_FIELD_REAL, INT64_C(1) << 40, 0.1, "slice"};
    const char *expected[] = {"on", "-3", "3", "1099511627776", "0.1", "slice"};
    for (size_t i = 0; i < COUNT(fields); i++) {
        char text[ZERO_FIELD_TEXT_BYTES];
        zero_field_write(&fields[i], &s, text);
        assert_string_equal(text, expected[i]);
    }
    assert_string_equal(fields[4].name, "real");
}

TEST(every_field_tells_two_structs_apart)
{
    const sample a = {true, -3, ZERO_FIELD_REAL, INT64_C(1) << 40, 0.1, "slice"};
    const sample c = {false, 3, ZERO_FIELD_INT, 1, nextafter(0.1, 1.0), NULL};
    for (size_t i = 0; i < COUNT(fields); i++) {
        char one[ZERO_FIELD_TEXT_BYTES], other[ZERO_FIELD_TEXT_BYTES];
        zero_field_write(&fields[i], &a, one);
        zero_field_write(&fields[i], &c, other);
        assert_string_not_equal(one, other);
    }
}

TEST(seconds_have_units_and_the_suffixes_of_rates)
{
    static const struct {
        const char *text;
        double seconds;
    } cases[] = {{"1us", 1e-6},  {"2ms", 2e-3},    {"1.5us", 1.5e-6},
                 {"30ns", 3e-8}, {"5s", 5.0},      {"0", 0.0},
                 {"1e-6", 1e-6}, {"1e-3ms", 1e-6}, {"1K", 1000.0}};
    static const char *const not_seconds[] = {"",    "us",   "1h",   "1u",  "1mss", "1 us",
                                              "1Ms", "nans", "0x1s", "1uS", "inf"};
    double x = 0.0;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_true(zero_quantity_seconds(cases[i].text, &x));
        assert_true(x == cases[i].seconds);
    }
    for (size_t i = 0; i < COUNT(not_seconds); i++)
        if (zero_quantity_seconds(not_seconds[i], &x))
            fail_msg("'%s' is a time", not_seconds[i]);
}
