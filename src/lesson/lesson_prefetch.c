/* Prefetch and overlap: the time of a step of GPT-2 by the alpha-beta model. */
#include "lesson/lessons.h"
#include "lesson/world.h"

#include <inttypes.h>
#include <math.h>

#define PLAN(prefetch) \
    "--model gpt2 --ranks 8 --stage 3 --micro-batch 1 --prefetch " #prefetch \
    " --network 1e-6,{bandwidth} --flops 1e12"

static const char *const plans[] = {PLAN(0), PLAN(1), PLAN(2), NULL};

static const zero_plan_time *time_of(const zero_course_world *w, int plan)
{
    return &zero_world_report(w, plan)->stages[0].time;
}

static zero_volume volume(const zero_course_world *w)
{
    zero_traffic sum = zero_world_ledger(w, 0)->reduce.traffic;
    zero_traffic_add(&sum, 1, &zero_world_ledger(w, 0)->gather.traffic);
    return zero_traffic_total(&sum);
}

static double messages(const zero_course_world *w)
{
    return (double)volume(w).messages_sent;
}
static double sent(const zero_course_world *w)
{
    return (double)volume(w).bytes_sent;
}
static double communication(const zero_course_world *w)
{
    return time_of(w, 0)->communication;
}
static double compute(const zero_course_world *w)
{
    return time_of(w, 0)->compute;
}
static double as_bits(const zero_course_world *w)
{
    return 8.0 * communication(w);
}

static double both_ways(const zero_course_world *w)
{
    return communication(w) + sent(w) / (double)w->numbers->bandwidth;
}

static double latency_alone(const zero_course_world *w)
{
    return messages(w) * zero_world_report(w, 0)->request.machine.latency;
}

static double step0(const zero_course_world *w)
{
    return time_of(w, 0)->step;
}
static double step1(const zero_course_world *w)
{
    return time_of(w, 1)->step;
}
static double step2(const zero_course_world *w)
{
    return time_of(w, 2)->step;
}
static double longer(const zero_course_world *w)
{
    return fmax(compute(w), communication(w));
}

/* The nearest of 0 nothing, 1 a tenth, 2 a third, 3 a half. */
static double saved_words(double share)
{
    const double shares[] = {0.0, 0.1, 1.0 / 3.0, 0.5};
    int nearest = 0;
    for (int k = 1; k < 4; k++)
        if (fabs(share - shares[k]) < fabs(share - shares[nearest])) nearest = k;
    return nearest;
}

static double saved1(const zero_course_world *w)
{
    return saved_words(1.0 - step1(w) / step0(w));
}
static double saved2(const zero_course_world *w)
{
    return saved_words(1.0 - step2(w) / step1(w));
}
static double saved_all(const zero_course_world *w)
{
    return saved_words(1.0 - longer(w) / step0(w));
}
static double saved_nothing(const zero_course_world *w)
{
    (void)w;
    return saved_words(0.0);
}

/* 100 times the share of the communication that is not waited for */
static double hidden(const zero_course_world *w)
{
    const zero_plan_time *t = time_of(w, 1);
    return 100.0 * (1.0 - t->exposed / t->communication);
}

static double exposed(const zero_course_world *w)
{
    return time_of(w, 1)->exposed;
}
static double hidden_all(const zero_course_world *w)
{
    (void)w;
    return 100.0;
}
static double exposed_share(const zero_course_world *w)
{
    return 100.0 - hidden(w);
}

static size_t gathered_bytes(const zero_course_world *w, int plan)
{
    return zero_world_schedule(w, plan)->class_peak[ZERO_CLASS_GATHERED];
}

/* 0: yes, 1: no */
static double takes_memory(const zero_course_world *w)
{
    return gathered_bytes(w, 1) > gathered_bytes(w, 0) ? 0.0 : 1.0;
}

static double takes_none(const zero_course_world *w)
{
    return 1.0 - takes_memory(w);
}
static double gathered0(const zero_course_world *w)
{
    return (double)gathered_bytes(w, 0);
}
static double gathered1(const zero_course_world *w)
{
    return (double)gathered_bytes(w, 1);
}

