/* Bytes of model states on each rank in stages 0 to 3, by the paper's formula and with padding. */
#include <inttypes.h>
#include <math.h>

#include "lesson/lessons.h"
#include "lesson/world.h"
#include "sharding/formula.h"

#define PLAN(stage) "{model} --ranks {N} --global-batch {N} --dtype {dtype} --stage " #stage

static const char *const plans[] = {PLAN(0), PLAN(1), PLAN(2), PLAN(3), NULL};

/* ---- values ---- */

static double formula(const zero_course_world *w, int stage)
{
    return zero_world_ledger(w, stage)->formula;
}

static double formula0(const zero_course_world *w)
{
    return formula(w, 0);
}
static double formula1(const zero_course_world *w)
{
    return formula(w, 1);
}
static double formula2(const zero_course_world *w)
{
    return formula(w, 2);
}
static double formula3(const zero_course_world *w)
{
    return formula(w, 3);
}

static double states0(const zero_course_world *w)
{
    return (double)zero_world_ledger(w, 0)->states;
}

static double states3(const zero_course_world *w)
{
    return (double)zero_world_ledger(w, 3)->states;
}

static double optimizer_bytes(const zero_course_world *w)
{
    return 16.0 - 2.0 * zero_world_element(w);
}

/* k bytes per parameter */
static double per_parameter(const zero_course_world *w, double k)
{
    return k * zero_world_psi(w);
}

static double without_gradients(const zero_course_world *w)
{
    return per_parameter(w, 16.0 - zero_world_element(w));
}

static double two_moments(const zero_course_world *w)
{
    return per_parameter(w, 8.0);
}
static double parameters_only(const zero_course_world *w)
{
    return per_parameter(w, zero_world_element(w));
}

/* The formula of the other types. */
static double other_type(const zero_course_world *w, int stage)
{
    zero_type other = zero_world_element(w) == 4.0 ? ZERO_BF16 : ZERO_FP32;
    return zero_formula_state_bytes((int64_t)zero_world_psi(w), (int)w->numbers->ranks,
                                    stage, other);
}

static double other_type1(const zero_course_world *w)
{
    return other_type(w, 1);
}
static double other_type2(const zero_course_world *w)
{
    return other_type(w, 2);
}

/* Parameters whole, the rest divided. */
static double parameters_whole(const zero_course_world *w)
{
    double e = zero_world_element(w);
    return per_parameter(w, e + (16.0 - e) / zero_world_ranks(w));
}

/* Padding of each group to 64 elements, without the ranks. */
static double padded_once(const zero_course_world *w)
{
    const zero_model *m = &zero_world_report(w, 0)->model;
    double sum = 0.0;
    for (int g = 0; g < m->n_groups; g++)
        sum += 64.0 * ceil((double)m->groups[g].n_params / 64.0);
    return 16.0 * sum;
}

/* Padding of the whole model at once. */
static double padded_together(const zero_course_world *w)
{
    double granule = 64.0 * zero_world_ranks(w);
    return 16.0 * granule * ceil(zero_world_psi(w) / granule);
}

static double padding_times(const zero_course_world *w)
{
    return zero_world_padded(w) / zero_world_psi(w);
}

static double padding_only(const zero_course_world *w)
{
    return padding_times(w) - 1.0;
}
static double padding_inverse(const zero_course_world *w)
{
    return 1.0 / padding_times(w);
}

/* ---- screens ---- */

static void show_model(const zero_course_world *w, FILE *out)
{
    const zero_schedule *s = zero_world_schedule(w, 0);
    const zero_model *m = s->input.model;
    bool has_master = zero_world_element(w) < 4.0;
    fprintf(out, "  bytes of each parameter\n");
    fprintf(out, "    %g   the parameter, %s\n", zero_world_element(w), w->numbers->dtype);
    fprintf(out, "    %g   its gradient, %s\n", zero_world_element(w), w->numbers->dtype);
    if (has_master) fputs("    4   its master copy, fp32\n", out);
    fputs("    4   Adam's momentum, fp32\n    4   Adam's variance, fp32\n", out);
    fprintf(out, "  %-12s %10s\n", "group", "parameters");
    for (int g = 0; g < m->n_groups; g++)
        fprintf(out, "  %-12s %10" PRId64 "\n", m->groups[g].name, m->groups[g].n_params);
}

