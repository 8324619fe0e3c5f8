#include "cli/help.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "cli/topics.h"
#include "report/json_put.h"
#include "train/config.h"

#define WIDTH  80
#define COLUMN 26 /* where explanations of options begin */

/* ---- text within the width ---- */

/* Prints a text's words from column `at` on, and lines after the first from `indent` on. */
static void wrap(const char *text, size_t length, int at, int indent, FILE *out)
{
    const char *end = text + length;
    int column = at;
    for (bool is_first = true; text < end; is_first = false) {
        int word = (int)strcspn(text, " \n");
        if (!is_first && column + 1 + word > WIDTH)
            fprintf(out, "\n%*s", column = indent, "");
        else if (!is_first)
            column += fprintf(out, " ");
        column += fprintf(out, "%.*s", word, text);
        text += word;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

static void show_paragraphs(const char *text, FILE *out)
{
    for (size_t length; *text; text += length + (text[length] == '\n')) {
        length = strcspn(text, "\n");
        wrap(text, length, 0, 0, out);
    }
}

static void show_lines(const char *text, FILE *out)
{
    for (int length; *text; text += length + (text[length] == '\n')) {
        length = (int)strcspn(text, "\n");
        fprintf(out, "    %.*s\n", length, text);
    }
}

/* ---- exit codes ---- */

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

int zero_help_exit(const zero_command *command, int i, const char **meaning)
{
    unsigned bits = command ? command->exits : ZERO_EXIT_ANY;
    for (size_t k = 0; k < sizeof exits / sizeof exits[0]; k++) {
        if ((exits[k].bit & bits) != exits[k].bit || i-- > 0) continue;
        *meaning = exits[k].meaning;
        return exits[k].code;
    }
    return -1;
}

static void show_exits(const zero_command *command, FILE *out)
{
    const char *meaning;
    fputs("\nExit codes:\n", out);
    for (int i = 0, code; (code = zero_help_exit(command, i, &meaning)) >= 0; i++)
        fprintf(out, "  %2d  %s\n", code, meaning);
}

/* ---- defaults ---- */

/* Sets the model, and fills in what its preset decides. */
static zero_status set_model(const zero_command *command, const char *model, void *defaults)
{
    const zero_option_table *table;
    int i = zero_command_find_option(command, 0, "model", strlen("model"));
    if (i < 0) return ZERO_OK;
    const zero_option *option = zero_command_option(command, i, &table);
    void *config = (char *)defaults + table->base;
    if (model) ZERO_TRY(zero_option_store(option, model, "--model", config));
    return command->complete ? command->complete(defaults)
                             : zero_config_take_preset(config);
}

zero_status zero_help_defaults(const zero_command *command, const char *model,
                               void **defaults)
{
    void *made = calloc(1, command->size + 1);
    if (!made) return zero_fail(ZERO_ERR_NOMEM, "no memory for the defaults");
    zero_options_reset(command, made);
    zero_status st = set_model(command, model, made);
    if (st == ZERO_OK)
        *defaults = made;
    else
        free(made);
    return st;
}

const char *zero_help_default(const zero_option *option, const void *defaults,
                              char text[ZERO_OPTION_TEXT_BYTES])
{
    const char *value = zero_option_value(option, defaults, text);
    if (!value) return option->standard ? option->standard : option->absent;
    /* A tenth of 6e-4 in a double reads 5.9999999999999995e-05. */
    if (value == text && option->kind == ZERO_OPTION_REAL)
        snprintf(text, ZERO_OPTION_TEXT_BYTES, "%g", strtod(value, NULL));
    return value;
}

/* ---- options ---- */

static void show_option(const zero_option *option, const void *defaults, FILE *out)
{
    char argument[ZERO_OPTION_TEXT_BYTES], text[ZERO_OPTION_TEXT_BYTES];
    char help[ZERO_OPTION_HELP_BYTES], line[2 * ZERO_OPTION_HELP_BYTES];
    zero_option_argument(option, argument);
    int column = fprintf(out, "  --%s%s%s", option->name, argument[0] ? " " : "", argument);
    if (column > COLUMN - 2) {
        fputc('\n', out);
        column = 0;
    }
    fprintf(out, "%*s", COLUMN - column, "");
    zero_option_help(option, help);
    snprintf(line, sizeof line, "%s [%s]", help, zero_help_default(option, defaults, text));
    wrap(line, strlen(line), COLUMN, COLUMN, out);
}

bool zero_help_shows(const zero_command *command, int i, const char **group)
{
    const zero_option_table *table;
    const zero_option *option = zero_command_option(command, i, &table);
    if (option->group) *group = option->group;
    int first = zero_command_find_option(command, 0, option->name, strlen(option->name));
    return first == i && (option->is & table->shown) == table->shown;
}

/* The value of --model among the words; NULL if there is none. */
static const char *model_among(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (strncmp(argv[i], "--model=", strlen("--model=")) == 0)
            return argv[i] + strlen("--model=");
        if (strcmp(argv[i], "--model") == 0 && i + 1 < argc && argv[i + 1][0] != '-')
            return argv[i + 1];
    }
    return NULL;
}

zero_status zero_help_show(const zero_command *command, int argc, char **argv, FILE *out)
{
    void *defaults;
    ZERO_TRY(zero_help_defaults(command, model_among(argc, argv), &defaults));
    fputs("Usage:\n", out);
    show_lines(command->usage, out);
    fputc('\n', out);
    show_paragraphs(command->about, out);
    const zero_option_table *table;
    const zero_option *option;
    const char *group = NULL, *shown = NULL;
    for (int i = 0; (option = zero_command_option(command, i, &table)); i++) {
        if (!zero_help_shows(command, i, &group)) continue;
        if (group != shown) fprintf(out, "\n%s:\n", group);
        shown = group;
        show_option(option, (const char *)defaults + table->base, out);
    }
    if (command->n_tables != 0) {
        fputc('\n', out);
        show_paragraphs(ZERO_HELP_NUMBERS, out);
    }
    fputs("\nExample:\n", out);
    show_lines(command->example, out);
    show_exits(command, out);
    free(defaults);
    return ZERO_OK;
}

static zero_status show_defaults_json(const zero_command *command, const void *defaults,
                                      FILE *out)
{
    const zero_option_table *table;
    const zero_option *option;
    json_t *object = json_object();
    for (int i = 0; (option = zero_command_option(command, i, &table)); i++) {
        char text[ZERO_OPTION_TEXT_BYTES];
        const void *from = (const char *)defaults + table->base;
        const char *value = zero_option_value(option, from, text);
        json_object_set_new(object, option->name, value ? json_string(value) : json_null());
    }
    return zero_json_print(object, JSON_INDENT(2), out);
}

zero_status zero_help_show_defaults(const zero_command *command, const char *model,
                                    bool json, FILE *out)
{
    void *defaults;
    ZERO_TRY(zero_help_defaults(command, model, &defaults));
    zero_status st = ZERO_OK;
    if (json)
        st = show_defaults_json(command, defaults, out);
    else {
        const zero_option_table *table;
        const zero_option *option;
        for (int i = 0; (option = zero_command_option(command, i, &table)); i++) {
            char text[ZERO_OPTION_TEXT_BYTES];
            const void *from = (const char *)defaults + table->base;
            bool is_value = zero_option_value(option, from, text) || option->standard;
            const char *shown = zero_help_default(option, from, text);
            fprintf(out, is_value ? "--%-16s %s\n" : "--%-16s (%s)\n", option->name, shown);
        }
    }
    free(defaults);
    return st;
}

void zero_help_show_all(FILE *out)
{
    const zero_command *command;
    fputs("zero trains GPT-style transformers with ZeRO on MPI.\n\n", out);
    for (int i = 0; (command = zero_command_at(i)); i++)
        if (command->summary)
            fprintf(out, "    %-16s %s\n", command->name, command->summary);
    fputs("\nzero help COMMAND, or zero COMMAND --help, shows a command's options.\n"
          "zero version prints the version.\n\nzero help TOPIC:\n",
          out);
    zero_topics_show(out);
    show_exits(NULL, out);
}
