/* Expressions over a tree: each line is an expression and what it gives. */
#define TEST_HAS_MAIN
#include "support/test.h"

#include "facts/facts.h"

static json_t *tree;

static int set_up(void **state)
{
    (void)state;
    tree = json_loads(
        "{\"ranks\": 3, \"dtype\": \"bf16\", \"device\": false, \"none\": null, \"psi\": "
        "1.5,"
        " \"big\": 9007199254740993, \"classes\": {\"key cache\": {\"peak\": 7}},"
        " \"stages\": [{\"sent\": 10, \"x\": 1}, {\"sent\": 30}, {\"sent\": 20, \"ranks\": "
        "5}]}",
        0, NULL);
    return tree ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    json_decref(tree);
    return 0;
}

static const struct {
    const char *expression;
    double value;
} numbers[] = {
    {"ranks", 3},
    {"1 + 2 * 3", 7},
    {"(1 + 2) * 3", 9},
    {"10 - 4 - 3", 3},
    {"12 / 3 / 2", 2},
    {"-ranks + 1", -2},
    {"-2 * 3", -6},
    {"ranks - 1", 2},
    {"1e3 * psi", 1500},
    {"stages/1/sent", 30},
    {"classes/key~cache/peak", 7},
    {"ranks == 3 && dtype == \"bf16\"", 1},
    {"dtype == \"fp32\"", 0},
    {"dtype != \"fp32\"", 1},
    {"device", 0},
    {"!device", 1},
    {"ranks > 1 ? 5 : 6", 5},
    {"ranks > 3 ? 5 : ranks == 3 ? 8 : 6", 8},
    {"absent == 1", 0},
    {"absent < 1", 0},
    {"or(absent, 4)", 4},
    {"or(ranks, 4)", 3},
    {"count(stages)", 3},
    {"count(classes)", 1},
    {"count(absent)", 0},
    {"sum(stages, sent)", 60},
    {"sum(stages, sent + ranks)", 71},
    {"sum(stages, index)", 3},
    {"largest(stages, sent)", 30},
    {"least(stages, sent)", 10},
    {"any(stages, x)", 1},
    {"count(first(stages, sent == 20)) == 2", 1},
    {"count(first(stages, sent > 10))", 1},
    {"or(first(stages, sent > 30), 4)", 4},
    {"all(stages, x)", 0},
    {"all(absent, sent)", 1},
    {"sum(absent, sent / (1 + 2))", 0},
    {"min(ranks, 2) + max(ranks, 2)", 5},
    {"ceil(psi) + floor(psi) + abs(0 - 1)", 4},
    {"log2(8)", 3},
    {"none == none", 0},
    {"true", 1},
};

TEST(expressions_give_their_values)
{
    for (size_t i = 0; i < COUNT(numbers); i++)
        if (zero_fact_number(tree, numbers[i].expression) != numbers[i].value)
            fail_msg("%s: %g", numbers[i].expression,
                     zero_fact_number(tree, numbers[i].expression));
    assert_true(isnan(zero_fact_number(tree, "none")));
    assert_true(isnan(zero_fact_number(tree, "largest(absent, x)")));
}

/* What cannot be calculated is an error that says why. */
TEST(errors_say_what_is_wrong)
{
    static const char *const cases[][2] = {
        {"absent + 1", "missing"},     {"dtype * 2", "no number"},
        {"1 +", "expected a fact"},    {"(1", "expected )"},
        {"cosine(1)", "function"},     {"1 2", "expected the end"},
        {"\"a", "has no end"},         {"1 ? 2", "expected :"},
        {"sum(stages, x)", "missing"}, {"min(1)", "expected ,"},
        {"stages + 1", "no number"},   {"", "expected a fact"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        zero_fact fact;
        zero_status st = zero_fact_of(cases[i][0], strlen(cases[i][0]),
                                      &(zero_scope){.node = tree}, &fact);
        if (st != ZERO_ERR_FORMAT || !strstr(zero_last_error(), cases[i][1]))
            fail_msg("%s: %d %s", cases[i][0], st, zero_last_error());
    }
}

TEST(facts_are_picked_into_an_object)
{
    json_t *from =
        json_pack("{s:i, s:{s:i, s:n}, s:s}", "a", 3, "b", "x", 7, "y", "c", "x");
    json_t *got = zero_facts_pick(&(zero_scope){.node = from},
                                  "a; twice = 2 * a; x = at(b, c); y = at(b, \"y\"); "
                                  "flag? = a == 3; text = a > 2 ? \"yes\" : \"no\"; none; "
                                  "inf = a / 0");
    json_t *wanted = json_pack("{s:i, s:f, s:i, s:n, s:b, s:s, s:n, s:n}", "a", 3, "twice",
                               6.0, "x", 7, "y", "flag", 1, "text", "yes", "none", "inf");
    assert_true(json_equal(got, wanted));
    json_t *each = zero_facts_each(from, "b", "name = key; value = item; of = a");
    json_t *both = json_pack("[{s:s, s:i, s:i}, {s:s, s:n, s:i}]", "name", "x", "value", 7,
                             "of", 3, "name", "y", "value", "of", 3);
    assert_true(json_equal(each, both));
    json_decref(each);
    json_decref(both);
    json_decref(from);
    json_decref(got);
    json_decref(wanted);
}

TEST(units_write_numbers)
{
    static const struct {
        double value;
        const char *unit, *text;
    } cases[] = {{1536, "bytes", "1.50 KiB"},
                 {512, "bytes", "512 B"},
                 {-2097152, "bytes", "-2.00 MiB"},
                 {0.0728, "seconds", "72.80 ms"},
                 {2e-5, "seconds", "20.00 us"},
                 {3.5, "seconds", "3.500 s"},
                 {0.0005, "ms", "0.5000"},
                 {0.0728, "ms", "72.80"},
                 {0.1234, "share", "12.3 %"},
                 {1, "s", ""},
                 {2, "s", "s"},
                 {2, "es", "es"},
                 {NAN, "bytes", "-"},
                 {NAN, ".3f", "-"},
                 {1234567.8, "grouped", "1\u202f234\u202f568"},
                 {-120000.0, "grouped", "-120\u202f000"},
                 {2.5, "grouped", "2.500"},
                 {6.2581, "number", "6.258"},
                 {1e16, "number", "1.000e+16"},
                 {1234.4, "whole", "1234"},
                 {0.5, ".3f", "0.500"},
                 {0.5, "+.1f", "+0.5"},
                 {0.25, "", "0.25"}};
    char text[80];
    for (size_t i = 0; i < COUNT(cases); i++) {
        zero_fact fact = {.kind = ZERO_FACT_NUMBER, .number = cases[i].value};
        assert_true(zero_unit_write(&fact, cases[i].unit, text, sizeof text));
        assert_string_equal(text, cases[i].text);
    }
    zero_fact big = {.kind = ZERO_FACT_NUMBER,
                     .number = 9007199254740993.0,
                     .node = json_object_get(tree, "big")};
    assert_true(zero_unit_write(&big, "", text, sizeof text));
    assert_string_equal(text, "9007199254740993");
    assert_false(zero_unit_write(&big, "parsecs", text, sizeof text));
    assert_false(zero_unit_write(&big, ".3s", text, sizeof text));
}

int main(void)
{
    return run_here(set_up, tear_down);
}
