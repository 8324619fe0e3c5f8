/* narrate.h - a step in words: one text for each kind of instruction.
 *
 * The narrator takes the events of all ranks (state/told.h), so that a real run (zero train
 * --narrate) and a lesson print the same lines. */
#pragma once

#include <stdio.h>

#include "data/tokenizer.h"
#include "nn/model.h"
#include "state/told.h"
#include "zero/status.h"

#define ZERO_NARRATE_PARAMS 10000 /* parameters of a model whose numbers are shown */

/* ZERO_ERR_UNSUPPORTED, with the numbers, for a model or a number of ranks that is too large. */
ZERO_NODISCARD zero_status zero_narrate_check(const zero_model *model, int n_ranks);

/* Names and letters, which events do not have. Borrowed. */
typedef struct {
    const zero_model *model;         /* the whole one */
    const zero_tokenizer *tokenizer; /* for "abca"; NULL: tokens are numbers */
} zero_narrator;

/* Writes instruction `at` of all ranks: one line, and below it lines with numbers. */
void zero_narrate_instruction(const zero_narrator *n, const zero_tale *tale, int at,
                              FILE *out);
/* All of them, after a line that names the step. */
void zero_narrate_step(const zero_narrator *n, const zero_tale *tale, FILE *out);
