/* narrate.h - a step as a tree of facts, and in words: narrate.form has the words.
 *
 * The narrator takes the events of all ranks (state/told.h), so that a real run (zero train
 * --narrate) and a lesson print the same lines. */
#pragma once

#include "data/tokenizer.h"
#include "io/json_tree.h"
#include "nn/model.h"
#include "state/told.h"

#define ZERO_NARRATE_PARAMS 10000 /* parameters of a model whose numbers are shown */
#define ZERO_NARRATE_WIDTH  80    /* columns, at most */

/* ZERO_ERR_UNSUPPORTED, with the numbers, for a model or a number of ranks that is too
 * large. */
zero_status zero_narrate_check(const zero_model *model, int n_ranks);

/* Copies the events of a rank, whose program has n instructions, at most as many as the
 * tale. */
void zero_tale_take(zero_tale *tale, int rank, const zero_told *events, int n);

/* The rank with which others are compared: the first whose program is the longest.
 * Programs differ in length where a rank owns nothing that could be read from its file. */
int zero_tale_leader(const zero_tale *tale);

/* The event of `rank` in the leader's instruction `at`; NULL: nothing. */
const zero_told *zero_tale_find(const zero_tale *tale, int at, int rank);

/* The REDUCE of `rank` that belongs to an owner's REDUCE_WAIT: the last one of its group
 * before it; NULL: none. */
const zero_told *zero_tale_reduce(const zero_tale *tale, int rank, const zero_told *wait);

/* Names and letters, which events do not have. Borrowed. */
typedef struct {
    const zero_model *model;         /* the whole one */
    const zero_tokenizer *tokenizer; /* for "abca"; NULL: tokens are numbers */
} zero_narrator;

/* The step: a new array with an object for each of the leader's instructions,
 *
 *     {step, number, op, operand, meaning, group, T: ranks of a TP group, first: rank,
 *      lead: the leader's event,
 *      ranks: [{rank, tp, begin, last, real, bytes, sample, text, loss, gradient, done,
 *               terms,
 *               numbers: [{at, value, said}], own: that of its shard}],
 *      equal: bytes that each rank sends to each other, or -1, others,
 *      senders: [{rank, to: [{rank, bytes}]}]}
 *
 * with null for a number that is not told. */
json_t *zero_narrate_tree(const zero_narrator *n, const zero_tale *tale);

/* Writes an instruction of the tree: one line, and below it lines with numbers. */
zero_status zero_narrate_instruction(const json_t *instruction, FILE *out);
/* All of them, after a line that names the step. */
zero_status zero_narrate_step(const json_t *step, FILE *out);

/* Prints words, which blanks and newlines part, from `column` on. A line has at most
 * `width` columns, and the next one begins at `indent`. The byte 1 is a blank at which no
 * line is broken. */
void zero_wrap(const char *text, size_t length, int column, int indent, int width,
               FILE *out);
