/* Tensor parallelism: neighbours share each product, beside ZeRO. */
#include "lesson/lessons.h"
#include "lesson/world.h"
#include "report/plan_facts.h"
#include "sharding/formula.h"

static const char *const plans[] = {"--layers {L} --hidden 8 --heads 2 --seq 4 --vocab 8 "
                                    "--ranks {2N} --tp 2 --global-batch {N} "
                                    "--stage 2",
                                    NULL};

static const zero_plan_report *report(const zero_course_world *w)
{
    return zero_world_report(w, 0);
}

static double sharding_ranks(const zero_course_world *w)
{
    return report(w)->config.data_ranks;
}
static double all_ranks(const zero_course_world *w)
{
    return report(w)->request.n_ranks;
}
static double tp_ranks(const zero_course_world *w)
{
    return zero_tp_ranks(&report(w)->config.tp);
}
static double whole(const zero_course_world *w)
{
    return (double)report(w)->model.n_params;
}
static double part(const zero_course_world *w)
{
    return (double)report(w)->part->n_params;
}
static double half(const zero_course_world *w)
{
    return whole(w) / tp_ranks(w);
}

/* 0: yes, 1: no */
static double is_half(const zero_course_world *w)
{
    return part(w) == half(w) ? 0.0 : 1.0;
}
static double is_not_half(const zero_course_world *w)
{
    return 1.0 - is_half(w);
}

static double sums(const zero_course_world *w)
{
    (void)w;
    return zero_formula_tp_sums(false);
}

static double sums_of_paper(const zero_course_world *w)
{
    (void)w;
    return zero_formula_tp_sums_of_paper(true);
}

static double sums_forward(const zero_course_world *w)
{
    return sums(w) / 2.0;
}
static double sums_doubled(const zero_course_world *w)
{
    return 2.0 * sums(w);
}

static double joined(const zero_course_world *w)
{
    return zero_plan_blocks_of(zero_world_schedule(w, 0)).ours;
}

static double joined_elements(const zero_course_world *w)
{
    return joined(w) / 4.0;
}
static double joined_whole(const zero_course_world *w)
{
    return joined(w) * tp_ranks(w) / (tp_ranks(w) - 1.0);
}
static double joined_paper(const zero_course_world *w)
{
    return joined(w) * sums_of_paper(w) / sums(w);
}

static double formula(const zero_course_world *w)
{
    return zero_world_ledger(w, 0)->formula;
}
static double formula_of(double psi, int ranks)
{
    return zero_formula_state_bytes((int64_t)psi, ranks, 2, ZERO_FP32);
}
static double formula_whole(const zero_course_world *w)
{
    return formula_of(whole(w), (int)sharding_ranks(w));
}
static double formula_all_ranks(const zero_course_world *w)
{
    return formula_of(part(w), (int)all_ranks(w));
}

/* clang-format off */
static const zero_course_name names[] = {
    {"whole", whole}, {"part", part}, {"half", half}, {"T", tp_ranks}, {"ranks", all_ranks},
    {"D", sharding_ranks}, {"sums", sums}, {NULL, NULL},
};

static const zero_question questions[] = {
    {.screen =
        "--tp {T} joins T = {T} neighbouring ranks into one TP group: they compute ONE replica together, "
        "each with its heads, its columns and its part of the vocabulary. Here the model has {blocks}, 8 channels, 2 heads "
        "and {whole} parameters, on {ranks} ranks.",
     .ask = "Over how many ranks does ZeRO shard?",
     .kind = ZERO_ANSWER_WHOLE, .unit = "ranks", .answer = sharding_ranks,
     .mistakes = {{all_ranks, "The ranks of a TP group hold different parts of the model: they have nothing to share with each other."},
                  {tp_ranks, "That is the TP group."}},
     .because = "N = {ranks} / {T} = {answer}: the ranks with the same part of the model.",
     .plan = 0, .line = "tensor",
     .against = "\"ZeRO is model parallelism.\" It shards among replicas; tensor parallelism cuts a replica."},
    {.ask = "Does each rank of a TP group have exactly 1/{T} of the {whole} parameters?",
     .kind = ZERO_ANSWER_WORD, .unit = "yes|no", .answer = is_half,
     .mistakes = {{is_not_half, "Products are cut; norms, positions and some biases are whole on each rank."}},
     .because = "{part} for {half}: norms, positions and the biases that follow a sum are on every rank.",
     .plan = 0, .line = "this rank has",
     .against = "\"T ranks, 1/T of everything.\""},
    {.ask = "A block is two products in a row, twice (attention, MLP), and each pair ends in a sum over the TP group. "
            "How many such all-reduces does a block need, forward and backward together?",
     .kind = ZERO_ANSWER_WHOLE, .unit = "all-reduces", .answer = sums,
     .mistakes = {{sums_forward, "That is forward. Backward has as many: gradients of the inputs are summed."},
                  {sums_of_paper, "That is with --recompute, as the paper counts."},
                  {sums_doubled, "Two in forward and two in backward."}},
     .because = "2 in forward and 2 in backward. (Other sums of a step lie outside the blocks.)",
     .plan = 0, .line = "JOIN  ",
     .against = NULL},
    {.ask = "So a block sends 8 b s h (T-1)/T floats per rank: b = 1 sequence, s = 4 positions, h = 8 channels. How many BYTES does that make for {blocks}?",
     .kind = ZERO_ANSWER_WHOLE, .unit = "bytes", .answer = joined,
     .mistakes = {{joined_elements, "That counts floats."},
                  {joined_whole, "That forgets (T-1)/T."},
                  {joined_paper, "That is the paper's 12 b s h, with recomputation."}},
     .because = "8 x 1 x 4 x 8 x (T-1)/T x 4 bytes x {L} = {answer}. This volume grows with the batch; ZeRO's does not.",
     .plan = 0, .line = "blocks",
     .against = "\"TP and ZeRO send the same things.\" TP sends activations, in every block; ZeRO gradients and parameters."},
    {.ask = "fp32, stage 2: how many bytes of model states does a rank hold, if it has {part} parameters? (No padding.)",
     .kind = ZERO_ANSWER_WHOLE, .unit = "bytes", .answer = formula,
     .mistakes = {{formula_whole, "That is for the whole model: a rank holds its part of it."},
                  {formula_all_ranks, "That divides by all {ranks} ranks. ZeRO shards over {D}."}},
     .because = "4 Psi + 12 Psi/N with Psi = {part} and N = {D}: {answer}. Both savings multiply.",
     .plan = 0, .line = "model states",
     .against = NULL},
};
/* clang-format on */

const zero_lesson zero_lesson_tensor = {
    .title = "tensor parallelism",
    .about = "neighbours share each product",
    .plans = plans,
    .names = names,
    .questions = questions,
    .n = sizeof questions / sizeof questions[0],
};
