/* Pages of the manual, from the tables that --help prints. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "cli/help.h"
#include "zero/version.h"

/* Text as troff reads it: a bare dash is a hyphen, a backslash begins a command, and so do
 * a dot and a quote at the beginning of a line. A newline begins a paragraph. */
static void put(const char *text, FILE *out)
{
    if (*text == '.' || *text == '\'') fputs("\\&", out);
    for (; *text; text++) {
        switch (*text) {
        case '-': fputs("\\-", out); break;
        case '\\': fputs("\\e", out); break;
        case '\n': fputs("\n.PP\n", out); break;
        default: fputc(*text, out);
        }
    }
}

static void section(const char *name, FILE *out)
{
    fprintf(out, ".SH %s\n", name);
}

/* "zero train" as the page's name: zero-train */
static void put_title(const zero_command *command, bool upper, FILE *out)
{
    const char *name = command ? command->name : "zero";
    for (; *name; name++)
        fputc(*name == ' ' ? '-' : upper ? toupper((unsigned char)*name) : *name, out);
}

static void put_head(const zero_command *command, const char *summary, FILE *out)
{
    fputs(".TH ", out);
    put_title(command, true, out);
    fprintf(out, " 1 \"\" \"zero %s\" \"zero\"\n", zero_version());
    section("NAME", out);
    put_title(command, false, out);
    fputs(" \\- ", out);
    put(summary, out);
    fputc('\n', out);
}

/* Lines as they stand. */
static void put_lines(const char *text, FILE *out)
{
    fputs(".nf\n", out);
    for (; *text; text++) {
        if (*text == '-') fputc('\\', out);
        fputc(*text, out);
    }
    fputs("\n.fi\n", out);
}

static void put_option(const zero_option *option, const void *defaults, FILE *out)
{
    char argument[ZERO_OPTION_TEXT_BYTES], text[ZERO_OPTION_TEXT_BYTES];
    char help[ZERO_OPTION_HELP_BYTES];
    zero_option_argument(option, argument);
    zero_option_help(option, help);
    fputs(".TP\n\\fB\\-\\-", out);
    put(option->name, out);
    fputs(argument[0] ? "\\fR \\fI" : "", out);
    put(argument, out);
    fputs("\\fR\n", out);
    put(help, out);
    fputs(" [", out);
    put(zero_help_default(option, defaults, text), out);
    fputs("]\n", out);
}

static void put_exits(const zero_command *command, FILE *out)
{
    const char *meaning;
    section("EXIT STATUS", out);
    for (int i = 0, code; (code = zero_help_exit(command, i, &meaning)) >= 0; i++)
        fprintf(out, ".TP\n%d\n%s\n", code, meaning);
}

static void put_see_also(const zero_command *command, FILE *out)
{
    const zero_command *other;
    section("SEE ALSO", out);
    fputs(".BR mpirun (1)", out);
    if (command) fputs(",\n.BR zero (1)", out);
    for (int i = 0; !command && (other = zero_command_at(i)); i++) {
        if (!other->summary) continue;
        fputs(",\n.BR ", out);
        put_title(other, false, out);
        fputs(" (1)", out);
    }
    fputc('\n', out);
}

static void write_zero(FILE *out)
{
    put_head(NULL, "train GPT-style transformers with ZeRO on MPI", out);
    section("SYNOPSIS", out);
    fputs(".B zero\n.I command\n[options]\n", out);
    const zero_command *command;
    section("COMMANDS", out);
    for (int i = 0; (command = zero_command_at(i)); i++) {
        if (!command->summary) continue;
        fprintf(out, ".TP\n\\fB%s\\fR\n", command->name);
        put(command->summary, out);
        fputc('\n', out);
    }
    put_exits(NULL, out);
    put_see_also(NULL, out);
}

zero_status zero_help_write_man(const zero_command *command, FILE *out)
{
    void *defaults;
    if (!command) {
        write_zero(out);
        return ZERO_OK;
    }
    ZERO_TRY(zero_help_defaults(command, NULL, &defaults));
    put_head(command, command->summary, out);
    section("SYNOPSIS", out);
    put_lines(command->usage, out);
    section("DESCRIPTION", out);
    put(command->about, out);
    fputc('\n', out);
    const zero_option_table *table;
    const zero_option *option;
    const char *group = NULL, *shown = NULL;
    if (command->n_tables != 0) {
        section("OPTIONS", out);
        put(ZERO_HELP_NUMBERS, out);
        fputc('\n', out);
        for (int i = 0; (option = zero_command_option(command, i, &table)); i++) {
            if (!zero_help_shows(command, i, &group)) continue;
            if (group != shown) fprintf(out, ".SS %s\n", group);
            shown = group;
            put_option(option, (const char *)defaults + table->base, out);
        }
    }
    section("EXAMPLES", out);
    put_lines(command->example, out);
    put_exits(command, out);
    put_see_also(command, out);
    free(defaults);
    return ZERO_OK;
}
