#include "cli/lesson_plans.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "cli/plan_options.h"
#include "report/plan_program.h"
#include "report/plan_facts.h"

#define WORDS 48

/* A report borrows from its options, and these from their words. */
typedef struct {
    char words[ZERO_COURSE_WORDS];
    zero_plan_options options;
    zero_plan_report report;
} made_plan;

static void destroy(void *plan)
{
    made_plan *made = plan;
    zero_plan_report_destroy(&made->report);
    zero_plan_options_destroy(&made->options);
    free(made);
}

/* Cuts the words at blanks. Returns their number. */
static int cut(char *words, char *argv[WORDS])
{
    char *at = NULL;
    int argc = 0;
    for (char *word = strtok_r(words, " ", &at); word && argc < WORDS;
         word = strtok_r(NULL, " ", &at))
        argv[argc++] = word;
    return argc;
}

static zero_status fill(made_plan *made)
{
    char *argv[WORDS];
    int argc = cut(made->words, argv);
    ZERO_TRY(zero_plan_options_parse(&made->options, argc, argv));
    zero_status st = zero_plan_report_make(&made->report, &made->options.request);
    if (st != ZERO_OK) zero_plan_options_destroy(&made->options);
    return st;
}

static zero_status make(const char *words, void **plan)
{
    made_plan *made = calloc(1, sizeof *made);
    if (!made) return zero_fail(ZERO_ERR_NOMEM, "no memory for a plan of the lesson");
    strncpy(made->words, words, sizeof made->words - 1);
    zero_status st = fill(made);
    if (st == ZERO_OK)
        *plan = made;
    else
        free(made);
    return st;
}

static const zero_plan_report *report(const void *plan)
{
    return &((const made_plan *)plan)->report;
}

static zero_status show(const void *plan, FILE *out)
{
    const zero_plan_report *r = report(plan);
    if (r->request.show_schedule) return zero_plan_show_programs(r, out);
    return zero_plan_show(r, out);
}

/* ---- configurations ---- */

typedef struct {
    char words[ZERO_COURSE_WORDS];
    zero_config config;
    zero_options given;
} made_run;

static zero_status configure(const char *words, void **run)
{
    char *argv[WORDS];
    made_run *made = calloc(1, sizeof *made);
    if (!made) return zero_fail(ZERO_ERR_NOMEM, "no memory for a run of the lesson");
    strncpy(made->words, words, sizeof made->words - 1);
    int argc = cut(made->words, argv);
    zero_status st =
        zero_options_read(&zero_command_train, argc, argv, &made->config, &made->given);
    if (st == ZERO_OK)
        *run = made;
    else
        free(made);
    return st;
}

static const zero_config *config(const void *run)
{
    return &((const made_run *)run)->config;
}

static void forget(void *run)
{
    made_run *made = run;
    zero_options_destroy(&made->given);
    free(made);
}

const zero_course_planner zero_lesson_planner = {.make = make,
                                                 .report = report,
                                                 .show = show,
                                                 .destroy = destroy,
                                                 .configure = configure,
                                                 .config = config,
                                                 .forget = forget};
