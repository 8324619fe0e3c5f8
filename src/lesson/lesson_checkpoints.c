/* Checkpoints: what is saved, by whom, and why any layout can load it. */
#include "lesson/lessons.h"
#include "lesson/world.h"

#include <math.h>

#define PLAN(dtype, stage) \
    "{model} --ranks {N} --global-batch {N} --dtype " dtype " --stage " stage

static const char *const plans[] = {PLAN("fp32", "3"), PLAN("fp32", "0"), PLAN("bf16", "3"),
                                    "{model} --ranks 1 --global-batch {N} --stage 0", NULL};

/* Parameters in the shards of one rank, padding left out. */
static double owned(const zero_course_world *w, int plan, int rank)
{
    const zero_schedule *s = zero_world_schedule(w, plan);
    int64_t sum = 0;
    for (int g = 0; g < s->input.model->n_groups; g++)
        sum += zero_range_len(zero_partition_shard(&s->groups[g].partition, rank));
    return (double)sum;
}

static double owned_by_all(const zero_course_world *w, int plan)
{
    double sum = 0.0;
    int n = zero_world_schedule(w, plan)->input.n_ranks;
    for (int r = 0; r < n; r++) sum += owned(w, plan, r);
    return sum;
}

/* fp32 masters and both moments: what the optimizer reads and writes of a parameter, in stage 0 a
 * class of its own but for the masters of fp32, which are the parameters. */
static double saved_each(const zero_course_world *w, int plan)
{
    const zero_schedule *s = zero_world_schedule(w, plan);
    double shard = (double)zero_world_ledger(w, plan)->padded /
                   (s->input.stage > 0 ? s->input.n_ranks : 1);
    double optimizer = (double)s->class_peak[ZERO_CLASS_OPTIMIZER] / shard;
    return optimizer + (s->input.type == ZERO_FP32 ? 4.0 : 0.0);
}

static double saved(const zero_course_world *w)
{
    return saved_each(w, 0) * owned_by_all(w, 0);
}
static double saved_bf16(const zero_course_world *w)
{
    return saved_each(w, 2) * owned_by_all(w, 2);
}
static double saved_stage0(const zero_course_world *w)
{
    return saved_each(w, 1) * owned_by_all(w, 1);
}
static double with_gradients(const zero_course_world *w)
{
    return saved(w) + 4.0 * zero_world_psi(w);
}
static double with_padding(const zero_course_world *w)
{
    return saved_each(w, 0) * zero_world_padded(w);
}
static double parameters_only(const zero_course_world *w)
{
    return 4.0 * zero_world_psi(w);
}
static double half(const zero_course_world *w)
{
    return saved(w) / 2.0;
}
static double without_master(const zero_course_world *w)
{
    return 8.0 * zero_world_psi(w);
}
static double with_both(const zero_course_world *w)
{
    return saved_bf16(w) + 2.0 * zero_world_psi(w);
}

static double stages_ratio(const zero_course_world *w)
{
    return saved(w) / saved_stage0(w);
}
static double one_share(const zero_course_world *w)
{
    return 1.0 / zero_world_ranks(w);
}

static double rank0(const zero_course_world *w)
{
    return owned(w, 0, 0);
}
static double equal_share(const zero_course_world *w)
{
    return floor(zero_world_psi(w) / zero_world_ranks(w));
}
static double padded_share(const zero_course_world *w)
{
    return zero_world_padded(w) / zero_world_ranks(w);
}

/* 0: yes: the shards of one layout and of the other tile the same parameters. 1: no. */
static double loads(const zero_course_world *w)
{
    return owned_by_all(w, 0) == owned_by_all(w, 3) ? 0.0 : 1.0;
}
static double loads_not(const zero_course_world *w)
{
    return 1.0 - loads(w);
}

/* The parameters of group g, without padding. */
static double size_of(const zero_course_world *w, int g)
{
    return (double)zero_world_report(w, 0)->model.groups[g].n_params;
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
    return size_of(w, zero_world_report(w, 0)->model.n_groups - 1);
}

