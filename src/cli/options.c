#include "cli/options.h"

#include "base/embedded.h"
#include "base/legible.h"
#include "cli/config_file.h"
#include "cli/help.h"
#include "comm/launch.h"
#include "facts/form.h"
#include "io/file.h"
#include "train/metrics.h"

extern const zero_embedded zero_cli_forms[];

/* The words of a command line, not yet checked: the text of row i, NULL where it is not
 * given. */
struct line {
    const char *text[ZERO_OPTIONS_MOST]; /* the last one counts */
    bool repeated[ZERO_OPTIONS_MOST];
};

/* ---- sorting the words ---- */

/* Takes argv[*i], and argv[*i + 1] where the value is a word of its own. */
static zero_status take(struct line *line, zero_options *given, int *i)
{
    const zero_command *command = given->command;
    const zero_option_table *table;
    const char *word = given->argv[*i],
               *next = *i + 1 < given->argc ? given->argv[*i + 1] : NULL;
    if (word[0] != '-') {
        ZERO_INVALID_IF(!command->operand,
                        "unexpected argument '%.80s' (options look like --steps 100)",
                        word);
        ZERO_INVALID_IF(given->n_operands == ZERO_OPERANDS_MOST,
                        "%s: unexpected argument '%.80s' after %d others",
                        zero_command_word(command), word, given->n_operands);
        given->operands[given->n_operands++] = word;
        return ZERO_OK;
    }
    const char *value = strchr(word, '='), *nearest;
    char name[64];
    zero_print(name, "%.*s", (int)strcspn(word + strspn(word, "-"), "="),
               word + strspn(word, "-"));
    int index = strncmp(word, "--", 2) == 0 && word[2] != '-'
                    ? zero_command_find_option(command, name)
                    : -1;
    ZERO_INVALID_IF(index < 0 && (nearest = zero_command_nearest_option(command, name)),
                    "%.80s: no such option; did you mean --%s?", word, nearest);
    ZERO_INVALID_IF(index < 0, "%.80s: no such option; %s --help lists all", word,
                    command->name);
    const zero_option *option = zero_command_option(command, index, &table);
    if (value)
        value++;
    else if (option->kind == ZERO_OPTION_FLAG)
        value = "on";
    else if (next && strncmp(next, "--", 2) != 0)
        value = given->argv[++*i];
    else
        return zero_fail(ZERO_ERR_INVALID, "--%s needs a value%s%.80s", option->name,
                         next ? ", found " : "", next ? next : "");
    line->repeated[index] |= line->text[index] != NULL;
    line->text[index] = value;
    return ZERO_OK;
}

/* ---- values ---- */

static zero_status store_file(const struct line *line, void *into, zero_options *given)
{
    /* A command would put what it writes in the place of its options. */
    static const char *const written[] = {"trace", "metrics"};
    const zero_command *command = given->command;
    bool overridden[ZERO_OPTIONS_MOST];
    int config = zero_command_find_option(command, "config");
    const char *path = config >= 0 ? line->text[config] : NULL;
    if (!path) return ZERO_OK;
    for (int i = 0; i < ZERO_COUNT(written); i++) {
        int row = zero_command_find_option(command, written[i]);
        const char *text = row >= 0 ? line->text[row] : NULL;
        ZERO_INVALID_IF(text && zero_file_is_same(text, path),
                        "--%s %.300s is a file of --config as well, which would be "
                        "overwritten: give another name",
                        written[i], text);
    }
    /* Marks the rows whose name a flag has used, hidden ones too. */
    const zero_option_table *table;
    const zero_option *option;
    for (int i = 0; (option = zero_command_option(command, i, &table)); i++)
        overridden[i] = line->text[zero_command_find_option(command, option->name)] != NULL;
    ZERO_TRY(zero_config_file_load("--config ", path, &given->file));
    return zero_config_file_store(path, given->file, command, overridden, into, given->set);
}

