/* Expressions over a tree: each line is an expression and what it gives. */
#define TEST_HAS_MAIN
#include "support/table.h"

#include "facts/csv.h"
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

TEST(expressions_give_their_values)
{
    for (test_table t = table_open("facts/numbers.txt"); table_next(&t);) {
        double number = zero_fact_number(tree, t.field[0]);
        if (number != strtod(t.field[1], NULL)) fail_msg("%s: %g", t.field[0], number);
    }
    assert_true(isnan(zero_fact_number(tree, "none")));
    assert_true(isnan(zero_fact_number(tree, "largest(absent, x)")));
}

/* What cannot be calculated is an error that says why. */
TEST(errors_say_what_is_wrong)
{
    for (test_table t = table_open("facts/errors.txt"); table_next(&t);) {
        zero_fact fact;
        assert_fails(zero_fact_of(t.field[0], strlen(t.field[0]),
                                  &(zero_scope){.node = tree}, &fact),
                     ZERO_ERR_FORMAT, t.field[1]);
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

TEST(rows_of_csv_have_names_quotes_and_nothing_for_what_is_missing)
{
    json_t *study = json_pack("{s:s, s:[{s:i, s:s, s:f, s:[s, s]}, {s:i, s:n, s:b}]}",
                              "scaling", "weak", "points", "n", 1, "text", "a \"b\", c",
                              "x", 0.1, "hosts", "p", "q", "n", 2, "x", "text", 1);
    const zero_scope outer = {.node = study};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    zero_csv_rows("scaling; n; said = text; x; twice = 2 * x; hosts; is? = n > 1", ".9g",
                  json_object_get(study, "points"), &outer, true, out);
    assert_int_equal(fclose(out), 0);
    assert_string_equal(text, "scaling,n,said,x,twice,hosts,is\n"
                              "weak,1,\"a \"\"b\"\", c\",0.1,0.2,p q,false\n"
                              "weak,2,true,,,,true\n");
    free(text);
    json_decref(study);
}

TEST(units_write_numbers)
{
    char text[80];
    for (test_table t = table_open("facts/units.txt"); table_next(&t);) {
        zero_fact fact = {.kind = ZERO_FACT_NUMBER, .number = strtod(t.field[0], NULL)};
        assert_true(zero_unit_write(&fact, t.field[1], text, sizeof text));
        assert_string_equal(text, t.field[2]);
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
