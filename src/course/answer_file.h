/* answer_file.h - files of answers, graded.
 *
 *     # a comment
 *     NAME Anna Berger        begins a student, with the numbers of the class
 *     STUDENT ben             begins a student, with the variant of that name
 *     1.1 = 4800              lesson 1, question 1; the last one counts
 *     2.2 = REDUCE
 *
 * Answers before the first name belong to a student without one. Of a lesson without any
 * answer nothing counts; in other lessons a missing answer is wrong. */
#pragma once

#include "course/answer.h"

typedef struct {
    const char *path;      /* "-": the standard input */
    const json_t *lessons; /* as zero_course_read() made them */
    int lesson;            /* only this one counts; 0: all */
    bool by_question; /* what was wrong, question by question; else a row per student */
    const zero_course_numbers *given; /* 0 and NULL where the course or a variant decides */
    const char *student;              /* the variant of answers under no name; NULL: none */
    const zero_course_planner *planner;
    FILE *out;
} zero_grading;

/* Prints the grades. ZERO_ERR_DIFFERENT if something is wrong; ZERO_ERR_IO for a file that
 * cannot be read; ZERO_ERR_FORMAT, with the line, for one that is not as above or has no
 * answers. */
zero_status zero_grade_file(const zero_grading *grading);
