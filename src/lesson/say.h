/* say.h - what a lesson prints: templates with their values, within 80 columns, and lines of plans. */
#pragma once

#include "lesson/question.h"

#define ZERO_SAY_COLUMNS 78

/* Where a text is printed: a lesson's question (or NULL) in its world. */
typedef struct {
    const zero_lesson *lesson;
    const zero_question *question;
    const zero_course_world *world;
    FILE *out;
} zero_speaker;

/* The template's lines from column `indent` on, wrapped; lines that begin with two blanks stay as they
 * are, and continue four columns further in if they are too long. */
void zero_say(const zero_speaker *s, int indent, const char *template);

/* The screen of the speaker's question, and what it asks. */
void zero_say_screen(const zero_speaker *s);

/* The right answer, after words such as "The answer is"; why; and the plan's line with its command. */
void zero_say_answer(const zero_speaker *s, const char *words);

/* The last step of machine 0, instruction by instruction, if it is small enough to be told. */
void zero_say_step(const zero_speaker *s);
