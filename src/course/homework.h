/* homework.h - exercises as data: text files that say what a student writes, and grade it.
 *
 * An exercise is one file, homework/NN-name.homework. A line "=== NAME" begins a section:
 *
 *   title       a line, as the list of exercises prints it
 *   text        what the student reads
 *   c, python   the skeletons
 *   given_c, given_python    code that the exercise adds to homework.h and homework.py
 *   call        how the student's function is called, in C and Python alike
 *   cases       a spec (facts/facts.h) of numbers a line, over N: "n = 60; owner = N - 1"
 *   buffers     NAME  ROLE  FILL  LENGTH, a line each. ROLE: `in`; `out` and `both`, whose
 *               bits are compared; `hidden` from the student, for what is given. FILL: nan;
 *               digits: rank r has 1, 2 or 3 times 8^r, so a sum tells whose numbers are in
 *               it; sum: nan, where such a sum is expected; random; same: on all ranks.
 *               LENGTH over N, rank, the numbers, and `piece`, the length of the rank's
 *               piece of n
 *   limits      a spec of closed forms over N, the numbers and the facts of the
 *               `reference`: the most that a right solution needs of bytes, messages,
 *               rounds, memory, ... (judge.h)
 *   reference   a solution in C, whose results are the right ones
 *   mistakes    a condition over the facts of a call, and indented below it what is wrong:
 *               the first that holds is said. common.homework has those of all exercises
 *
 * The facts of a call: the judge's; N and its numbers; `most`, the limits; `passed`, how
 * many world sizes went well before; where bits differ, fault == "bits" with buffer, index,
 * got, expected, wrong, of; unset: nothing was written there; of_rank: this is the result
 * of another rank; alone: the rank's own numbers only; lacks, twice: a rank whose numbers are
 * not, or twice, in the sum; where a limit is passed, fault == "limit" with limit, used,
 * allowed. */
#pragma once

#include "course/exercise.h"

/* All exercises, in order: [{name, title, text, ...}], with the sections as texts. */
zero_status zero_homework_read(json_t **exercises);

#define ZERO_HOMEWORK_CASES 32 /* over all world sizes */

typedef struct {
    const json_t *exercise;
    int64_t seed;                  /* of random numbers */
    const char *compiler, *python; /* commands */
    zero_buffer buffers[ZERO_JUDGE_BUFFERS];
    int n_buffers;
    zero_judge_call expected[ZERO_HOMEWORK_CASES]; /* the reference's results, */
    json_t *reference;                             /* and the facts of its calls */
} zero_homework;

/* Runs the reference. ZERO_ERR_ENV without a compiler. */
zero_status zero_homework_open(zero_homework *h);
void zero_homework_close(zero_homework *h);

/* Checks a student's file, C or Python by its ending: *verdict, new, is {file, passed, runs:
 * [facts of each call]} and, unless it passed, why, a sentence, and said, what the compiler
 * or the program has printed. A failure is ours, not the student's. */
zero_status zero_homework_check(zero_homework *h, const char *path, json_t **verdict);

/* Writes the exercise's skeletons and text into a directory, which is made; no file that is
 * there is replaced. */
zero_status zero_homework_start(const json_t *exercise, const char *dir);
