

#include "support/table.h"

#include "io/json_input.h"

#define F "file.json"

static void assert_says(const char *text)
{
    assert_told(text);
    assert_told(F);
    for (const char *c = zero_last_error(); *c; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            fail_msg("'%s' holds a control character", zero_last_error());
}

/* Read from memory that ends with the text: a sanitizer sees one byte too many. */
static zero_status parse(const char *text, size_t len, json_t **root)
{
    char *exact = malloc(len);
    assert_true(len == 0 || exact);
    if (len > 0) memcpy(exact, text, len);
    zero_status st = zero_json_parse(F, exact, len, root);
    free(exact);
    return st;
}

static void refused(const char *text, size_t len, const char *reason)
{
    json_t *root = NULL;
    if (parse(text, len, &root) == ZERO_OK) fail_msg("taken: %.60s", text);
    assert_null(root);
    assert_says(reason);
}

static json_t *taken(const char *text)
{
    json_t *root = NULL;
    if (parse(text, strlen(text), &root) != ZERO_OK)
        fail_msg("%.60s: %s", text, zero_last_error());
    return root;
}

/* ---- texts ---- */

TEST(what_is_json_is_read)
{
    static const char *const texts[] = {
        "{}",
        "[]",
        "0",
        " -1 ",
        "\"\"",
        "null",
        "true",
        "[1.5e300, -0, 1e-400]",
        "{\"a\": {\"a\": [{\"a\": 1}]}}",
        "\t\r\n[ ]\n",
        "\"\\ud83d\\ude00\"",
        "\"\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80 \xf4\x8f\xbf\xbf\"",
        "\"[[[{{{\\\"[[[\"",
        "9223372036854775807",
        "-9223372036854775808"};
    for (size_t i = 0; i < COUNT(texts); i++) json_decref(taken(texts[i]));
}

TEST(texts_that_are_not_json_are_refused_with_place_and_reason)
{
    for (test_table t = table_open("io/not_json.txt"); table_next(&t);)
        refused(t.field[0], strlen(t.field[0]), t.field[1]);
    refused("[1,\0 2]", 7, "at byte 3 of the JSON: expected text, found a NUL byte");
    refused("{}\0", 3, "at byte 2 of the JSON: expected text, found a NUL byte");
}

TEST(deep_nesting_is_refused_before_it_eats_the_stack)
{
    enum { DEEP = 200000 };
    char *text = malloc(5 * DEEP + 1);
    assert_non_null(text);
    memset(text, '[', DEEP);
    refused(text, DEEP,
            "at byte 64 of the JSON: expected lists and objects nested at most 64 deep");
    for (int i = 0; i < DEEP; i++) memcpy(text + 5 * i, "{\"a\":", 5);
    refused(text, 5 * DEEP,
            "at byte 320 of the JSON: expected lists and objects nested at most 64 deep");

    memset(text, '[', ZERO_JSON_DEPTH);
    memset(text + ZERO_JSON_DEPTH, ']', ZERO_JSON_DEPTH);
    text[2 * ZERO_JSON_DEPTH] = '\0';
    json_decref(taken(text));
    free(text);
}

TEST(what_would_fill_the_memory_is_refused)
{
    enum { N = 1000000 };
    char *text = malloc(3 * N + 1);
    assert_non_null(text);
    for (int i = 0; i < N; i++) memcpy(text + 3 * i, "{},", 3);
    text[0] = '[';
    text[1] = ' ';
    text[2] = ' ';
    text[3 * N - 1] = ']';
    refused(text, 3 * N, "more than 24 times its size");
    for (int i = 1; i < N; i++) memcpy(text + 3 * i, "\"\",", 3);
    text[3 * N - 1] = ']';
    refused(text, 3 * N, "more than 24 times its size");
    free(text);
}

/* ---- members ---- */

TEST(members_are_read_by_type)
{
    json_t *root = taken("{\"n\": -3, \"r\": 1.5, \"f\": true, \"t\": \"word\", \"o\": {}, "
                         "\"a\": [1]}");
    int64_t n = 0;
    double r = 0.0, whole = 0.0;
    bool f = false;
    const char *t = NULL;
    const json_t *o = NULL, *a = NULL;
    assert_ok(zero_json_whole(F, root, "n", -3, -3, &n));
    assert_ok(zero_json_real(F, root, "r", &r));
    assert_ok(zero_json_real(F, root, "n", &whole));
    assert_ok(zero_json_flag(F, root, "f", &f));
    assert_ok(zero_json_text(F, root, "t", &t));
    assert_ok(zero_json_object(F, root, "o", &o));
    assert_ok(zero_json_array(F, root, "a", &a));
    assert_true(n == -3 && r == 1.5 && whole == -3.0 && f);
    assert_string_equal(t, "word");
    assert_true(json_object_size(o) == 0 && json_array_size(a) == 1);
    json_decref(root);
}

TEST(members_of_another_type_or_range_are_refused)
{
    json_t *root = taken("{\"n\": 7, \"r\": 1.5, \"e\": 1e3, \"t\": \"12\", \"z\": null, "
                         "\"f\": false, \"a\": [], \"o\": {}}");
    int64_t n = 42;
    double r = 42.0;
    bool f = true;
    const char *t = NULL;
    const json_t *o = NULL;
    assert_int_equal(zero_json_whole(F, root, "n", 8, 9, &n), ZERO_ERR_FORMAT);
    assert_says("\"n\": expected a whole number from 8 to 9, found 7");
    assert_int_equal(zero_json_whole(F, root, "n", 0, 6, &n), ZERO_ERR_FORMAT);
    assert_int_equal(zero_json_whole(F, root, "r", 0, 9, &n), ZERO_ERR_FORMAT);
    assert_says("found a number with a fraction");
    assert_int_equal(zero_json_whole(F, root, "e", 0, 9999, &n), ZERO_ERR_FORMAT);
    assert_int_equal(zero_json_whole(F, root, "t", 0, 99, &n), ZERO_ERR_FORMAT);
    assert_says("found a text");
    assert_int_equal(zero_json_whole(F, root, "x", 0, 9, &n), ZERO_ERR_FORMAT);
    assert_says("\"x\" is missing: expected a whole number from 0 to 9");
    assert_int_equal(zero_json_real(F, root, "t", &r), ZERO_ERR_FORMAT);
    assert_int_equal(zero_json_flag(F, root, "n", &f), ZERO_ERR_FORMAT);
    assert_int_equal(zero_json_flag(F, root, "z", &f), ZERO_ERR_FORMAT);
    assert_says("found null");
    assert_int_equal(zero_json_text(F, root, "f", &t), ZERO_ERR_FORMAT);
    assert_int_equal(zero_json_object(F, root, "a", &o), ZERO_ERR_FORMAT);
    assert_int_equal(zero_json_array(F, root, "o", &o), ZERO_ERR_FORMAT);
    assert_true(n == 42 && r == 42.0 && f && !t && !o);
    assert_int_equal(zero_json_text(F, NULL, "t", &t), ZERO_ERR_FORMAT);
    assert_says("found nothing");
    assert_int_equal(zero_json_text(F, json_object_get(root, "a"), "t", &t),
                     ZERO_ERR_FORMAT);
    assert_says("expected an object with \"t\" in it, found a list");
    json_decref(root);
}

TEST(misspelt_keys_are_refused)
{
    static const char *const names[] = {"steps", "seed"};
    json_t *root = taken("{\"seed\": 1, \"steps\": 2}");
    assert_ok(zero_json_only(F, root, 2, names));
    assert_int_equal(zero_json_only(F, root, 1, names), ZERO_ERR_FORMAT);
    assert_says("\"seed\": no such key; expected one of steps");
    json_decref(root);
    root = taken("{\"\\u001b[2J\": 1}");
    assert_int_equal(zero_json_only(F, root, 2, names), ZERO_ERR_FORMAT);
    assert_says("\"\\u{1B}[2J\": no such key; expected one of steps, seed");
    json_decref(root);
}

TEST(long_names_are_cut_in_messages)
{
    char name[5001], shown[ZERO_JSON_SHOWN];
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    assert_int_equal(strlen(zero_json_shown(name, shown)), ZERO_JSON_SHOWN - 1);
    assert_string_equal(shown + ZERO_JSON_SHOWN - 4, "...");
    name[ZERO_JSON_SHOWN - 1] = '\0';
    assert_string_equal(zero_json_shown(name, shown), name);
}

/* Numbers of 18 digits stay whole ones, and texts what they are. */
TEST(long_whole_numbers_can_be_read_as_real_ones)
{
    static const char text[] =
        "{\"a\": 1000000000000000019884624838656, \"b\": [123456789012345678,\n"
        "-9223372036854775809], \"c\": \"x \\\" 9223372036854775808 \\\\\", \"d\": "
        "0.12345678901234567890, \"e\": 10000000000000000000e1, \"f\": 1}";
    json_t *root;
    assert_int_equal(zero_json_parse(F, text, sizeof text - 1, &root), ZERO_ERR_FORMAT);
    assert_ok(zero_json_parse_wide(F, text, sizeof text - 1, &root));
    assert_true(json_real_value(json_object_get(root, "a")) == 1e30);
    const json_t *list = json_object_get(root, "b");
    assert_true(json_integer_value(json_array_get(list, 0)) == 123456789012345678);
    assert_true(json_real_value(json_array_get(list, 1)) == -9223372036854775808.0);
    assert_string_equal(json_string_value(json_object_get(root, "c")),
                        "x \" 9223372036854775808 \\");
    assert_true(json_real_value(json_object_get(root, "d")) == 0.12345678901234567890);
    assert_true(json_real_value(json_object_get(root, "e")) == 1e20);
    json_decref(root);
    assert_int_equal(zero_json_parse_wide(F, "[1", 2, &root), ZERO_ERR_FORMAT);
}
