/* Both partitions: every group cut into slices, or the whole model cut once among owners. */
#include "lesson/lessons.h"
#include "lesson/world.h"

#define PLAN(partition, rank) \
    "{model} --ranks {N} --global-batch {N} --dtype {dtype} --stage 3 " \
    "--partition " #partition " --rank " rank

static const char *const plans[] = {PLAN(slice, "0"), PLAN(owner, "0"), NULL};

static double states_owner(const zero_course_world *w)
{
    return (double)zero_world_ledger(w, 1)->states;
}
static double formula(const zero_course_world *w)
{
    return zero_world_ledger(w, 1)->formula;
}
/* Bytes that a rank holds beyond the formula's. */
static double padding_slice(const zero_course_world *w)
{
    return (double)zero_world_ledger(w, 0)->states - zero_world_ledger(w, 0)->formula;
}
static double padding_owner(const zero_course_world *w)
{
    return states_owner(w) - formula(w);
}

static double reduced_slice(const zero_course_world *w)
{
    return zero_world_reduced(w, 0);
}
static double reduced_owner(const zero_course_world *w)
{
    return zero_world_reduced(w, 1);
}

static double padded_owner(const zero_course_world *w)
{
    return (double)zero_world_ledger(w, 1)->padded;
}

static double reduced_whole(const zero_course_world *w)
{
    return padded_owner(w) * zero_world_element(w);
}

/* The numbers that rank 0 owns of all groups, padding included. */
static double owned(const zero_course_world *w)
{
    const zero_schedule *s = zero_world_schedule(w, 1);
    int64_t sum = 0;
    for (int g = 0; g < s->input.model->n_groups; g++)
        sum += zero_range_len(zero_partition_piece(&s->groups[g].partition, 0));
    return (double)sum;
}

static double messages(const zero_course_world *w, int plan)
{
    return (double)zero_traffic_total(&zero_world_ledger(w, plan)->reduce.traffic)
        .messages_sent;
}

static double messages_slice(const zero_course_world *w)
{
    return messages(w, 0);
}
static double messages_owner(const zero_course_world *w)
{
    return messages(w, 1);
}

static const zero_plan_bounds *sends(const zero_course_world *w,
                                     zero_partition_scheme scheme)
{
    return &zero_world_report(w, 1)->stages[0].spread[scheme].sent;
}

/* 0: yes, 1: no */
static double owners_equal(const zero_course_world *w)
{
    const zero_plan_bounds *b = sends(w, ZERO_PARTITION_OWNER);
    return b->least == b->most ? 0.0 : 1.0;
}

static double slices_equal(const zero_course_world *w)
{
    const zero_plan_bounds *b = sends(w, ZERO_PARTITION_SLICE);
    return b->least == b->most ? 0.0 : 1.0;
}

static double owners_other(const zero_course_world *w)
{
    return 1.0 - owners_equal(w);
}
static double slices_other(const zero_course_world *w)
{
    return 1.0 - slices_equal(w);
}
static double least_owner(const zero_course_world *w)
{
    return (double)sends(w, ZERO_PARTITION_OWNER)->least;
}
static double most_owner(const zero_course_world *w)
{
    return (double)sends(w, ZERO_PARTITION_OWNER)->most;
}
static double each_slice(const zero_course_world *w)
{
    return (double)sends(w, ZERO_PARTITION_SLICE)->most;
}

/* The numbers of group g with owner's padding. */
static double size_of(const zero_course_world *w, int g)
{
    return (double)zero_world_schedule(w, 1)->groups[g].partition.padded;
}

static double embedding(const zero_course_world *w)
{
    return size_of(w, 0);
}
static double block(const zero_course_world *w)
{
    return size_of(w, 1);
}
static double final(const zero_course_world *w)
{
    return size_of(w, zero_world_schedule(w, 1)->input.model->n_groups - 1);
}

