/* zero help: the same as --help, topics, and pages of the manual. */
#include "cli/help.h"

#include "base/fail.h"
#include "cli/command.h"
#include "cli/topics.h"

typedef struct {
    bool man;
} help_options;
#define FIELDS help_options
static const zero_option rows[] = {
#include "cli/options/help.rows"
};

static const zero_option_table table = {.rows = rows};

zero_status zero_help_unknown(const char *word)
{
    const char *words[16];
    const zero_command *command;
    int n = 0;
    for (; (command = zero_command_at(n)); n++) words[n] = zero_command_word(command);
    const char *nearest = zero_suggest(word, n, words);
    if (nearest)
        return zero_fail(ZERO_ERR_INVALID, "no command '%.80s'; did you mean '%s'?", word,
                         nearest);
    return zero_fail(ZERO_ERR_INVALID, "no command '%.80s'; zero help lists all", word);
}

static zero_status run(void *options, const zero_options *given)
{
    const help_options *o = options;
    const zero_command *command = NULL;
    if (given->n_operands > 1)
        return zero_fail(ZERO_ERR_INVALID,
                         "help takes one command or topic, found %.80s and %.80s",
                         given->operands[0], given->operands[1]);
    if (given->n_operands == 1) {
        command = zero_command_find(given->operands[0]);
        if (!command && !zero_topic_text(given->operands[0]))
            return zero_help_unknown(given->operands[0]);
        if (!command) zero_topic_show(given->operands[0], o->man, stdout);
        if (!command) return ZERO_OK;
    }
    if (o->man) return zero_help_write_man(command, stdout);
    if (command) return zero_help_show(command, 0, NULL, stdout);
    zero_help_show_all(stdout);
    return ZERO_OK;
}

const zero_command zero_command_help = {
    .name = "zero help",
    .summary = "what a command does and takes, and the manual",
    .usage = "zero help [COMMAND|TOPIC] [--man]",
    .about = "Shows what COMMAND --help shows, or a topic of the manual; without either, "
             "all of them.",
    .example = "zero help train",
    .tables = &table,
    .n_tables = 1,
    .operand = "COMMAND|TOPIC",
    .size = sizeof(help_options),
    .run = run,
};
