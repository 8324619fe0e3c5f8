/* answer.h - an answer as people write it, and its grade. */
#pragma once

#include "lesson/question.h"

#define ZERO_ANSWER_BYTES 128 /* of a line that can be an answer */

/* A line: what was typed without blanks around it, cut to ZERO_ANSWER_BYTES. */
typedef struct {
    char text[ZERO_ANSWER_BYTES];
    bool is_whole; /* it was neither longer nor did it have a NUL byte */
} zero_answer_line;

/* The next line, without a byte order mark; false at the end of the input. Of a line of more than a
 * million bytes, the next piece. */
bool zero_answer_read(FILE *in, zero_answer_line *line);

typedef struct {
    double value;
    bool is_rounded; /* with a fraction or a suffix: right to 1 % */
} zero_answer;

/* "4800", "4,800 bytes", "4.69 KiB", "1.375x", "11/8", "27 %", "1.17 s", "3 ms", "yes". False for what
 * is neither a finite number nor, of a word, one of the words. `unit` is the question's. */
bool zero_answer_parse(zero_answer_kind kind, const char *unit, const char *text,
                       zero_answer *answer);

typedef enum {
    ZERO_GRADE_MISSING,
    ZERO_GRADE_RIGHT,
    ZERO_GRADE_MISTAKE, /* wrong, and usual */
    ZERO_GRADE_WRONG,
    ZERO_GRADE_UNREADABLE,
    ZERO_GRADES
} zero_grade;

typedef struct {
    zero_grade grade;
    const char *why; /* MISTAKE: a template that names it; else NULL */
} zero_graded;

/* True if the value counts as right. */
bool zero_grade_is_right(const zero_question *q, double right, const zero_answer *answer);

/* A mistake is the question's own, or one of units that all questions about bytes share. One that
 * gives the right number is no mistake. */
zero_graded zero_grade_answer(const zero_question *q, const zero_course_world *w,
                              const zero_answer_line *line);
