/* The lessons in a program that plans and simulates, and has neither an engine nor MPI:
 * alone.sh asks the loader. It fills a lesson whose plan is a tree of its own. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "course/answer_file.h"
#include "course/hold.h"
#include "course/narrate.h"
#include "plan/plan.h"
#include "simulation/simulate.h"

static zero_status plan(const char *words, char **text, json_t **facts)
{
    *text = strdup(words);
    *facts = json_pack("{s:{s:i},s:{s:s},s:[{s:i}]}", "model", "parameters", 300, "input",
                       "type", "fp32", "groups", "padded", 768);
    return ZERO_OK;
}

static zero_status hold(void)
{
    static const zero_course_planner planner = {.plan = plan};
    static const char text[] = "title alone\nabout it\nplan p words of a plan\nquestion\n"
                               "ask How many?\nreply whole bytes\nanswer 16 * psi\n"
                               "because 16 x {psi} = {answer}.\nshows p words\n";
    zero_course_numbers given = {.ranks = 0}, numbers = zero_course_standard(&given);
    zero_course_options options = {
        .mode = ZERO_COURSE_TELL, .in = stdin, .out = stdout, .from = 1, .tries = 1};
    zero_course_tally tally;
    json_t *all, *lesson, *held;
    ZERO_TRY(zero_course_read(&all));
    zero_course_list(all, stdout);
    ZERO_TRY(zero_course_parse("alone", text, &lesson));
    ZERO_TRY(zero_course_fill(lesson, &numbers, &planner, &held));
    zero_status st = zero_course_hold(1, held, &options, &tally);
    json_decref(held);
    json_decref(lesson);
    json_decref(all);
    return st;
}

int main(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) { /* never: so that all of it is linked */
        void (*const calls[])(void) = {
            (void (*)(void))zero_plan_measure, (void (*)(void))zero_simulate,
            (void (*)(void))zero_grade_file, (void (*)(void))zero_narrate_tree};
        return calls[argc % 4] != NULL;
    }
    if (hold() == ZERO_OK) return 0;
    fprintf(stderr, "%s\n", zero_last_error());
    return 1;
}
