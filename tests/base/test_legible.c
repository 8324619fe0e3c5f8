/* Texts of others cannot act on a terminal, forge a line or hide letters, wherever they are shown. */
#include "support/test.h"

#include "base/legible.h"

#include "base/fail.h"
#include "base/listener.h"
#include "base/utf8.h"

static const struct {
    const char *text, *shown;
} cases[] = {
    {"", ""},
    {"plain name.bin", "plain name.bin"},
    {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xd7\x90",
     "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xd7\x90"},
    {"a\033[2Jb", "a\\u{1B}[2Jb"},
    {"one\ntwo\r\t", "one\\u{A}two\\u{D}\\u{9}"},
    {"\x7f", "\\u{7F}"},
    {"\xc2\x9b"
     "2J",
     "\\u{9B}2J"},
    {"\xc2\xa0", "\xc2\xa0"},
    {"a\xe2\x80\xae"
     "b",
     "a\\u{202E}b"},
    {"\xe2\x80\x8b\xe2\x80\x8f\xe2\x80\xa8\xe2\x81\xa6\xe2\x81\xa9\xef\xbb\xbf",
     "\\u{200B}\\u{200F}\\u{2028}\\u{2066}\\u{2069}\\u{FEFF}"},
    {"\xe2\x80\x90", "\xe2\x80\x90"},
    {"\x9b"
     "2J",
     "\\x{9B}2J"},
    {"\xc0\x9b\xed\xa0\x80", "\\x{C0}\\x{9B}\\x{ED}\\x{A0}\\x{80}"},
    {"end\xe2\x80", "end\\x{E2}\\x{80}"},
    {"\\u{202E}", "\\u{202E}"},
};

TEST(what_is_not_legible_is_shown_by_its_number)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        char again[ZERO_SHOWN_BYTES];
        const char *shown = ZERO_SHOWN(cases[i].text);
        assert_string_equal(shown, cases[i].shown);
        assert_string_equal(zero_shown(shown, again), shown);
    }
}

TEST(a_text_is_cut_between_characters)
{
    const char *text = "ab\xe2\x82\xac\033"
                       "c";
    const size_t len = strlen(text);
    char shown[32];
    const size_t expected[] = {0, 0, 1, 2, 2, 2, 5, 5, 5, 5, 5, 5, 6, 7};
    for (size_t size = 1; size < COUNT(expected); size++) {
        assert_int_equal(zero_legible(text, len, shown, size), expected[size]);
        assert_true(strlen(shown) < size);
    }
    assert_string_equal(shown, "ab\xe2\x82\xac\\u{1B}c");
}

TEST(every_message_is_legible)
{
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(zero_fail(ZERO_ERR_IO, "%s", cases[i].text), ZERO_ERR_IO);
        assert_string_equal(zero_last_error(), cases[i].shown);
    }
}

/* Cut anywhere, a long message ends in a whole character. */
TEST(a_long_message_stays_utf8)
{
    for (int before = 0; before < 4; before++) {
        char text[3000] = "";
        memset(text, 'x', (size_t)before);
        while (strlen(text) < 2000) strcat(text, "\xf0\x9f\x98\x80");
        assert_int_equal(zero_fail(ZERO_ERR_IO, "%s", text), ZERO_ERR_IO);
        size_t len = strlen(zero_last_error());
        assert_true(len > 1000);
        assert_int_equal((len - (size_t)before) % 4, 0);
    }
}

static void hear(void *arg, const char *text)
{
    strcpy(arg, text);
}

TEST(warnings_are_legible)
{
    char told[64];
    zero_listener listener = {hear, told};
    zero_listener_tell(&listener, "%s stays", "a\xe2\x80\xae\n");
    assert_string_equal(told, "a\\u{202E}\\u{A} stays");
    zero_listener_tell(NULL, "nobody listens");
}

TEST(json_stays_what_it_is)
{
    char text[256] = "";
    FILE *out = fmemopen(text, sizeof text, "w");
    zero_legible_print_json(
        "{\n \"a\xc2\x9b\": \"\xe2\x80\xae\xf3\xa0\x80\xa0\xc3\xa9\"\n}", out);
    fclose(out);
    assert_string_equal(text, "{\n \"a\\u009B\": \"\\u202E\\uDB40\\uDC20\xc3\xa9\"\n}");
}