/* clang-format off */
static const zero_course_name names[] = {
    {"padding_slice", padding_slice}, {"padding_owner", padding_owner}, {"states", states_owner},
    {"formula", formula}, {"owned", owned}, {"padded_owner", padded_owner}, {"least", least_owner}, {"most", most_owner},
    {"slice", each_slice}, {"messages_slice", messages_slice},
    {"embedding", embedding}, {"block", block}, {"final", final}, {NULL, NULL},
};

static const zero_question questions[] = {
    {.screen =
        "So far each group was cut into {N} shards (--partition slice). The paper cuts the whole model "
        "once into {N} contiguous parts (--partition owner): a group has one owner or a few "
        "neighbouring ones.\n"
        "  slice   each group                [ rank 0 | rank 1 | ... ]\n"
        "  owner   all groups, end to end    [   rank 0   |   rank 1   | ... ]\n"
        "Owner fills each group to whole granules of 64 numbers, and each rank's part to whole granules. "
        "The embedding then has {embedding} numbers, a block {block}, `final` {final}: {padded_owner} in all, where the model "
        "has {psi} parameters of 16 bytes of states.",
     .ask = "Stage 3, slice: a rank holds {padding_slice} bytes of model states more than the formula's {formula}, for padding. How many more does rank 0 hold with owner?",
     .kind = ZERO_ANSWER_WHOLE, .unit = "bytes", .answer = padding_owner,
     .mistakes = {{padding_slice, "The groups are not cut one by one now, so they are not padded for each rank."},
                  {states_owner, "That is all model states of a rank."}},
     .because = "Of {padded_owner} numbers rank 0 owns {owned}: 16 x {owned} = {states} bytes. The formula's are 16 x {psi} / {N} = {formula}; the difference is {answer}.",
     .plan = 1, .line = "model states",
     .against = NULL},
    {.ask = "Stage 3, owner: how many bytes does rank 0 send in REDUCE?",
     .kind = ZERO_ANSWER_WHOLE, .unit = "bytes", .answer = reduced_owner,
     .mistakes = {{reduced_slice, "That is slice, with its larger padding."},
                  {reduced_whole, "Rank 0 keeps what it owns itself: {owned} of the {padded_owner} numbers."}},
     .because = "Everything that others own: ({padded_owner} - {owned}) x {bytes} = {answer}.",
     .plan = 1, .line = "REDUCE",
     .against = NULL},
    {.ask = "slice: does every rank send the same number of bytes in a step (REDUCE and GATHER)?",
     .kind = ZERO_ANSWER_WORD, .unit = "yes|no", .answer = slices_equal,
     .mistakes = {{slices_other, "Shards are equal, so are the bytes: at every moment of the step."}},
     .because = "Each sends {slice} bytes.",
     .plan = 1, .line = "slice  ",
     .against = NULL},
    {.ask = "owner: does every rank send the same number of bytes in a step?",
     .kind = ZERO_ANSWER_WORD, .unit = "yes|no", .answer = owners_equal,
     .mistakes = {{owners_other, "Compare the least and the most over ranks: groups differ in size and in how often they are gathered, and so do their owners."}},
     .because = "From {least} to {most} bytes. And a group comes from one or a few ranks, where slices come from all at once.",
     .plan = 1, .line = "owner  ",
     .against = "\"Equal parts, equal work.\" Totals are nearly equal, moments are not; so slice is the default."},
    {.ask = "slice sends REDUCE in {messages_slice} messages from rank 0. In how many with owner?",
     .kind = ZERO_ANSWER_WHOLE, .unit = "messages", .answer = messages_owner,
     .mistakes = {{messages_slice, "A group goes to its owners only, not to all {N} ranks."}},
     .because = "A message for each group and owner other than rank 0: {answer}.",
     .plan = 1, .line = "REDUCE",
     .against = NULL},
};
/* clang-format on */

const zero_lesson zero_lesson_partitions = {
    .title = "both partitions",
    .about = "slices of groups, or owners",
    .plans = plans,
    .names = names,
    .questions = questions,
    .n = sizeof questions / sizeof questions[0],
};
