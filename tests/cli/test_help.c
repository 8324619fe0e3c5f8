/* What the program says of itself: help, pages of the manual, suggestions. */
#include "support/test.h"

#include "cli/help.h"

#include "cli/command.h"
#include "cli/run_options.h"
#include "support/mentions.h"
#include "support/within.h"

#define MOST_WORDS 16

/* The help of a command for the words of a line; the caller's (free). */
static char *help_of(const zero_command *command, char *line)
{
    char *text = NULL, *argv[MOST_WORDS];
    size_t size = 0;
    int argc = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    for (char *w = strtok(line, " "); w; w = strtok(NULL, " ")) argv[argc++] = w;
    assert_ok(zero_help_show(command, argc, argv, out));
    fclose(out);
    return text;
}

TEST(help_shows_every_option_within_80_columns)
{
    const zero_command *command;
    for (int c = 0; (command = zero_command_at(c)); c++) {
        char line[1] = "", mention[64];
        const zero_option_table *table;
        const zero_option *option;
        const char *group;
        if (!command->run) continue;
        char *text = help_of(command, line);
        for (int i = 0; (option = zero_command_option(command, i, &table)); i++) {
            snprintf(mention, sizeof mention, "\n  --%s", option->name);
            assert_true(option->standard || option->absent);
            if (zero_help_shows(command, i, &group)) assert_non_null(strstr(text, mention));
        }
        for (char *at = text; *at; at += strcspn(at, "\n") + 1)
            assert_within(strcspn(at, "\n"), 0, 80);
        assert_non_null(strstr(text, "\nExample:\n"));
        assert_non_null(strstr(text, "\nExit codes:\n"));
        free(text);
    }
}

TEST(texts_name_options_that_exist)
{
    const zero_command *command;
    for (int c = 0; (command = zero_command_at(c)); c++) {
        const zero_option_table *table;
        const zero_option *option;
        mentions_exist(command->name, command->about);
        mentions_exist(command->name, command->example);
        mentions_exist(command->name, command->usage);
        for (int i = 0; (option = zero_command_option(command, i, &table)); i++) {
            mentions_exist(option->name, option->help);
            mentions_exist(option->name, option->absent);
        }
    }
}

TEST(help_shows_what_the_preset_decides)
{
    static const char *const lines[][3] = {
        {"", "optimizer steps; 0: none [360]", "[0.004]"},
        {"--model tiny --help", "transformer blocks [4]", "[--global-batch / ranks]"},
        {"--model gpt2", "transformer blocks [12]", "[0.0006]"},
        {"--steps 3 --model=gpt2-xl", "transformer blocks [48]",
         "words in the vocabulary [50257]"},
    };
    for (size_t i = 0; i < COUNT(lines); i++) {
        char line[64];
        snprintf(line, sizeof line, "%s", lines[i][0]);
        char *text = help_of(&zero_command_train, line);
        assert_non_null(strstr(text, lines[i][1]));
        assert_non_null(strstr(text, lines[i][2]));
        free(text);
    }
    char *argv[] = {"--model", "gtp2", "--help"};
    assert_int_equal(zero_help_show(&zero_command_train, 3, argv, stdout),
                     ZERO_ERR_INVALID);
}

TEST(a_plans_help_leaves_out_what_changes_no_plan)
{
    char line[1] = "";
    char *text = help_of(&zero_command_plan, line);
    assert_null(strstr(text, "--lr"));
    assert_null(strstr(text, "--metrics"));
    assert_non_null(strstr(text, "--dtype"));
    assert_non_null(strstr(text, "--stage N|all"));
    free(text);
}

TEST(asking_for_help_is_always_possible)
{
    char *all[] = {"--nonsense", "--steps", "-1", "--help"}, *brief[] = {"-h"};
    assert_ok(zero_options_run(&zero_command_train, 4, all));
    assert_ok(zero_options_run(&zero_command_train, 1, brief));
    assert_int_equal(zero_options_run(&zero_command_train, 3, all), ZERO_ERR_INVALID);
}

TEST(every_command_has_a_page_of_the_manual)
{
    const zero_command *command;
    for (int c = -1; c < 0 || (command = zero_command_at(c)); c++) {
        char *text = NULL;
        size_t size = 0;
        command = c < 0 ? NULL : zero_command_at(c);
        if (command && !command->run) continue;
        FILE *out = open_memstream(&text, &size);
        assert_ok(zero_help_write_man(command, out));
        fclose(out);
        assert_int_equal(strncmp(text, ".TH ZERO", 8), 0);
        const char *parts[] = {"\n.SH NAME\nzero", "\n.SH SYNOPSIS\n",
                               "\n.SH EXIT STATUS\n", "\n.SH SEE ALSO\n"};
        for (size_t i = 0; i < COUNT(parts); i++) assert_non_null(strstr(text, parts[i]));
        free(text);
    }
}

TEST(edit_distance_is_a_distance)
{
    const char *words[] = {"", "a", "ab", "ba", "steps", "stpes", "seed", "global-batch"};
    const int n = COUNT(words);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            int d = zero_suggest_distance(words[i], words[j]);
            assert_int_equal(d, zero_suggest_distance(words[j], words[i]));
            assert_int_equal(d == 0, i == j);
            assert_true(d <= (int)(strlen(words[i]) + strlen(words[j])));
        }
    }
    assert_int_equal(zero_suggest_distance("steps", "stpes"), 1); /* neighbours swapped */
    assert_int_equal(zero_suggest_distance("kitten", "sitting"), 3);
    assert_int_equal(zero_suggest_distance("", "seed"), 4);
}
