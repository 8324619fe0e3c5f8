/* Accumulation: several microbatches per rank and step. */
#include "lesson/lessons.h"
#include "lesson/world.h"

#define PLAN(stage) \
    "{model} --ranks {N} --global-batch {NM} --micro-batch 1 --dtype {dtype} " \
    "--stage " #stage
#define ONE(stage) "{model} --ranks {N} --global-batch {N} --dtype {dtype} --stage " #stage

static const char *const plans[] = {PLAN(1), PLAN(2), PLAN(3), ONE(1), ONE(3), NULL};

static double times(const zero_course_world *w)
{
    return (double)w->numbers->microbatches;
}

static double reduced1(const zero_course_world *w)
{
    return zero_world_reduced(w, 0);
}
static double reduced2(const zero_course_world *w)
{
    return zero_world_reduced(w, 1);
}
static double reduced_one(const zero_course_world *w)
{
    return zero_world_reduced(w, 3);
}
static double reduced_each(const zero_course_world *w)
{
    return times(w) * reduced_one(w);
}
static double reduced_more(const zero_course_world *w)
{
    return (times(w) + 1.0) * reduced_one(w);
}
static double gathered3(const zero_course_world *w)
{
    return zero_world_gathered(w, 2);
}
static double gathered_one(const zero_course_world *w)
{
    return zero_world_gathered(w, 4);
}
static double gathered_plain(const zero_course_world *w)
{
    return zero_world_gathered(w, 3);
}
static double gathered_twice(const zero_course_world *w)
{
    return 2.0 * times(w) * gathered_plain(w);
}

static double sums(const zero_course_world *w, int plan)
{
    return (double)zero_world_schedule(w, plan)->class_peak[ZERO_CLASS_ACCUMULATORS];
}

static double sums1(const zero_course_world *w)
{
    return sums(w, 0);
}
static double sums2(const zero_course_world *w)
{
    return sums(w, 1);
}
static double sums_each(const zero_course_world *w)
{
    return times(w) * sums(w, 0);
}

static double ratio(const zero_course_world *w)
{
    return (zero_world_reduced(w, 2) + gathered3(w)) /
           (reduced1(w) + zero_world_gathered(w, 0));
}

static double papers_ratio(const zero_course_world *w)
{
    (void)w;
    return 3.0 / 2.0;
}

static double papers_limit(const zero_course_world *w)
{
    return 3.0 * times(w) / 2.0;
}

static double one_ratio(const zero_course_world *w)
{
    return (zero_world_reduced(w, 4) + gathered_one(w)) /
           (reduced_one(w) + gathered_plain(w));
}

/* clang-format off */
static const zero_course_name names[] = {
    {"one", reduced_one}, {"gathered", gathered_one}, {"sums1", sums1}, {"batch", times}, {"plain", gathered_plain}, {NULL, NULL},
};

static const zero_question questions[] = {
    {.screen =
        "A batch that does not fit is computed in M = {M} microbatches per rank, one after another; "
        "their gradients are accumulated, and there is one update. With one microbatch a rank "
        "sends {one} bytes in REDUCE, in stages 1, 2 and 3 alike.",
     .ask = "Stage 1, {M} microbatches per rank: how many bytes does one rank send in REDUCE, in a step?",
     .kind = ZERO_ANSWER_WHOLE, .unit = "bytes", .answer = reduced1,
     .mistakes = {{reduced_each, "That reduces each microbatch. Stage 1 holds whole gradients: it adds them up first and reduces once."},
                  {reduced_more, "Once is enough, whatever the number of microbatches."}},
     .because = "Gradients are whole in stage 1, so each rank accumulates its own and reduces once: {answer}.",
     .plan = 0, .line = "REDUCE",
     .against = "\"Every microbatch is reduced.\" In stages 0 and 1 only the sum is."},
    {.ask = "Stage 2, {M} microbatches per rank: how many bytes does one rank send in REDUCE?",
     .kind = ZERO_ANSWER_WHOLE, .unit = "bytes", .answer = reduced2,
     .mistakes = {{reduced1, "That is stage 1. In stage 2 a rank keeps a shard of the sums, not whole ones, so every microbatch must be reduced."},
                  {reduced_more, "That is M + 1 times: only the M microbatches are reduced."}},
     .because = "{M} x {one} = {answer}: the price of holding only a shard of the gradient.",
     .plan = 1, .line = "REDUCE",
     .against = "\"Stages 1 and 2 send the same.\" With one microbatch only."},
    {.ask = "Stage 3, {M} microbatches per rank: how many bytes does one rank send in GATHER? With one microbatch it is {gathered}.",
     .kind = ZERO_ANSWER_WHOLE, .unit = "bytes", .answer = gathered3,
     .mistakes = {{gathered_one, "Parameters are released after each microbatch; the next one gathers them again."},
                  {gathered_twice, "That gathers all groups twice; `final` stays from forward to backward."},
                  {gathered_plain, "That is one gather of each group, as in stages 1 and 2."}},
     .because = "{M} x {gathered} = {answer}.",
     .plan = 2, .line = "GATHER",
     .against = "\"Parameters are gathered once a step.\" In stage 3, for each microbatch."},
    {.ask = "{M} microbatches per rank: how many times the bytes of stage 1 does stage 3 send, REDUCE and GATHER together? (Stage 1 sends {plain} in GATHER, once a step; stage 3 reduces as often as stage 2.)",
     .kind = ZERO_ANSWER_REAL, .unit = "times", .answer = ratio,
     .mistakes = {{papers_ratio, "That is 3 Psi / 2 Psi, for one microbatch."},
                  {one_ratio, "That is with one microbatch."},
                  {papers_limit, "That is 3 M Psi / 2 Psi, the limit for many layers."},
                  {times, "Stage 1's bytes do not grow with M, and stage 3's are more than stage 1's to begin with."}},
     .because = "Stage 1 still sends 2 (N-1)/N Psi; stage 3 nearly 3 M (N-1)/N Psi. Here: {answer}.",
     .plan = 2, .line = "both",
     .against = "\"Stage 3 needs 1.5 times the traffic, always.\" With accumulation up to 1.5 M times."},
    {.ask = "Stage 1 keeps whole sums in fp32 while it accumulates: {sums1} bytes. How many bytes of sums does a rank keep in stage 2?",
     .kind = ZERO_ANSWER_WHOLE, .unit = "bytes", .answer = sums2,
     .mistakes = {{sums1, "That is the whole sum. Stage 2 accumulates what it has reduced: a shard."},
                  {sums_each, "There is one sum, whatever the number of microbatches."}},
     .because = "A shard: {sums1} / {N} = {answer}.",
     .plan = 1, .line = "accumulators",
     .against = "\"Accumulation needs whole gradients.\" In stages 2 and 3 shards are accumulated."},
};
/* clang-format on */

const zero_lesson zero_lesson_batches = {
    .title = "accumulation",
    .about = "several microbatches in a step",
    .plans = plans,
    .names = names,
    .questions = questions,
    .n = sizeof questions / sizeof questions[0],
};
