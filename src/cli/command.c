#include "cli/command.h"

#include "base/number.h"

static const zero_command *const commands[] = {
    &zero_command_train,   &zero_command_plan,     &zero_command_simulate,
    &zero_command_sweep,   &zero_command_generate, &zero_command_checkpoint,
    &zero_command_compare, &zero_command_config,   &zero_command_info,
    &zero_command_lesson,  &zero_command_homework, &zero_command_report,
    &zero_command_verify,  &zero_command_help,
};
#define N_COMMANDS ZERO_COUNT(commands)

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
        if (zero_same_text(zero_command_word(commands[i]), word)) return commands[i];
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

int zero_command_find_option(const zero_command *command, const char *name)
{
    const zero_option_table *table;
    const zero_option *option;
    for (int i = 0; (option = zero_command_option(command, i, &table)); i++)
        if (zero_same_text(option->name, name)) return i;
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

#define LONGEST 63

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int length(const char *word)
{
    return (int)strnlen(word, LONGEST);
}

int zero_suggest_distance(const char *a, const char *b)
{
    int d[LONGEST + 1][LONGEST + 1]; /* d[i][j]: from a's first i letters to b's first j */
    int n = length(a), m = length(b);
    for (int i = 0; i <= n; i++) d[i][0] = i;
    for (int j = 0; j <= m; j++) d[0][j] = j;
    for (int i = 1; i <= n; i++) {
        for (int j = 1; j <= m; j++) {
            int change = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            d[i][j] = least(change, least(d[i - 1][j], d[i][j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = least(d[i][j], d[i - 2][j - 2] + 1);
        }
    }
    return d[n][m];
}

const char *zero_suggest(const char *word, int n, const char *const *words)
{
    const char *best = NULL;
    int best_distance = LONGEST;
    for (int i = 0; i < n; i++) {
        int distance = zero_suggest_distance(word, words[i]);
        int longer = length(word) > length(words[i]) ? length(word) : length(words[i]);
        if (distance >= best_distance || 5 * distance > 2 * longer) continue;
        best = words[i];
        best_distance = distance;
    }
    return best;
}
