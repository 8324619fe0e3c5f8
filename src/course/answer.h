/* answer.h - an answer as people write it, and its grade. */
#pragma once

#include "course/course.h"

#define ZERO_ANSWER_BYTES 128 /* of a line that can be an answer */

typedef enum {
    ZERO_ANSWER_WHOLE,   /* an exact whole number */
    ZERO_ANSWER_REAL,    /* to 1 % */
    ZERO_ANSWER_FINE,    /* to 0.05 %: four digits */
    ZERO_ANSWER_SECONDS, /* to 1 % */
    ZERO_ANSWER_WORD,    /* one of the words of `unit`; the value is its number, from 0 */
} zero_answer_kind;

/* Of a question that is held (course.h). */
zero_answer_kind zero_question_kind(const json_t *question);
double zero_question_answer(const json_t *question);
/* The value as its question writes it: "4800", "1.375", of a word the word. */
void zero_course_answer(const json_t *question, double value, char text[ZERO_ANSWER_BYTES]);

/* A line: what was typed without blanks around it, cut to ZERO_ANSWER_BYTES. */
typedef struct {
    char text[ZERO_ANSWER_BYTES];
    bool is_whole; /* it was neither longer nor did it have a NUL byte */
} zero_answer_line;

/* The next line, without a byte order mark; false at the end of the input. Of a line of
 * more than a million bytes, the next piece. */
bool zero_answer_read(FILE *in, zero_answer_line *line);

typedef struct {
    double value;
    bool is_rounded; /* with a fraction or a suffix: right to 1 % */
    double slack;    /* half a unit of the last of at least two digits; or 0 */
} zero_answer;

/* "4800", "4,800 bytes", "4.69 KiB", "1.375x", "11/8", "27 %", "1.17 s", "3 ms", "yes".
 * False for what is neither a finite number nor, of a word, one of the words. `unit` is
 * the question's. */
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
    const char *why; /* MISTAKE: names it, borrowed from the question; else NULL */
    int mistake;     /* its number in the question; those that all questions share follow */
} zero_graded;

/* True if the answer is `value` to the question's tolerance. */
bool zero_grade_is(const json_t *question, double value, const zero_answer *answer);

/* A rounded answer is also right to the digits that it has, unless a usual mistake is
 * nearer. */
zero_graded zero_grade_answer(const json_t *question, const zero_answer_line *line);
