/* question.h - a lesson as data: screens, questions, and functions that answer them.
 *
 * No answer is a constant. A question has a function that reads it from a plan or from the machine,
 * and each of its usual mistakes is a function as well, so ranks, layers and types may change and all
 * numbers follow. Texts are templates: {N} is the value of that name, {answer} the question's own. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "lesson/machine.h"
#include "report/plan_report.h"

/* The numbers of a class, or of a student's variant. */
typedef struct {
    int64_t ranks, layers, hidden; /* of the small model */
    int64_t microbatches;          /* of the lesson about accumulation */
    int64_t bandwidth;             /* bytes per second, of the lesson about prefetching */
    const char *dtype;             /* borrowed */
} zero_course_numbers;

#define ZERO_COURSE_RANKS    8
#define ZERO_COURSE_LAYERS   4
#define ZERO_COURSE_HIDDEN   12 /* so that the largest model can be told number by number */
#define ZERO_COURSE_PLANS    8
#define ZERO_COURSE_MACHINES 4
#define ZERO_COURSE_WORDS    256
#define ZERO_COURSE_TEXT     2048

/* Plans as `zero plan` makes them from the same words, and configurations as `zero train` does; filled
 * in by the command line's layer. */
typedef struct {
    zero_status (*make)(const char *words, void **plan);
    const zero_plan_report *(*report)(const void *plan);
    zero_status (*show)(const void *plan, FILE *out); /* the text of `zero plan` */
    void (*destroy)(void *plan);
    zero_status (*configure)(const char *words, void **run); /* destroyed by forget() */
    const zero_config *(*config)(const void *run);
    void (*forget)(void *run);
} zero_course_planner;

/* Real arithmetic: all ranks in this process, after the lesson's steps. */
typedef struct {
    void *run; /* from the planner */
    zero_lesson_machine *machine;
    zero_lesson_step last;
    char digest[33];
} zero_course_machine;

/* Everything that the questions of one lesson read. */
typedef struct {
    const zero_course_numbers *numbers; /* borrowed, as the planner */
    const zero_course_planner *planner;
    char words[ZERO_COURSE_PLANS][ZERO_COURSE_WORDS];
    void *plans[ZERO_COURSE_PLANS];
    int n_plans;
    zero_course_machine machines[ZERO_COURSE_MACHINES];
    int n_machines;
} zero_course_world;

typedef double zero_course_value(const zero_course_world *w);

typedef struct {
    const char *name; /* in templates; NULL: the last row */
    zero_course_value *value;
} zero_course_name;

/* A wrong answer that many give. */
typedef struct {
    /* NULL: the last row. NAN: it cannot happen with these numbers */
    zero_course_value *value;
    const char *why; /* a template */
} zero_mistake;

#define ZERO_MISTAKES 7

typedef enum {
    ZERO_ANSWER_WHOLE,   /* an exact whole number */
    ZERO_ANSWER_REAL,    /* to 1 % */
    ZERO_ANSWER_FINE,    /* to 0.05 %: four digits */
    ZERO_ANSWER_SECONDS, /* to 1 % */
    ZERO_ANSWER_WORD,    /* one of the words of `unit`; the value is its number, from 0 */
} zero_answer_kind;

typedef struct {
    const char *screen; /* a template; NULL: the question stands alone */
    void (*show)(const zero_course_world *w, FILE *out); /* below it; NULL: nothing */
    const char *ask;
    zero_answer_kind kind;
    const char *unit; /* "bytes"; of a word: "yes|no" */
    zero_course_value *answer;
    zero_mistake mistakes[ZERO_MISTAKES];
    const char *because; /* the derivation */
    int plan;
    const char *line; /* the first line of that plan with this text, a template, shows it */
    const char *against; /* the misconception; NULL: none of the table */
    /* The instruction of machine 0, from 0, whose words follow the answer; NULL: none. */
    int (*told)(const zero_course_world *w);
} zero_question;

typedef struct {
    const char *title, *about;
    const char *const *plans;    /* words of `zero plan`, templates; NULL past the last */
    const char *const *machines; /* words of `zero train`, without ranks; NULL: none */
    int steps;                   /* that a machine walks; its tale is of the last */
    bool tells_step;             /* a narration ends with the whole step of machine 0 */
    const zero_course_name *names;
    const zero_question *questions;
    int n;
} zero_lesson;

/* Lesson number n, from 1; NULL past the last. */
const zero_lesson *zero_course_lesson(int n);
int zero_course_lessons(void);

/* Makes the plans of a lesson and walks its machines; fails as they do, leaving nothing. */
ZERO_NODISCARD zero_status zero_course_open(zero_course_world *w, const zero_lesson *lesson,
                                            const zero_course_numbers *numbers,
                                            const zero_course_planner *planner);
void zero_course_close(zero_course_world *w);

/* Writes a template with its values to `text`; false, with {?} in it, for an unknown name. */
bool zero_course_expand(const zero_lesson *lesson, const zero_question *q,
                        const zero_course_world *w, const char *template,
                        char text[ZERO_COURSE_TEXT]);

/* "4800" or "1.375"; of a word the word. */
void zero_course_number(double value, char text[32]);
void zero_course_answer(const zero_question *q, double value, char text[32]);
