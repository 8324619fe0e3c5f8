/* usage.h - the text of --help, from the option table. */
#pragma once

#include <stdio.h>

#include "cli/option_table.h"

/* Every option with its argument, meaning and default, by groups; at most 100 columns. */
void zero_options_help(FILE *out);
/* The same for n rows of any table. */
void zero_usage_rows(int n, const zero_option *table, FILE *out);
