/* narrate.h - a step in words: one text for each kind of instruction.
 *
 * The narrator takes events, so that a real run (zero train --narrate) and a lesson print the same
 * lines. */
#pragma once

#include <stdio.h>

#include "lesson/told.h"

#define ZERO_NARRATE_WIDTH 80 /* columns, at most */

/* What the lines need besides the events. Borrowed. */
typedef struct {
    const zero_schedule *schedule; /* of rank 0 */
    const zero_model *model;
    int n_ranks; /* of all */
    /* The text of a token, for "abca"; NULL: numbers. */
    const struct zero_tokenizer *tokenizer;
} zero_narrator;

/* Writes instruction `at` of all ranks: one line, and lines with numbers below it. */
void zero_narrate_instruction(const zero_narrator *n, const zero_tale *tale, int at,
                              FILE *out);
/* All of them, after a line that names the step. */
void zero_narrate_step(const zero_narrator *n, const zero_tale *tale, FILE *out);
