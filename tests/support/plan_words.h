/* plan_words.h - the options of `zero plan`, from a line of words. CMocka's header comes before this
 * one. */
#pragma once

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "cli/plan_options.h"

/* words[512], and the files of the line parsed last, are borrowed by *o. */
static inline zero_status parse(zero_plan_options *o, const char *line, char *words)
{
    static zero_options given;
    char *argv[32];
    int argc = 0;
    zero_options_destroy(&given);
    snprintf(words, 512, "%s", line);
    for (char *w = strtok(words, " "); w; w = strtok(NULL, " ")) argv[argc++] = w;
    return zero_options_read(&zero_command_plan, argc, argv, o, &given);
}

/* Seconds, rates and the like. */
static inline bool is_near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fmax(fabs(a), fabs(b)) + 1e-15;
}
