/* usage.h - the text of --help, from the option table. */
#pragma once

#include <stdio.h>

/* Every option with its argument, meaning and default, by groups; at most 100 columns. */
void zero_options_help(FILE *out);
