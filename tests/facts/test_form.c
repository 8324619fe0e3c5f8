/* Forms: texts with holes. */
#include "support/table.h"

#include "facts/form.h"

static const char facts[] =
    "{\"name\": \"<gpt2>\", \"ranks\": 3, \"mem\": {\"peak\": "
    "2048, \"first\": 1}, \"stages\": [{\"stage\": 0, \"sent\": 1024},"
    " {\"stage\": 3, \"sent\": 5}], \"unit\": \"bytes\", "
    "\"classes\": {\"a\": {\"n\": 1}, \"b\": {\"n\": 2}}}";

static zero_status print(const char *forms, const char *section, zero_put_text *put,
                         char **text)
{
    size_t n;
    FILE *out = open_memstream(text, &n);
    json_t *tree = json_loads(facts, 0, NULL);
    zero_status st = zero_form_print(forms, section, tree, put, out);
    fclose(out);
    json_decref(tree);
    return st;
}

static void brackets(const char *text, FILE *out)
{
    fprintf(out, "[%s]", text);
}

TEST(forms_are_filled)
{
    for (test_table t = table_open("facts/forms.txt"); table_next(&t);) {
        char forms[600], *text;
        snprintf(forms, sizeof forms,
                 "=== first\nx\n=== tested\n%s\n=== other\nother {ranks}\n", t.field[0]);
        if (print(forms, "tested", NULL, &text) != ZERO_OK)
            fail_msg("%s: %s", t.field[0], zero_last_error());
        text[strlen(text) - 1] = '\0'; /* the last line's end */
        assert_string_equal(text, t.field[1]);
        free(text);
    }
}

/* Texts of the tree may come from strangers; those of the form do not. */
TEST(texts_of_the_tree_go_through_put)
{
    char *text;
    assert_ok(print("=== a\n<b>{name}</b> {name:>8}{ranks}\n", "a", brackets, &text));
    assert_string_equal(text, "<b>[<gpt2>]</b>   [<gpt2>]3\n");
    free(text);
}

TEST(errors_name_section_and_line)
{
    for (test_table t = table_open("facts/refused_forms.txt"); table_next(&t);) {
        char *text;
        assert_fails(print(t.field[0], "a", NULL, &text), ZERO_ERR_FORMAT, t.field[1]);
        free(text);
    }
}
