/* The words of a launch line. */
#include "support/test.h"

#include "cli/words.h"

/* The words joined by |. */
static void splits(const char *line, const char *expected)
{
    zero_words words = {0};
    char joined[256] = "";
    if (zero_words_split(&words, "launch", line) != ZERO_OK)
        fail_msg("%s: %s", line, zero_last_error());
    for (int64_t i = 0; i < words.n; i++) {
        strcat(joined, i > 0 ? "|" : "");
        strcat(joined, words.words[i]);
    }
    assert_string_equal(joined, expected);
    if (words.n > 0) assert_null(words.words[words.n]);
    zero_words_destroy(&words);
}

TEST(a_line_is_split_as_a_shell_splits_it)
{
    splits("mpirun -n {}", "mpirun|-n|{}");
    splits("  mpirun\t-n  {} ", "mpirun|-n|{}");
    splits("srun --comment='two words' \"a b\"'c'", "srun|--comment=two words|a bc");
    splits("a\\ b \\'c ''", "a b|'c|");
    splits("sh -c 'exec \"$@\" *'", "sh|-c|exec \"$@\" *");
    splits("\"a \\\"b\\\" \\$c \\d\"", "a \"b\" $c \\d");
    splits("", "");
}

TEST(what_needs_a_shell_is_refused)
{
    static const char *const lines[] = {"mpirun $X",   "a `b`", "a | b", "a; b",
                                        "a > b",       "*",     "~/a",   "\"$X\"",
                                        "mpirun 'one", "\"",    "(a)",   "a &"};
    for (size_t i = 0; i < COUNT(lines); i++) {
        zero_words words = {0};
        assert_fails(zero_words_split(&words, "launch", lines[i]), ZERO_ERR_INVALID,
                     "--launch: ");
        zero_words_destroy(&words);
    }
}

TEST(the_number_goes_into_every_place)
{
    zero_words words = {0};
    assert_ok(zero_words_split(&words, "launch", "srun -n {} --a={},{} b"));
    assert_int_equal(zero_words_fill(&words, 1024), 3);
    assert_string_equal(words.words[2], "1024");
    assert_string_equal(words.words[3], "--a=1024,1024");
    assert_int_equal(zero_words_fill(&words, 7), 0);
    zero_words_destroy(&words);
}

TEST(quoted_words_are_split_into_themselves)
{
    static const char *const all[] = {"plain", "two words", "it's", "$X \"*\"", "", "a\\b"};
    for (size_t i = 0; i < COUNT(all); i++) {
        zero_words words = {0};
        zero_bytes text = {0};
        assert_ok(zero_words_quote(all[i], &text));
        assert_ok(zero_bytes_append(&text, "", 1));
        assert_ok(zero_words_split(&words, "launch", (char *)text.bytes));
        assert_int_equal(words.n, 1);
        assert_string_equal(words.words[0], all[i]);
        zero_words_destroy(&words);
        zero_bytes_destroy(&text);
    }
}
