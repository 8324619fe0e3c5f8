/* Four stages, one result: equal losses, moments and parameters, to the bit. */
#include "lesson/lessons.h"
#include "lesson/world.h"

#include <string.h>

#define RUN(stage) \
    "{model} --data lesson --backend naive --global-batch {N} --dtype {dtype} " \
    "--stage " #stage
#define PLAN(stage) "{model} --ranks {N} --global-batch {N} --dtype {dtype} --stage " #stage

static const char *const plans[] = {PLAN(0), PLAN(3), NULL};
static const char *const machines[] = {RUN(0), RUN(1), RUN(2), RUN(3), NULL};

#define STEPS 5

/* Decimal digits in which two losses agree, of the 17 that tell all doubles apart. */
static double digits(double a, double b)
{
    char x[40], y[40];
    int n = 0, equal = 0;
    snprintf(x, sizeof x, "%.16e", a);
    snprintf(y, sizeof y, "%.16e", b);
    if (strcmp(x + 18, y + 18) != 0) return 0.0; /* the exponents */
    for (; x[n] && x[n] == y[n] && x[n] != 'e'; n++) equal += x[n] >= '0' && x[n] <= '9';
    return equal;
}

static double equal_digits(const zero_course_world *w)
{
    return digits(w->machines[0].last.loss, w->machines[3].last.loss);
}

/* Digits that fp32 or a 16-bit type would keep. */
static double fp32_digits(const zero_course_world *w)
{
    (void)w;
    return 7.0;
}

static double few_digits(const zero_course_world *w)
{
    (void)w;
    return 3.0;
}

static double different(const zero_course_world *w)
{
    int n = 1;
    for (int k = 1; k < w->n_machines; k++) {
        bool is_new = true;
        for (int i = 0; i < k; i++)
            is_new &= strcmp(w->machines[k].digest, w->machines[i].digest) != 0;
        n += is_new;
    }
    return n;
}

static double all_different(const zero_course_world *w)
{
    return w->n_machines;
}

static double two(const zero_course_world *w)
{
    (void)w;
    return 2.0;
}

static void show_digests(const zero_course_world *w, FILE *out)
{
    for (int k = 0; k < w->n_machines; k++)
        fprintf(out, "  stage %d   loss %.16e   digest %.8s...\n", k,
                w->machines[k].last.loss, w->machines[k].digest);
}

static double memory_ratio(const zero_course_world *w)
{
    return (double)zero_world_ledger(w, 0)->states /
           (double)zero_world_ledger(w, 1)->states;
}

static double traffic(const zero_course_world *w, int plan)
{
    return zero_world_reduced(w, plan) + zero_world_gathered(w, plan);
}

static double traffic_ratio(const zero_course_world *w)
{
    return traffic(w, 1) / traffic(w, 0);
}

static double one(const zero_course_world *w)
{
    (void)w;
    return 1.0;
}

static double steps(const zero_course_world *w)
{
    (void)w;
    return STEPS;
}

/* clang-format off */
static const zero_course_name names[] = {{"traffic", traffic_ratio}, {"steps", steps}, {NULL, NULL}};

static const zero_question questions[] = {
    {.screen =
        "The model is trained for {steps} steps four times, in stages 0 to 3, on {N} ranks: really, in this "
        "process, with the arithmetic of zero train --backend naive. Losses are printed with 17 digits, "
        "which tell all doubles apart.",
     .ask = "In how many of the 17 digits do the losses of stages 0 and 3 agree at step {steps}?",
     .kind = ZERO_ANSWER_WHOLE, .unit = "digits", .answer = equal_digits,
     .mistakes = {{fp32_digits, "That is what fp32 promises if sums are made in another order. Here all stages add in one order."},
                  {few_digits, "That would be another computation. Sharding moves numbers, it does not change them."}},
     .because = "All {answer}: a sum has one order, a tree over ranks, whoever holds the result. So has zero train.",
     .against = "\"Sharded is less exact.\" In DeepSpeed stages differ (issue 966); here they are equal to the bit."},
    {.ask = "A digest is a hash of all master parameters and both moments. How many different digests do the four stages have?",
     .kind = ZERO_ANSWER_WHOLE, .unit = "digests", .answer = different,
     .mistakes = {{all_different, "That would be four different models."},
                  {two, "Stage 3 differs in where parameters lie, not in what they are."}},
     .because = "{answer}. A run prints the same one at its end: mpirun -n {N} zero train {model} --data lesson --backend naive --dtype {dtype} --steps {steps} --stage S.",
     .against = "\"Each stage is another algorithm.\" It is another place for the same numbers."},
    {.screen = "What they ended with:",
     .show = show_digests,
     .ask = "The results are equal. How many times more bytes of model states does a rank hold in stage 0 than in stage 3?",
     .kind = ZERO_ANSWER_REAL, .unit = "times", .answer = memory_ratio,
     .mistakes = {{traffic_ratio, "That is the traffic of stage 3 for that of stage 0."},
                  {one, "The results are equal, not the memory."}},
     .because = "{answer} times, for {traffic} times the traffic. That is all that stages trade.",
     .plan = 1, .line = "model states",
     .against = "\"N-fold memory costs N-fold time.\" The traffic hardly depends on N."},
};
/* clang-format on */

const zero_lesson zero_lesson_same = {
    .title = "four stages, one result",
    .about = "losses and digests, to the bit",
    .plans = plans,
    .machines = machines,
    .steps = STEPS,
    .names = names,
    .questions = questions,
    .n = sizeof questions / sizeof questions[0],
};
