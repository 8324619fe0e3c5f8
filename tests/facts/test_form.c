/* Forms: texts with holes. */
#include "support/test.h"

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

static const struct {
    const char *form, *text;
} cases[] = {
    {"plain\n", "plain\n"},
    {"{ranks} rank{ranks:s}, {mem/peak:bytes}\n", "3 ranks, 2.00 KiB\n"},
    {"{ranks:>5}|{ranks:<5}|{mem/peak:bytes>10}|\n", "    3|3    |  2.00 KiB|\n"},
    {"{mem/peak:=unit}\n", "2.00 KiB\n"},
    {"{ranks > 1 ? \"many\" : \"one\"}\n", "many\n"},
    {"{ranks / 2:.1f}{{}\n", "1.5{}\n"},
    {"{1e6 * ranks} {1e5 / ranks}\n", "3000000 33333.3\n"},
    {"{if ranks > 5}\nno\n{elif ranks == 3}\nthree\n{else}\nno\n{end}\nend\n",
     "three\nend\n"},
    {"{if absent}x{else}y{end}\n", "y\n"},
    {"{if absent}{absent}{if ranks}{nothing}{end}{else}y{end}\n", "y\n"},
    {"{each stages}\n  {stage}: {sent:bytes} of {ranks}\n{end}\n",
     "  0: 1.00 KiB of 3\n  3: 5 B of 3\n"},
    {"sent{each stages}{sent:>6}{end}\n", "sent  1024     5\n"},
    {"{each classes}{key}={n}{if index < 1}, {end}{end}\n", "a=1, b=2\n"},
    {"{each absent}{x}{end}none\n", "none\n"},
    {"{each classes}{each stages}{classes/@key/n}{end}{end}\n", "1122\n"},
    {"{with mem}{stages/@first/sent}{end}\n", "5\n"},
    {"{with mem}{peak} {ranks}{end}\n", "2048 3\n"},
    {"a \\\n    b\n", "a b\n"},
    {"  {if ranks}\n  x\n  {end}\ny\n", "  x\ny\n"},
    {"{show other}\n", "other 3\n"},
    {"{name:<9}|\n", "<gpt2>   |\n"},
    {"{pad <8}a {ranks}:{end}|{pad >2 * ranks}b{end}|\n", "a 3:    |     b|\n"},
    {"{ranks:>1 + ranks}|\n", "   3|\n"},
    {"{let n = ranks + 1}\n{each stages}{let row = index}{each "
     "classes}{row:whole}{index:whole}{end}{n}{end}\n",
     "0001410114\n"},
    {"{if ranks}{let x = 1}{x}{end}{or(x, \"gone\")}\n", "1gone\n"},
    {"{let ranks = \"four\"}\n{show other}\n", "other four\n"},
    {"{trim}\na {ranks:<4}\n  \nb\n{end}\n", "a 3\n\nb\n"},
    {"{if absent}\n{pad <2 * absent}x{end}\n{end}\n|\n", "|\n"},
    {"{wrap 4}\n  a short note of {ranks} ranks, which is as long as a line of a terminal "
     "is "
     "{name}, {name}\nshort\n{end}\n|\n",
     "  a short note of 3 ranks, which is as long as a line of a terminal is <gpt2>,\n"
     "    <gpt2>\nshort\n|\n"},
};

TEST(forms_are_filled)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        char forms[600], *text;
        snprintf(forms, sizeof forms,
                 "=== first\nx\n=== tested\n%s=== other\nother {ranks}\n", cases[i].form);
        if (print(forms, "tested", NULL, &text) != ZERO_OK)
            fail_msg("%s: %s", cases[i].form, zero_last_error());
        assert_string_equal(text, cases[i].text);
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
    static const char *const wrong[][2] = {
        {"=== a\nx\n{absent}\n", "form \"a\", line 2: there is no fact \"absent\""},
        {"=== a\n{ranks:parsecs}\n", "line 1: there is no such unit"},
        {"=== a\n{if ranks}\nx\n", "has no {end}"},
        {"=== a\n{each stages}\nx\n", "has no {end}"},
        {"=== a\n{pad <3}x\n", "has no {end}"},
        {"=== a\nx {end}\n", "ends what nothing began"},
        {"=== a\n{ranks\n", "a brace has no end"},
        {"=== a\n{let x}\n", "form \"a\", line 1: expected {let NAME = x}"},
        {"=== a\n{show b}\n", "there is no form \"b\""},
        {"=== b\n", "there is no form \"a\""},
        {"=== a\n\n{1 +}\n", "line 2: \"1 +\": expected a fact"}};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        char *text;
        assert_fails(print(wrong[i][0], "a", NULL, &text), ZERO_ERR_FORMAT, wrong[i][1]);
        free(text);
    }
}
