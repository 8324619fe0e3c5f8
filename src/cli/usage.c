#include "cli/usage.h"

#define COLUMN 26 /* where the explanations begin */

static void print_option(const zero_option *option, FILE *out)
{
    const char *argument = option->argument ? option->argument : option->words;
    int width = fprintf(out, "  --%s%s%s", option->name, argument ? " " : "",
                        argument ? argument : "");
    if (width > COLUMN - 2) {
        fputc('\n', out);
        width = 0;
    }
    fprintf(out, "%*s%s [%s]\n", COLUMN - width, "", option->help,
            option->standard ? option->standard : option->absent);
}

void zero_usage_rows(int n, const zero_option *table, FILE *out)
{
    for (int i = 0; i < n; i++) {
        if (table[i].group) fprintf(out, "\n%s:\n", table[i].group);
        print_option(&table[i], out);
    }
}

void zero_options_help(FILE *out)
{
    int n;
    const zero_option *table = zero_option_table(&n);
    fputs(
        "Options are --name value or --name=value, defaults are in brackets. A whole "
        "number N\n"
        "may end in K, M, G or T, thousands to trillions, of elements and bytes alike, or "
        "in KiB,\n"
        "MiB, GiB or TiB, powers of 1024.\n"
        "Options that take no argument may be given as --name=on or --name=off.\n",
        out);
    zero_usage_rows(n, table, out);
}
