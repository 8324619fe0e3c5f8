/* A DeepSpeed configuration becomes options of zero train, or a reason why not. */

#include "support/table.h"

#include "cli/config_file.h"
#include "cli/deepspeed.h"
#include "support/mentions.h"

static json_t *parsed(const char *text)
{
    json_t *file = NULL;
    if (zero_config_file_parse("ds.json", text, strlen(text), &file) != ZERO_OK)
        fail_msg("%s: %s", text, zero_last_error());
    return file;
}

static zero_deepspeed translated(const char *text, int64_t n_ranks)
{
    json_t *file = parsed(text);
    zero_deepspeed d;
    if (zero_deepspeed_translate("ds.json", file, n_ranks, &d) != ZERO_OK)
        fail_msg("%s: %s", text, zero_last_error());
    json_decref(file);
    assert_ok(zero_bytes_append(&d.notes, "", 1)); /* a text for strstr() */
    mentions_exist(text, (const char *)d.notes.bytes);
    return d;
}

/* The options have the values of `expected`; null: the option is not given. */
static void gives(const char *text, int64_t n_ranks, const char *expected)
{
    zero_deepspeed d = translated(text, n_ranks);
    json_t *options = parsed(expected), *value;
    const char *key;
    json_object_foreach(options, key, value)
    {
        json_t *found = json_object_get(d.options, key);
        bool is_number = json_is_number(value) && json_is_number(found);
        bool equal = is_number ? json_number_value(value) == json_number_value(found)
                     : json_is_null(value) ? found == NULL
                                           : json_equal(value, found);
        if (!equal) fail_msg("%s: expected another %s", text, key);
    }
    assert_ok(zero_deepspeed_check("ds.json", &d));
    json_decref(options);
    zero_deepspeed_destroy(&d);
}

/* The key is named in a line that contains `reason`, and the file is taken or not. */
static void names(const char *text, const char *key, const char *reason, bool is_refused)
{
    zero_deepspeed d = translated(text, 0);
    const char *line = strstr((const char *)d.notes.bytes, key);
    const char *end = line ? strchr(line, '\n') : NULL;
    const char *found = line ? strstr(line, reason) : NULL;
    if (!found || found > end)
        fail_msg("%s: no '%s' about %s in:\n%s", text, reason, key,
                 (const char *)d.notes.bytes);
    zero_status st = zero_deepspeed_check("ds.json", &d);
    assert_int_equal(st, is_refused ? ZERO_ERR_INVALID : ZERO_OK);
    if (is_refused) assert_told(key);
    zero_deepspeed_destroy(&d);
}

static void wrong(const char *text, int64_t n_ranks, const char *message)
{
    json_t *file = parsed(text);
    zero_deepspeed d;
    assert_fails(zero_deepspeed_translate("ds.json", file, n_ranks, &d), ZERO_ERR_INVALID,
                 message);
    json_decref(file);
}

/* Rows: `gives` and `wrong` a file, the ranks (0: not known), and options or a message; `names` a file
 * that is taken, a key and a reason, as `refuses` does of one that is not. */
TEST(files_become_options_or_say_why_not)
{
    for (test_table t = table_open("cli/deepspeed.txt"); table_next(&t);) {
        const char *verb = t.field[0], *text = t.field[1];
        int64_t n_ranks = strtoll(t.field[2], NULL, 10);
        if (strcmp(verb, "gives") == 0)
            gives(text, n_ranks, t.field[3]);
        else if (strcmp(verb, "wrong") == 0)
            wrong(text, n_ranks, t.field[3]);
        else
            names(text, t.field[2], t.field[3], strcmp(verb, "refuses") == 0);
    }
}

/* A file with what Hjson allows, and the same as JSON: lines and columns are those of the file. */
TEST(comments_and_last_commas_are_blanks)
{
    static const struct {
        const char *hjson, *json;
    } files[] = {
        {"{ // a\n\"b\": 1, # c\n}", "{     \n\"b\": 1     \n}"},
        {"# a\n{\"b\": [1, 2,], /* c,\n } */ }", "   \n{\"b\": [1, 2 ]       \n      }"},
        {"{\"#\": \"//, }\", \"/*\": \"\\\"#,]\"}//",
         "{\"#\": \"//, }\", \"/*\": \"\\\"#,]\"}  "},
        {"{\"a\": 1,/**/ /* */ // \n }", "{\"a\": 1               \n }"},
        {"{\"a\": 1,, }", "{\"a\": 1,  }"},
        {"{\"a\": 1 / 2}", "{\"a\": 1 / 2}"},
        {"{} /* no end\n, }", "{}          \n   "},
        {"{\"no end, }#", "{\"no end, }#"},
        {"{\"a\\", "{\"a\\"},
        {"/", "/"},
        {"#", " "},
        {"", ""},
    };
    for (size_t i = 0; i < COUNT(files); i++) {
        unsigned char text[64];
        size_t len = strlen(files[i].hjson);
        memcpy(text, files[i].hjson, len + 1);
        zero_hjson_blank(text, len);
        assert_string_equal((char *)text, files[i].json);
    }
}

TEST(many_keys_that_nobody_knows_are_counted)
{
    zero_deepspeed d =
        translated("{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1,"
                   "\"h\":1,\"i\":1,\"j\":1}",
                   0);
    assert_fails(zero_deepspeed_check("ds.json", &d), ZERO_ERR_INVALID,
                 "10 keys have no counterpart");
    assert_told("g, h, ...; take them out");
    zero_deepspeed_destroy(&d);
}
