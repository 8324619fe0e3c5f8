/* zero help: the same as --help, topics, and pages of the manual. A command is a tree, of
 * its tables; forms/help.txt says how it is shown. */
#include "cli/help.h"

#include <ctype.h>

#include "base/embedded.h"
#include "facts/form.h"
#include "report/json_put.h"
#include "train/config.h"
#include "zero/version.h"

extern const zero_embedded zero_cli_forms[], zero_topic_files[];

/* ---- defaults ---- */

/* A command's defaults; with a model those of its preset. The caller's (free). */
static zero_status make_defaults(const zero_command *command, const char *model,
                                 void **defaults)
{
    *defaults = calloc(1, command->size + 1);
    ZERO_FAIL_IF(!*defaults, ZERO_ERR_NOMEM, "no memory for the defaults");
    zero_options_reset(command, *defaults);
    const zero_option_table *table;
    const int i = zero_command_find_option(command, "model");
    if (i < 0) return ZERO_OK;
    const zero_option *option = zero_command_option(command, i, &table);
    void *config = (char *)*defaults + table->base;
    zero_status st = model ? zero_option_store(option, model, "--model", config) : ZERO_OK;
    if (st == ZERO_OK)
        st = command->complete ? command->complete(*defaults)
                               : zero_config_take_preset(config);
    if (st != ZERO_OK) free(*defaults);
    return st;
}

/* The default of a row in brackets' place: its value, or in words what happens without
 * it. */
static const char *default_of(const zero_option *option, const void *defaults,
                              char text[ZERO_OPTION_TEXT_BYTES])
{
    const char *value = zero_option_value(option, defaults, text);
    if (!value) return option->standard ? option->standard : option->absent;
    /* A tenth of 6e-4 in a double reads 5.9999999999999995e-05. */
    if (value == text && option->kind == ZERO_OPTION_REAL)
        snprintf(text, ZERO_OPTION_TEXT_BYTES, "%g", strtod(value, NULL));
    return value;
}

zero_status zero_help_show_defaults(const zero_command *command, const char *model,
                                    bool json, FILE *out)
{
    const zero_option_table *table;
    const zero_option *option;
    void *defaults;
    ZERO_TRY(make_defaults(command, model, &defaults));
    json_t *object = json_object();
    for (int i = 0; (option = zero_command_option(command, i, &table)); i++) {
        char text[ZERO_OPTION_TEXT_BYTES];
        const void *from = (const char *)defaults + table->base;
        const char *value = zero_option_value(option, from, text);
        if (json)
            json_object_set_new(object, option->name,
                                value ? json_string(value) : json_null());
        else
            fprintf(out, value || option->standard ? "--%-16s %s\n" : "--%-16s (%s)\n",
                    option->name, default_of(option, from, text));
    }
    free(defaults);
    if (json) return zero_json_print(object, JSON_INDENT(2), out);
    json_decref(object);
    return ZERO_OK;
}

/* ---- a command as a tree ---- */

static json_t *lines_of(const char *text)
{
    json_t *lines = json_array();
    for (size_t length; *text; text += length + (text[length] == '\n')) {
        length = strcspn(text, "\n");
        json_array_append_new(lines, json_stringn(text, length));
    }
    return lines;
}

/* Exit codes and what they mean for the command; NULL: for any. */
static json_t *exits_of(const zero_command *command)
{
    static const struct {
        int code;
        unsigned bit; /* 0: every command's */
        const char *meaning;
    } exits[] = {
        {0, 0, "done"},
        {1, ZERO_EXIT_OTHER, "anything else, such as a loss that is not finite"},
        {1, ZERO_EXIT_DIFFERENT, "the results differ from the expected ones"},
        {2, 0, "usage or configuration"},
        {3, ZERO_EXIT_ENVIRONMENT, "environment: launcher, memory, devices, disk"},
        {4, ZERO_EXIT_DATA, "data or a checkpoint cannot be read, or is damaged"},
        {75, ZERO_EXIT_STOPPED, "stopped on request; can be continued"},
        {86, ZERO_EXIT_WATCHDOG, "watchdog: nothing moved any more"},
    };
    unsigned bits = command ? command->exits : ZERO_EXIT_ANY;
    json_t *list = json_array();
    for (int k = 0; k < ZERO_COUNT(exits); k++)
        if ((exits[k].bit & bits) == exits[k].bit)
            zero_put_item(list, "{s:i, s:s}", "code", exits[k].code, "meaning",
                          exits[k].meaning);
    return list;
}

bool zero_help_shows(const zero_command *command, int i, const char **group)
{
    const zero_option_table *table;
    const zero_option *option = zero_command_option(command, i, &table);
    if (option->group) *group = option->group;
    int first = zero_command_find_option(command, option->name);
    return first == i && (option->is & table->shown) == table->shown;
}

/* The options that --help lists, below their headings. */
static json_t *groups_of(const zero_command *command, const void *defaults)
{
    const zero_option_table *table;
    const zero_option *option;
    const char *group = NULL, *shown = NULL;
    json_t *groups = json_array(), *options = NULL;
    for (int i = 0; (option = zero_command_option(command, i, &table)); i++) {
        char argument[ZERO_OPTION_TEXT_BYTES], text[ZERO_OPTION_TEXT_BYTES];
        char help[ZERO_OPTION_HELP_BYTES], label[ZERO_OPTION_TEXT_BYTES + 64];
        if (!zero_help_shows(command, i, &group)) continue;
        if (group != shown) {
            options = json_array();
            zero_put_item(groups, "{s:s, s:o}", "name", group, "options", options);
        }
        shown = group;
        zero_option_argument(option, argument);
        zero_option_help(option, help);
        int n = zero_print(label, "%s%s%s", option->name, argument[0] ? " " : "", argument);
        zero_put_item(options, "{s:s, s:s, s:s, s:b, s:s, s:s}", "name", option->name,
                      "argument", argument, "label", label, "is_long", n > 20, "help", help,
                      "default",
                      default_of(option, (const char *)defaults + table->base, text));
    }
    return groups;
}

