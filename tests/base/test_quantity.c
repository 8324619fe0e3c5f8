/* Numbers as people write them, and the table of a struct's fields. */

#include "support/table.h"

#include "base/field.h"
#include "base/quantity.h"

/* A text that is none leaves the number alone. */
static bool reads_whole(const char *text, const char *expected)
{
    int64_t number = -7;
    if (strcmp(expected, "none") == 0)
        return !zero_quantity_whole(text, &number) && number == -7;
    return zero_quantity_whole(text, &number) && number == strtoll(expected, NULL, 10);
}

static bool reads(bool (*read)(const char *text, double *x), const char *text,
                  const char *expected)
{
    double x = -7.0;
    if (strcmp(expected, "none") == 0) return !read(text, &x) && x == -7.0;
    return read(text, &x) && x == strtod(expected, NULL);
}

/* Suffixes are powers of 1000, and with i of 1024; fractions count where the result is whole; only
 * rates among reals have a suffix, and seconds have units, too. */
TEST(numbers_are_read_as_people_write_them)
{
    for (test_table t = table_open("base/quantities.txt"); table_next(&t);) {
        const char *kind = t.field[0], *text = t.field[1], *expected = t.field[2];
        if (!(*kind == 'w'   ? reads_whole(text, expected)
              : *kind == 's' ? reads(zero_quantity_seconds, text, expected)
                             : reads(strcmp(kind, "rate") == 0 ? zero_quantity_rate
                                                               : zero_quantity_real,
                                     text, expected)))
            fail_msg("%s '%s' is not %s", kind, text, expected);
    }
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
