/* hold.h - a lesson is held: its screens, questions and grades, one after another. */
#pragma once

#include "course/answer.h"

typedef enum {
    ZERO_COURSE_ASK,     /* questions are asked and graded */
    ZERO_COURSE_NARRATE, /* screens and what follows from them, without questions */
    ZERO_COURSE_TELL,    /* for teachers: all of it, with the usual mistakes */
} zero_course_mode;

typedef struct {
    zero_course_mode mode;
    FILE *in, *out;
    int from;   /* the first question, from 1 */
    int tries;  /* per question, from 1 */
    bool waits; /* at a terminal: for Enter before the next screen */
    FILE *save; /* the last answer to each question, as answer_file.h reads it; NULL */
} zero_course_options;

typedef struct {
    int asked, right, second; /* second: of `right`, not at the first try */
    int open; /* the number of the first question that was not reached; 0: all were */
} zero_course_tally;

/* Holds lesson `number`, as zero_course_fill() made it. The tally counts its questions,
 * also those that were not reached. */
zero_status zero_course_hold(int number, const json_t *lesson,
                             const zero_course_options *options, zero_course_tally *tally);

/* A text's lines from column `indent` on, in 78 columns. Lines that begin with two blanks
 * stay as they are, and continue four columns further in if they are too long; others are
 * one paragraph. */
void zero_say(const char *text, int indent, FILE *out);

/* The screen of a question, and what it asks. */
void zero_say_screen(const json_t *question, FILE *out);

/* True if the plan's text has the line that `shows` names, which is printed unless `out`
 * is NULL. */
bool zero_plan_line(const json_t *shows, FILE *out);
