/* Bytes that REDUCE and GATHER send in a step of stages 0 to 3. */
#include "lesson/lessons.h"
#include "lesson/world.h"

#define PLAN(stage)        "{model} --ranks {N} --global-batch {N} --dtype {dtype} --stage " #stage
#define GPT2(ranks, stage) "--model gpt2 --ranks " #ranks " --stage " #stage

static const char *const plans[] = {PLAN(1),     PLAN(3),    GPT2(64, 1),
                                    GPT2(64, 3), GPT2(4, 1), NULL};

/* ---- values ---- */

static double reduced(const zero_course_world *w)
{
    return zero_world_reduced(w, 0);
}
static double gathered1(const zero_course_world *w)
{
    return zero_world_gathered(w, 0);
}
static double gathered3(const zero_course_world *w)
{
    return zero_world_gathered(w, 1);
}

static double padded_bytes(const zero_course_world *w)
{
    return zero_world_padded(w) * zero_world_element(w);
}

static double without_padding(const zero_course_world *w)
{
    double n = zero_world_ranks(w);
    return zero_world_psi(w) * zero_world_element(w) * (n - 1.0) / n;
}

static double all_reduce(const zero_course_world *w)
{
    return 2.0 * reduced(w);
}
static double thrice(const zero_course_world *w)
{
    return 3.0 * reduced(w);
}

static double nothing(const zero_course_world *w)
{
    (void)w;
    return 0.0;
}

static double sum(const zero_course_world *w, int plan)
{
    return zero_world_reduced(w, plan) + zero_world_gathered(w, plan);
}

static double ratio(const zero_course_world *w)
{
    return sum(w, 1) / sum(w, 0);
}
static double ratio_large(const zero_course_world *w)
{
    return sum(w, 3) / sum(w, 2);
}
static double ratio_ranks(const zero_course_world *w)
{
    return sum(w, 2) / sum(w, 4);
}
static double sent1(const zero_course_world *w)
{
    return sum(w, 0);
}
static double sent3(const zero_course_world *w)
{
    return sum(w, 1);
}

static double one(const zero_course_world *w)
{
    (void)w;
    return 1.0;
}

static double two(const zero_course_world *w)
{
    (void)w;
    return 2.0;
}

/* 3 Psi for 2 Psi */
static double papers_ratio(const zero_course_world *w)
{
    (void)w;
    return 3.0 / 2.0;
}

static double more_ranks(const zero_course_world *w)
{
    return (double)zero_world_report(w, 2)->request.n_ranks /
           (double)zero_world_report(w, 4)->request.n_ranks;
}

static double more_pairs(const zero_course_world *w)
{
    return ((double)zero_world_report(w, 2)->request.n_ranks - 1.0) /
           ((double)zero_world_report(w, 4)->request.n_ranks - 1.0);
}

static double missing(const zero_course_world *w)
{
    return 2.0 * gathered1(w) - gathered3(w);
}

/* The numbers of the last group, with padding. */
static double final(const zero_course_world *w)
{
    const zero_schedule *s = zero_world_schedule(w, 1);
    return (double)s->groups[s->input.model->n_groups - 1].partition.padded;
}

/* clang-format off */
static const zero_course_name names[] = {
    {"reduced", reduced}, {"gathered1", gathered1}, {"gathered3", gathered3}, {"missing", missing},
    {"sent1", sent1}, {"sent3", sent3}, {"final", final}, {NULL, NULL},
};

