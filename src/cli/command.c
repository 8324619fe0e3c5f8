#include "cli/command.h"

#include <string.h>

#include "cli/suggest.h"

static const zero_command *const commands[] = {
    &zero_command_train,   &zero_command_plan,     &zero_command_simulate,
    &zero_command_sweep,   &zero_command_generate, &zero_command_checkpoint,
    &zero_command_compare, &zero_command_config,   &zero_command_info,
    &zero_command_lesson,  &zero_command_report,   &zero_command_help,
};
#define N_COMMANDS ((int)(sizeof commands / sizeof commands[0]))

const zero_command *zero_command_at(int i)
{
    return i < N_COMMANDS ? commands[i] : NULL;
}

const char *zero_command_word(const zero_command *command)
{
    const char *blank = strrchr(command->name, ' ');
    return blank ? blank + 1 : command->name;
}

const zero_command *zero_command_find(const char *word)
{
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(zero_command_word(commands[i]), word) == 0) return commands[i];
    return NULL;
}

const zero_option *zero_command_option(const zero_command *command, int i,
                                       const zero_option_table **table)
{
    for (int t = 0; t < command->n_tables; t++) {
        *table = &command->tables[t];
        for (const zero_option *row = (*table)->rows; row->name; row++)
            if (i-- == 0) return row;
    }
    return NULL;
}

int zero_command_find_option(const zero_command *command, int from, const char *name,
                             size_t length)
{
    const zero_option_table *table;
    const zero_option *option;
    for (int i = from; (option = zero_command_option(command, i, &table)); i++)
        if (strlen(option->name) == length && memcmp(option->name, name, length) == 0)
            return i;
    return -1;
}

const char *zero_command_nearest_option(const zero_command *command, const char *name)
{
    const char *names[ZERO_OPTIONS_MOST];
    const zero_option_table *table;
    const zero_option *option;
    int n = 0;
    for (; (option = zero_command_option(command, n, &table)); n++) names[n] = option->name;
    return zero_suggest(name, n, names);
}
