/* course.h - lessons as data: text files that are read, filled with numbers, and held.
 *
 * A lesson is one file, lessons/NN-name.lesson. An entry begins at the start of a line
 * with a keyword; lines that are indented by four blanks continue it. `#` begins a
 * comment.
 *
 *   title, about TEXT       as the list of lessons prints them
 *   plan NAME WORDS         a plan, as `zero plan WORDS` makes it
 *   steps N                 of the runs below it; what is told of a run is its last step
 *   run NAME WORDS          `zero train WORDS`, really computed, all ranks in this process
 *   tells-step TEXT         --no-questions ends with the whole step of the first run
 *   let NAME EXPRESSION     a fact of the lesson's own
 *   text NAME TEXT          the same, as a text
 *
 *   question                begins one
 *   screen TEXT             what is shown before it
 *   ask TEXT
 *   reply KIND UNIT         whole: exactly; real, seconds: to 1 %; fine: to 0.05 %; or
 *                           word, with the words as UNIT: yes|no
 *   within EXPRESSION       another tolerance, relative
 *   answer EXPRESSION
 *   mistake EXPRESSION      a usual wrong answer; indented below, a TEXT: what is wrong
 *   because TEXT            the derivation
 *   shows PLAN TEXT         the first line of the plan's text with TEXT, and its command
 *   command TEXT            commands that show it, but are not run here, one a line
 *   tells EXPRESSION        index of the first run's instruction that is told, with numbers
 *   against TEXT            the misconception, for teachers
 *
 * A TEXT has holes as forms have (facts/form.h), an EXPRESSION reads facts
 * (facts/facts.h): N, L, C, M, bandwidth and dtype are the class's or the student's
 * numbers; a plan's name is the tree that `zero plan --json` prints, with the members of
 * its first stage beside its own, and `groups`; a run's name is {loss, loss_scale, digest,
 * step: as narrate.h has it, steps: [{step, loss, loss_scale, skipped}]}; `answer` is the
 * question's. `plan` and `run` are the first of them. lessons/common.lesson has what all
 * lessons can name.
 *
 * Entries act in the order of the file, so what one names stands above it. A wrong file is
 * found where its lesson is filled; the message has its name and line. */
#pragma once

#include "io/json_tree.h"

/* The numbers of a class, or of a student's variant. */
typedef struct {
    int64_t ranks, layers, hidden; /* of the small model */
    int64_t microbatches;          /* of the lesson about accumulation */
    int64_t bandwidth;             /* bytes per second, of the lesson about prefetching */
    const char *dtype;             /* borrowed */
} zero_course_numbers;

#define ZERO_COURSE_RANKS  8
#define ZERO_COURSE_LAYERS 4
#define ZERO_COURSE_HIDDEN 12 /* so that the largest model can be told number by number */

/* The numbers of a student's variant: those that are 0 or NULL in `given` are drawn from
 * the name, the others stay. The same name has the same numbers on every machine. */
zero_course_numbers zero_course_variant(const zero_course_numbers *given, const char *name);
/* The numbers of the course where `given` leaves them open. */
zero_course_numbers zero_course_standard(const zero_course_numbers *given);

/* What makes plans and runs from their words; filled in by the command line's layer.
 * Results are new. */
typedef struct {
    /* The text of `zero plan`, and the plan's facts. */
    zero_status (*plan)(const char *words, char **text, json_t **facts);
    /* A run of so many ranks and steps. */
    zero_status (*run)(const char *words, int ranks, int steps, json_t **facts);
} zero_course_planner;

/* The lessons as they are in their files, in order: a new array. */
zero_status zero_course_read(json_t **lessons);
/* The same of one file; `name` is for messages. */
zero_status zero_course_parse(const char *name, const char *text, json_t **lesson);

/* A new lesson whose expressions are numbers and whose texts are full:
 *
 *     {title, about, facts, tells-step,
 *      questions: [{screen, ask, kind, unit, answer, within, because, mistakes: [{value,
 *        why}],
 *                   common: the same, shows: {words, text, line}, command, tells,
 *                     against}]}
 *
 * with what a question leaves out missing. A word's number is its place in `unit`; the
 * value of a mistake that cannot happen with these numbers is missing. Fails as its plans
 * and runs do, and with ZERO_ERR_FORMAT for a wrong lesson. */
zero_status zero_course_fill(const json_t *lesson, const zero_course_numbers *numbers,
                             const zero_course_planner *planner, json_t **held);

/* How many questions a lesson has that was read. */
int zero_course_questions(const json_t *lesson);

/* A line per lesson. */
void zero_course_list(const json_t *lessons, FILE *out);

/* A text of a question or a lesson; NULL if it has none. */
const char *zero_said(const json_t *of, const char *key);