/* A row per kind of group: blocks are equal. */
static void show_shards(const zero_course_world *w, FILE *out)
{
    const zero_schedule *s = zero_world_schedule(w, 0);
    const zero_model *m = s->input.model;
    fprintf(out, "  %-10s %10s %7s   parameters in the shard of rank 0, 1, ...\n", "group",
            "parameters", "padded");
    for (int g = 0; g < m->n_groups; g++) {
        const zero_partition *p = &s->groups[g].partition;
        if (g > 1 && g + 1 < m->n_groups) continue;
        fprintf(out, "  %-10s %10" PRId64 " %7" PRId64 "  ", m->groups[g].name, p->n_params,
                p->padded);
        for (int r = 0; r < p->n_ranks; r++)
            fprintf(out, " %4" PRId64, zero_range_len(zero_partition_shard(p, r)));
        fputc('\n', out);
    }
}

/* clang-format off */
static const zero_course_name names[] = {
    {"formula0", formula0}, {"formula1", formula1}, {"formula2", formula2}, {"formula3", formula3},
    {"states0", states0}, {"states3", states3}, {"K", optimizer_bytes}, {NULL, NULL},
};

static const zero_question questions[] = {
    {.screen =
        "A GPT-2 of {blocks} and {C} channels has Psi = {psi} parameters, in groups that are cut, sent and "
        "gathered together. {N} ranks train it, each on samples of its own. Adam needs more than "
        "parameters. All of that is the model states; in stage 0 each rank holds all of it.",
     .show = show_model,
     .ask = "Stage 0: how many bytes of model states does each rank hold? (No padding.)",
     .kind = ZERO_ANSWER_WHOLE, .unit = "bytes", .answer = formula0,
     .mistakes = {{without_gradients, "That is 12 Psi: without the gradients, or with the 12 bytes that Adam takes in a 16-bit run. All states take 16 Psi."},
                  {two_moments, "That is 8 Psi: momentum and variance alone, or half of the states."},
                  {parameters_only, "That is the parameters alone."},
                  {states0, "That has the padding, which comes later."},
                  {formula3, "That is a rank's share if everything were divided: stage 3."}},
     .because = "16 Psi = 16 x {psi} = {answer}: {bytes} + {bytes} + {K} bytes for each parameter.",
     .plan = 0, .line = "model states",
     .against = "\"Optimizer states are 8 Psi, so a model takes 12 Psi.\" With Adam it is 16 bytes for each parameter, in fp32 as with 16 bits (K = 12)."},
    {.screen =
        "Stage 1 (P_os) cuts the optimizer states into {N} shards: a rank keeps those of its shard "
        "and updates only that. Parameters and gradients stay whole on every rank.",
     .ask = "Stage 1: how many bytes of model states does each rank hold? (No padding.)",
     .kind = ZERO_ANSWER_WHOLE, .unit = "bytes", .answer = formula1,
     .mistakes = {{formula0, "That is stage 0: nothing is divided."},
                  {formula3, "That divides everything by {N}. Stage 1 divides only the optimizer states."},
                  {formula2, "That divides the gradients as well: stage 2."},
                  {other_type1, "That is the formula of {other}: with {dtype} a parameter takes {bytes} bytes and its optimizer states {K}."}},
     .because = "({bytes} + {bytes}) Psi whole, {K} Psi divided by {N}: {bytes} x {psi} + {bytes} x {psi} + {K} x {psi} / {N} = {answer}.",
     .plan = 1, .line = "model states",
     .against = "\"Stage 1 divides all of memory by N.\" It divides the optimizer states alone."},
    {.screen =
        "Stage 2 (P_os+g) also cuts the gradients: once they are summed a rank keeps its shard of "
        "the sum. Parameters stay whole.",
     .ask = "Stage 2: how many bytes of model states does each rank hold? (No padding.)",
     .kind = ZERO_ANSWER_WHOLE, .unit = "bytes", .answer = formula2,
     .mistakes = {{formula1, "That is stage 1: its gradients are whole."},
                  {formula3, "That divides the parameters as well: stage 3."},
                  {formula0, "That is stage 0: nothing is divided."},
                  {other_type2, "That is the formula of {other}: with {dtype} a parameter takes {bytes} bytes and its optimizer states {K}."}},
     .because = "{bytes} Psi whole, the rest divided by {N}: {bytes} x {psi} + ({bytes} + {K}) x {psi} / {N} = {answer}.",
     .plan = 2, .line = "model states",
     .against = "\"Without whole gradients a rank cannot update.\" It updates its shard, and needs the sum only there."},
    {.screen =
        "Stage 3 (P_os+g+p) also cuts the parameters. A group's parameters are gathered from all "
        "ranks just before they are needed, and released after that. What is gathered for a "
        "moment is not among the model states.",
     .ask = "Stage 3: how many bytes of model states does each rank hold? (No padding.)",
     .kind = ZERO_ANSWER_WHOLE, .unit = "bytes", .answer = formula3,
     .mistakes = {{parameters_whole, "That keeps the parameters whole: stage 2."},
                  {formula1, "That is stage 1."},
                  {formula0, "That is stage 0: nothing is divided."}},
     .because = "16 Psi / N = 16 x {psi} / {N} = {answer}.",
     .plan = 3, .line = "model states",
     .against = "\"Stage 3 has 1/N of everything.\" Of the model states, yes. Activations and what is gathered are not divided."},
    {.screen =
        "Each group of parameters is cut into {N} equal shards, so that all ranks send and receive "
        "alike. A shard has 64 numbers, or 128, 192 and so on: whole granules of 64. Padding makes up "
        "the difference: zeros that are stored and sent.",
     .show = show_shards,
     .ask = "Stage 0 again: how many bytes of model states does a rank hold with padding?",
     .kind = ZERO_ANSWER_WHOLE, .unit = "bytes", .answer = states0,
     .mistakes = {{formula0, "That forgets the padding."},
                  {padded_once, "That pads each group to 64 numbers. Each of the {N} shards has whole granules of 64."},
                  {padded_together, "That pads the whole model once. Each group is padded by itself."},
                  {states3, "That is one shard: stage 0 holds all {N}."}},
     .because = "{padded} numbers with padding, 16 bytes each: {answer}. A real model has thousands of times as many, and the same few KiB of padding.",
     .plan = 0, .line = "model states",
     .against = "\"{psi} parameters take as many bytes as the formula says.\" A small group takes a granule of 64 per rank; large models do not notice."},
    {.ask = "Stage 3: how many bytes of model states does a rank hold with padding?",
     .kind = ZERO_ANSWER_WHOLE, .unit = "bytes", .answer = states3,
     .mistakes = {{formula3, "That forgets the padding."},
                  {states0, "That is stage 0, where each rank holds all {N} shards."}},
     .because = "Everything is divided, padding as well: 16 x {padded} / {N} = {answer}.",
     .plan = 3, .line = "model states",
     .against = "\"The last ranks hold nothing, so they need no memory.\" Shards are equal; theirs may be padding alone."},
    {.ask = "In any stage, the bytes with padding are how many times those of the formula?",
     .kind = ZERO_ANSWER_REAL, .unit = "times", .answer = padding_times,
     .mistakes = {{padding_only, "That is the padding alone, as a part of the formula's bytes."},
                  {padding_inverse, "That is the other way round."}},
     .because = "{padded} / {psi} = {answer}. zero plan shows both: the paper's bytes and the padding.",
     .plan = 3, .line = "model states",
     .against = NULL},
};
/* clang-format on */

const zero_lesson zero_lesson_holds = {
    .title = "who holds what",
    .about = "model states in stages 0 to 3",
    .plans = plans,
    .names = names,
    .questions = questions,
    .n = sizeof questions / sizeof questions[0],
};