static zero_status read_line(void *into, zero_options *given)
{
    const zero_command *command = given->command;
    struct line line = {0};
    for (int i = 0; i < given->argc; i++) ZERO_TRY(take(&line, given, &i));
    ZERO_TRY(store_file(&line, into, given));
    const zero_option_table *table;
    const zero_option *option;
    for (int i = 0; (option = zero_command_option(command, i, &table)); i++) {
        char where[160];
        if (!line.text[i]) continue;
        zero_print(where, "--%s %.80s", option->name, line.text[i]);
        ZERO_TRY(
            zero_option_store(option, line.text[i], where, (char *)into + table->base));
        given->set[i] = true;
    }
    /* Scripts add options to a command that may have them. */
    for (int i = 0; (option = zero_command_option(command, i, &table)); i++)
        if (line.repeated[i] && zero_launch_rank_hint() <= 0)
            fprintf(
                stderr,
                "zero: note: --%s is given more than once; the last one counts: %.80s\n",
                option->name, ZERO_SHOWN(line.text[i]));
    return ZERO_OK;
}

void zero_options_reset(const zero_command *command, void *into)
{
    const zero_option_table *table;
    const zero_option *option;
    if (command->size > 0) memset(into, 0, command->size);
    for (int i = 0; (option = zero_command_option(command, i, &table)); i++) {
        assert(i < ZERO_OPTIONS_MOST);
        zero_option_reset(option, (char *)into + table->base);
    }
}

/* Everything that forms/checks.txt asks about: the options with their types, and which of
 * them, "given", and what words without dashes, "operands", there are. */
static json_t *describe(const zero_options *given, const void *options)
{
    json_t *tree = json_object(), *names = json_array(), *operands = json_array();
    const zero_option_table *table;
    const zero_option *row;
    for (int i = 0; (row = zero_command_option(given->command, i, &table)); i++) {
        if (given->set[i]) json_array_append_new(names, json_string(row->name));
        if (row->offset == ZERO_OPTION_NOWHERE || json_object_get(tree, row->name))
            continue;
        json_object_set_new(tree, row->name,
                            zero_option_typed(row, (const char *)options + table->base));
    }
    for (int i = 0; i < given->n_operands; i++)
        json_array_append_new(operands, zero_metrics_text(given->operands[i]));
    json_object_set_new(tree, "given", names);
    json_object_set_new(tree, "operands", operands);
    return tree;
}

/* The section prints a line for each mistake, and the first one is the message. */
zero_status zero_options_check(const char *section, json_t *tree)
{
    const char *checks = zero_embedded_text(zero_cli_forms, "checks");
    char heading[32];
    ZERO_FREED char *text = NULL;
    zero_status st = ZERO_OK;
    zero_print(heading, "=== %s\n", section);
    if (strstr(checks, heading)) /* a benchmark's command has none */
        st = zero_form_text(checks, section, tree, NULL, &text);
    json_decref(tree);
    if (st == ZERO_OK && text && *text)
        st = zero_fail(ZERO_ERR_INVALID, "%.*s", (int)strcspn(text, "\n"), text);
    return st;
}

zero_status zero_options_read(const zero_command *command, int argc, char **argv,
                              void *into, zero_options *given)
{
    const zero_options before = *given;
    *given = (zero_options){.command = command, .argc = argc, .argv = argv};
    zero_options_reset(command, into);
    zero_status st = read_line(into, given);
    if (st == ZERO_OK)
        st = zero_options_check(zero_command_word(command), describe(given, into));
    if (st == ZERO_OK && command->check) st = command->check(into, given);
    if (st == ZERO_OK) return ZERO_OK;
    zero_options_destroy(given);
    *given = before;
    return st;
}

bool zero_options_is_set(const zero_options *given, const char *name)
{
    const zero_option_table *table;
    const zero_option *option;
    bool set = false;
    for (int i = 0; (option = zero_command_option(given->command, i, &table)); i++)
        set = set || (given->set[i] && zero_same_text(option->name, name));
    return set;
}

zero_status zero_options_run(const zero_command *command, int argc, char **argv)
{
    ZERO_AT_END(zero_options_destroy) zero_options given = {.command = command};
    for (int i = 0; i < argc; i++)
        if (zero_same_text(argv[i], "--help") || zero_same_text(argv[i], "-h"))
            return zero_help_show(command, argc, argv, stdout);
    ZERO_FREED void *options = malloc(command->size + 1);
    ZERO_FAIL_IF(!options, ZERO_ERR_NOMEM, "no memory for the options");
    ZERO_TRY(zero_options_read(command, argc, argv, options, &given));
    return command->run(options, &given);
}

void zero_options_destroy(zero_options *given)
{
    json_decref(given->file);
    *given = (zero_options){0};
}
