/* course.h - a lesson is held: its screens, questions and grades, one after another. */
#pragma once

#include "lesson/answer.h"

typedef enum {
    ZERO_COURSE_ASK,     /* questions are asked and graded */
    ZERO_COURSE_NARRATE, /* screens and what follows from them, without questions */
    ZERO_COURSE_TELL,    /* for teachers: all of it, with the usual mistakes */
} zero_course_mode;

typedef struct {
    zero_course_mode mode;
    FILE *in, *out;
    int tries;  /* per question, from 1 */
    bool waits; /* at a terminal: for Enter before the next screen */
    FILE *save; /* the last answer to each question, as answer_file.h reads it; NULL */
} zero_course_options;

typedef struct {
    int asked, right, second; /* second: of `right`, not at the first try */
    bool ended; /* the input ended, or the student left, before the last question */
} zero_course_tally;

/* Holds lesson number n. The tally counts its questions, also those that were not reached. */
ZERO_NODISCARD zero_status zero_course_hold(int n, const zero_course_numbers *numbers,
                                            const zero_course_planner *planner,
                                            const zero_course_options *options,
                                            zero_course_tally *tally);

/* A line per lesson. */
void zero_course_list(FILE *out);

/* The numbers of a student's variant: those that are 0 or NULL in `given` are drawn from the name, the
 * others stay. The same name has the same numbers on every machine. */
zero_course_numbers zero_course_variant(const zero_course_numbers *given, const char *name);
/* The numbers of the course where `given` leaves them open. */
zero_course_numbers zero_course_standard(const zero_course_numbers *given);