/* clang-format off */
static const zero_course_name names[] = {
    {"saved", saved}, {"bf16", saved_bf16}, {"share", padded_share}, {"embedding", embedding}, {"block", block},
    {"final", final}, {NULL, NULL},
};

static const zero_question questions[] = {
    {.screen =
        "A checkpoint must let training go on to the same bits. It holds fp32 master parameters and both of "
        "Adam's moments; gradients are made anew in each step, and padding is always zero.",
     .ask = "fp32: how many bytes of states does a checkpoint of {psi} parameters hold, in all files together?",
     .kind = ZERO_ANSWER_WHOLE, .unit = "bytes", .answer = saved,
     .mistakes = {{with_gradients, "That saves gradients. The next step makes new ones."},
                  {with_padding, "That saves padding. It is zero, and depends on the ranks."},
                  {parameters_only, "That is the parameters: enough to generate text, not to go on training."}},
     .because = "(4 + 4 + 4) x {psi} = {answer}.",
     .plan = 0, .line = "Psi =",
     .against = "\"A checkpoint is the model.\" Three times as much, with Adam."},
    {.ask = "bf16: how many bytes of states does a checkpoint of {psi} parameters hold?",
     .kind = ZERO_ANSWER_WHOLE, .unit = "bytes", .answer = saved_bf16,
     .mistakes = {{half, "Masters and moments are fp32 with bf16, too."},
                  {without_master, "That forgets the masters."},
                  {with_both, "bf16 parameters are the masters, rounded: they need not be saved."}},
     .because = "fp32 masters and moments: {answer} as well. The 16-bit parameters are made from the masters.",
     .plan = 2, .line = "Psi =",
     .against = "\"Half precision, half the checkpoint.\""},
    {.ask = "How many times the bytes of stage 0's checkpoint does stage 3's have?",
     .kind = ZERO_ANSWER_REAL, .unit = "times", .answer = stages_ratio,
     .mistakes = {{one_share, "That is one rank's file; there are {N}."},
                  {zero_world_ranks, "Each rank writes only what it owns, in any stage."}},
     .because = "Each rank writes its shards, in stage 0 as in stage 3: the same bytes.",
     .plan = 0, .line = "Psi =",
     .against = "\"In stage 0 each rank saves everything.\" Shards are cut in every stage."},
    {.ask = "Parameters of the embedding: {embedding}, of each block: {block}, of `final`: {final}. Each group is cut into {N} equal shards of 64, 128, 192, ... places; rank 0 has the first. How many of the {psi} parameters does it write?",
     .kind = ZERO_ANSWER_WHOLE, .unit = "parameters", .answer = rank0,
     .mistakes = {{equal_share, "That is an equal share. Shards are whole granules of 64, so the first ranks own more."},
                  {padded_share, "That is its shards with padding."},
                  {zero_world_psi, "That is the whole model: the others write theirs."}},
     .because = "The true parameters in its shards of all groups ({share} places with padding): {answer}.",
     .plan = 0, .line = "Psi =",
     .against = NULL},
    {.ask = "Can a run on ONE rank in stage 0 resume from the checkpoint of {N} ranks in stage 3?",
     .kind = ZERO_ANSWER_WORD, .unit = "yes|no", .answer = loads,
     .mistakes = {{loads_not, "Files hold extents of tensors by global index. What is missing?"}},
     .because = "The shards of all ranks tile the {psi} parameters once, in any layout; files say which part of which tensor they hold.",
     .plan = 3, .line = "Psi =",
     .against = "\"A checkpoint fits only the ranks that wrote it.\""},
};
/* clang-format on */

const zero_lesson zero_lesson_checkpoints = {
    .title = "checkpoints",
    .about = "what is saved, and by whom",
    .plans = plans,
    .names = names,
    .questions = questions,
    .n = sizeof questions / sizeof questions[0],
};