static const zero_question questions[] = {
    {.screen =
        "REDUCE is a reduce-scatter: each rank ends with the sum of its shard of the gradients. GATHER "
        "is an all-gather: in stage 0 of these sums (both together are an all-reduce), in stages 1 and "
        "2 of the updated parameters. So all three send the same. The model has {padded} "
        "numbers with padding, of {bytes} bytes, on {N} ranks.",
     .ask = "Stage 1: how many bytes does one rank send in REDUCE, in a whole step?",
     .kind = ZERO_ANSWER_WHOLE, .unit = "bytes", .answer = reduced,
     .mistakes = {{padded_bytes, "That is N for N - 1: a rank does not send the shard that it keeps."},
                  {all_reduce, "That is an all-reduce: a reduce-scatter and an all-gather. Gradients are only reduced; what is gathered are parameters."},
                  {without_padding, "That forgets the padding, which travels as well."},
                  {thrice, "That is 3 Psi: an all-reduce of gradients, and a gather."}},
     .because = "(N-1)/N of {padded} numbers: {padded} x {bytes} x {N-1} / {N} = {answer}.",
     .plan = 0, .line = "REDUCE",
     .against = "\"Stages 1 and 2 all-reduce and throw away (3 Psi).\" DeepSpeed's did (issues 156, 264, 5758, 7059); the paper's, and these, reduce-scatter."},
    {.ask = "Stage 1: how many bytes does one rank send in GATHER, in a whole step?",
     .kind = ZERO_ANSWER_WHOLE, .unit = "bytes", .answer = gathered1,
     .mistakes = {{nothing, "Each rank holds whole parameters, but has updated only its shard: the others' must come."},
                  {padded_bytes, "That is N for N - 1: a rank has its own shard."},
                  {all_reduce, "That is gathered twice: stage 3."}},
     .because = "Each rank updates its shard and gets the others: (N-1)/N of {padded} numbers = {answer}. Both together are an all-reduce's volume, that of plain data parallelism.",
     .plan = 0, .line = "GATHER",
     .against = "\"ZeRO pays for memory with traffic.\" Stages 1 and 2 send what data parallelism sends: 2 (N-1)/N Psi."},
    {.screen =
        "Stage 3 holds no whole parameters: units gather theirs for forward and again for backward. "
        "Nothing is gathered after the update.",
     .ask = "Stage 3: how many bytes does one rank send in GATHER? (The group `final`, {final} numbers with padding, stays from forward to backward.)",
     .kind = ZERO_ANSWER_WHOLE, .unit = "bytes", .answer = gathered3,
     .mistakes = {{all_reduce, "That gathers all groups twice. `final` is still there when backward begins."},
                  {gathered1, "That gathers once. Backward needs parameters again."},
                  {thrice, "That is three times each."}},
     .because = "Twice {gathered1}, less {missing} for one gather that is not needed: {answer}.",
     .plan = 1, .line = "GATHER",
     .against = "\"Stage 3 needs twice the traffic.\" One gather more, less what stays."},
    {.ask = "How many times the bytes of stage 1 does stage 3 send, REDUCE and GATHER together?",
     .kind = ZERO_ANSWER_REAL, .unit = "times", .answer = ratio,
     .mistakes = {{papers_ratio, "That is the paper's 3 Psi / 2 Psi, the limit for many layers. Here one group of few stays."},
                  {two, "REDUCE does not grow; only GATHER does."},
                  {one, "Stage 3 gathers for forward and for backward."}},
     .because = "{sent3} / {sent1} = {answer}.",
     .plan = 1, .line = "both",
     .against = "\"Stage 3 sends 1.5 times as much, always.\" 1.5 is the limit."},
    {.ask = "And for GPT-2 with 12 layers on 64 ranks (Psi = 124 million): how many times the bytes of stage 1 does stage 3 send?",
     .kind = ZERO_ANSWER_REAL, .unit = "times", .answer = ratio_large,
     .mistakes = {{ratio, "That is the small model's. Here the group that stays is a small part."},
                  {two, "REDUCE does not grow; only GATHER does."},
                  {one, "Stage 3 gathers for forward and for backward."}},
     .because = "{answer}: what stays is one small group of many.",
     .plan = 3, .line = "both",
     .against = "\"Stage 3 needs twice the traffic.\" 3 Psi for 2 Psi."},
    {.ask = "GPT-2 in stage 1: how many times the bytes does ONE rank send on 64 ranks, compared with 4 ranks?",
     .kind = ZERO_ANSWER_REAL, .unit = "times", .answer = ratio_ranks,
     .mistakes = {{more_ranks, "That is the ranks' ratio. A rank sends (N-1)/N of the model, however many there are."},
                  {more_pairs, "That is (64-1)/(4-1): but shards are 16 times smaller."},
                  {one, "Nearly: (N-1)/N still grows a little."}},
     .because = "(63/64) / (3/4), and a little padding: {answer}. However many ranks, it never exceeds 4/3 by more than padding.",
     .plan = 2, .line = "both",
     .against = "\"More ranks, more traffic for each.\" A rank's volume hardly depends on N."},
};
/* clang-format on */

const zero_lesson zero_lesson_sends = {
    .title = "what a step sends",
    .about = "bytes of REDUCE and GATHER",
    .plans = plans,
    .names = names,
    .questions = questions,
    .n = sizeof questions / sizeof questions[0],
};