static zero_status describe(const zero_command *command, const char *model, json_t **tree)
{
    void *defaults;
    ZERO_TRY(make_defaults(command, model, &defaults));
    *tree = json_pack("{s:o, s:o, s:o, s:b, s:o, s:o}", "usage", lines_of(command->usage),
                      "about", lines_of(command->about), "groups",
                      groups_of(command, defaults), "has_options", command->n_tables != 0,
                      "example", lines_of(command->example), "exits", exits_of(command));
    free(defaults);
    return ZERO_OK;
}

/* "zero train" as the page's name: zero-train */
static void name_page(const zero_command *command, bool upper, char page[32])
{
    snprintf(page, 32, "%s", command ? command->name : "zero");
    for (; *page; page++)
        *page = *page == ' ' ? '-' : upper ? (char)toupper((unsigned char)*page) : *page;
}

/* All commands and topics. */
static json_t *describe_all(void)
{
    json_t *commands = json_array(), *topics = json_array();
    const zero_command *command;
    for (int i = 0; (command = zero_command_at(i)); i++)
        zero_put_item(commands, "{s:s, s:s, s:s}", "name", command->name, "summary",
                      command->summary, "word", zero_command_word(command));
    for (const zero_embedded *t = zero_topic_files; t->name; t++)
        zero_put_item(topics, "{s:s, s:o}", "name", t->name, "title",
                      json_stringn(t->text, strcspn(t->text, "\n")));
    return json_pack("{s:o, s:o, s:o}", "commands", commands, "topics", topics, "exits",
                     exits_of(NULL));
}

/* ---- showing ---- */

static zero_status print(json_t *tree, const char *section, zero_put_text *put, FILE *out)
{
    zero_status st = zero_form_print(zero_embedded_text(zero_cli_forms, "help"), section,
                                     tree, put, out);
    json_decref(tree);
    return st;
}

zero_status zero_help_show(const zero_command *command, int argc, char **argv, FILE *out)
{
    const char *model = NULL; /* among the words */
    json_t *tree;
    for (int i = 0; i < argc && !model; i++) {
        if (strncmp(argv[i], "--model=", strlen("--model=")) == 0)
            model = argv[i] + strlen("--model=");
        else if (zero_same_text(argv[i], "--model") && i + 1 < argc &&
                 argv[i + 1][0] != '-')
            model = argv[i + 1];
    }
    ZERO_TRY(describe(command, model, &tree));
    return print(tree, "help", NULL, out);
}

zero_status zero_help_show_all(FILE *out)
{
    return print(describe_all(), "all", NULL, out);
}

/* Text as troff reads it: a bare dash is a hyphen, a backslash begins a command, and so do
 * a dot and a quote at the beginning of a line. */
static void put(const char *text, FILE *out)
{
    for (bool begins = true; *text; begins = *text++ == '\n') {
        if (begins && (*text == '.' || *text == '\'')) fputs("\\&", out);
        if (*text == '-' || *text == '\\') fputc('\\', out);
        fputc(*text == '\\' ? 'e' : *text, out);
    }
}

zero_status zero_help_write_man(const zero_command *command, FILE *out)
{
    char title[32], page[32];
    json_t *tree = NULL;
    if (command) ZERO_TRY(describe(command, NULL, &tree));
    name_page(command, true, title);
    name_page(command, false, page);
    fprintf(out, ".TH %s 1 \"\" \"zero %s\" \"zero\"\n.SH NAME\n%s \\- ", title,
            zero_version(), page);
    put(command ? command->summary : "train GPT-style transformers with ZeRO on MPI", out);
    fputc('\n', out);
    return command ? print(tree, "man", put, out)
                   : print(describe_all(), "man all", put, out);
}

/* ---- the command ---- */

typedef struct {
    bool man;
} help_options;

zero_status zero_help_unknown(const char *word)
{
    const char *words[16];
    const zero_command *command;
    int n = 0;
    for (; (command = zero_command_at(n)); n++) words[n] = zero_command_word(command);
    const char *nearest = zero_suggest(word, n, words);
    ZERO_INVALID_IF(nearest, "no command '%.80s'; did you mean '%s'?", word, nearest);
    return zero_fail(ZERO_ERR_INVALID, "no command '%.80s'; zero help lists all", word);
}

static zero_status run(void *options, const zero_options *given)
{
    const bool man = ((const help_options *)options)->man;
    const zero_command *command = NULL;
    if (given->n_operands == 1) {
        const char *name = given->operands[0];
        const char *topic = zero_embedded_text(zero_topic_files, name);
        command = zero_command_find(name);
        if (!command && !topic) return zero_help_unknown(name);
        if (!command && !man) fputs(topic, stdout);
        if (!command && man) { /* its page of section 7 of the manual */
            const int title = (int)strcspn(topic, "\n");
            printf(".TH ZERO\\-%s 7 \"\" \"zero %s\" \"zero\"\n.SH NAME\nzero\\-%s \\- "
                   "%.*s\n.SH DESCRIPTION\n.nf\n",
                   name, zero_version(), name, title, topic);
            put(topic + title + 2, stdout);
            puts(".fi\n.SH SEE ALSO\n.BR zero (1)");
        }
        if (!command) return ZERO_OK;
    }
    if (man) return zero_help_write_man(command, stdout);
    return command ? zero_help_show(command, 0, NULL, stdout) : zero_help_show_all(stdout);
}

const zero_command zero_command_help = {
#include "cli/options/help.command"
    .run = run,
};