/* clang-format off */
static const zero_course_name names[] = {
    {"messages", messages}, {"sent", sent}, {"compute", compute}, {"communication", communication},
    {"step0", step0}, {"step1", step1}, {"step2", step2}, {"hidden", hidden}, {"exposed", exposed},
    {"gathered0", gathered0}, {"gathered1", gathered1}, {NULL, NULL},
};

static const zero_question questions[] = {
    {.screen =
        "GPT-2 on 8 ranks, stage 3, one sequence each. A step computes for {compute} s at 1 Tflop/s. It "
        "sends {sent} bytes per rank in {messages} messages (and receives as many at the same time), over "
        "a network of alpha = 1 us per message and {bandwidth} bytes per second (beta is its inverse).",
     .ask = "How many seconds does the communication of a step take?",
     .kind = ZERO_ANSWER_SECONDS, .unit = "s", .answer = communication,
     .mistakes = {{as_bits, "The bandwidth is in bytes per second, not in bits."},
                  {both_ways, "A link sends and receives at the same time."},
                  {latency_alone, "That is the latency of the messages alone."}},
     .because = "{messages} x 1 us + {sent} / {bandwidth} = {answer} s. Messages are large here, so latency hardly counts.",
     .plan = 0, .line = "time",
     .against = NULL},
    {.ask = "--prefetch 0: parameters are gathered when a unit needs them, and it waits. Computing takes {compute} s, communication {communication} s: how many seconds does a step take?",
     .kind = ZERO_ANSWER_SECONDS, .unit = "s", .answer = step0,
     .mistakes = {{longer, "That is the longer of the two, if the shorter one were hidden. Without prefetch nothing overlaps with a GATHER."},
                  {compute, "That is computing alone."},
                  {communication, "That is communication alone."}},
     .because = "Nearly the sum, {compute} + {communication}: {answer} s.",
     .plan = 0, .line = "time",
     .against = "\"Nonblocking communication overlaps by itself.\" It needs a computation beside it."},
    {.ask = "--prefetch 1: while a unit computes, the next one's parameters are on their way. About which part of the {step0} s does it save?",
     .kind = ZERO_ANSWER_WORD, .unit = "nothing|tenth|third|half", .answer = saved1,
     .mistakes = {{saved_all, "That would hide all communication. Backward has a GATHER and a REDUCE for each block: more than it computes."},
                  {saved_nothing, "The next block's gather runs while this block computes."}},
     .because = "{step0} s become {step1} s.",
     .plan = 1, .line = "time",
     .against = "\"Overlap hides all.\" It hides what fits beside computing, unit by unit."},
    {.ask = "Of {communication} s of communication, {exposed} s are waited for (exposed). How many per cent does computing hide?",
     .kind = ZERO_ANSWER_REAL, .unit = "percent", .answer = hidden,
     .mistakes = {{hidden_all, "Then nothing would be exposed."},
                  {exposed_share, "That is the exposed share."}},
     .because = "1 - {exposed} / {communication} = {answer} %.",
     .plan = 1, .line = "time",
     .against = "\"Overlap hides all.\""},
    {.ask = "--prefetch 2: two units ahead. About which part of the {step1} s of --prefetch 1 does it save?",
     .kind = ZERO_ANSWER_WORD, .unit = "nothing|tenth|third|half", .answer = saved2,
     .mistakes = {{saved1, "That is what the first unit ahead saved. The network is busy already: asking earlier does not make it faster."}},
     .because = "{step1} s become {step2} s. The first unit ahead brought {step0} s down to {step1} s.",
     .plan = 2, .line = "time",
     .against = "\"More prefetch, more speed.\" The network is the limit."},
    {.ask = "Does --prefetch 1 need more memory than --prefetch 0?",
     .kind = ZERO_ANSWER_WORD, .unit = "yes|no", .answer = takes_memory,
     .mistakes = {{takes_none, "Two units' parameters are whole at the same time: the one that computes and the next."}},
     .because = "Gathered parameters at their peak: {gathered0} bytes without, {gathered1} with it.",
     .plan = 1, .line = "gathered parameters",
     .against = "\"Prefetching is free.\" It costs a unit's parameters."},
};
/* clang-format on */

const zero_lesson zero_lesson_prefetch = {
    .title = "prefetch and overlap",
    .about = "time by alpha and beta",
    .plans = plans,
    .names = names,
    .questions = questions,
    .n = sizeof questions / sizeof questions[0],
};
