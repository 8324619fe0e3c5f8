/* Mixed precision: 16-bit parameters and gradients, fp32 masters and moments. */
#include "lesson/lessons.h"
#include "lesson/world.h"

#define PLAN(dtype, stage) \
    "{model} --ranks {N} --global-batch {N} --dtype " #dtype " --stage " #stage

static const char *const plans[] = {PLAN(bf16, 0), PLAN(bf16, 1), PLAN(fp32, 0),
                                    PLAN(fp32, 1), NULL};

/* ---- values ---- */

static double optimizer_each(const zero_course_world *w)
{
    return (double)zero_world_schedule(w, 0)->class_peak[ZERO_CLASS_OPTIMIZER] /
           zero_world_padded(w);
}

static double optimizer_fp32(const zero_course_world *w)
{
    return (double)zero_world_schedule(w, 2)->class_peak[ZERO_CLASS_OPTIMIZER] /
           zero_world_padded(w);
}

static double states_each(const zero_course_world *w)
{
    return (double)zero_world_ledger(w, 0)->states / zero_world_padded(w);
}

static double half_each(const zero_course_world *w)
{
    return states_each(w) / 2.0;
}
static double states_without_master(const zero_course_world *w)
{
    return states_each(w) - 4.0;
}
static double states_with_both(const zero_course_world *w)
{
    return states_each(w) + 2.0;
}
static double half_optimizer(const zero_course_world *w)
{
    return optimizer_each(w) / 2.0;
}
static double one_moment(const zero_course_world *w)
{
    return optimizer_fp32(w) / 2.0;
}

static double formula1(const zero_course_world *w)
{
    return zero_world_ledger(w, 1)->formula;
}
static double formula1_fp32(const zero_course_world *w)
{
    return zero_world_ledger(w, 3)->formula;
}
static double all_divided(const zero_course_world *w)
{
    return states_each(w) * zero_world_psi(w) / zero_world_ranks(w);
}
static double nothing_divided(const zero_course_world *w)
{
    return states_each(w) * zero_world_psi(w);
}
static double eight_divided(const zero_course_world *w)
{
    return zero_world_psi(w) * (4.0 + optimizer_fp32(w) / zero_world_ranks(w));
}

static double reduced(const zero_course_world *w)
{
    return zero_world_reduced(w, 1);
}
static double reduced_fp32(const zero_course_world *w)
{
    return zero_world_reduced(w, 3);
}
static double whole(const zero_course_world *w)
{
    return zero_world_padded(w) * zero_world_element(w);
}

/* With very many ranks the optimizer states of stage 1 vanish, and the rest stays. */
static double limit(const zero_course_world *w)
{
    return states_each(w) / (states_each(w) - optimizer_each(w));
}

static double limit_fp32(const zero_course_world *w)
{
    return states_each(w) / (states_each(w) - optimizer_fp32(w));
}

/* clang-format off */
static const zero_course_name names[] = {
    {"each", states_each}, {"K", optimizer_each}, {"K32", optimizer_fp32}, {"fp32", reduced_fp32}, {NULL, NULL},
};

static const zero_question questions[] = {
    {.screen =
        "With --dtype bf16 a model computes with parameters of 16 bits, and gradients have 16 bits. "
        "Small updates would be lost in them, so the optimizer keeps a master copy of each "
        "parameter in fp32, besides Adam's momentum and variance (fp32).",
     .ask = "bf16: how many bytes of OPTIMIZER STATES does each parameter have?",
     .kind = ZERO_ANSWER_WHOLE, .unit = "bytes", .answer = optimizer_each,
     .mistakes = {{optimizer_fp32, "That is momentum and variance alone. The fp32 master counts as well."},
                  {half_optimizer, "They stay fp32: 4 bytes each."},
                  {one_moment, "Adam has two moments."},
                  {states_each, "That is all model states; parameter and gradient are not the optimizer's."}},
     .because = "Master 4, momentum 4, variance 4: K = {answer}. In fp32 the parameter is its own master, so K = {K32}.",
     .plan = 0, .line = "optimizer states",
     .against = "\"Optimizer states are 8 Psi.\" With 16 bits K = 12."},
    {.ask = "bf16, stage 0: how many bytes of MODEL STATES does each parameter have, all together?",
     .kind = ZERO_ANSWER_WHOLE, .unit = "bytes", .answer = states_each,
     .mistakes = {{half_each, "16 bits do not halve it: the master and Adam's moments stay fp32."},
                  {optimizer_each, "That is the optimizer's part."},
                  {states_without_master, "That forgets the fp32 master."},
                  {states_with_both, "Gradients have 2 bytes here, not 4."}},
     .because = "2 + 2 + {K} = {answer}, as many as in fp32 (4 + 4 + {K32}). Speed and activations gain, model states do not.",
     .plan = 0, .line = "model states",
     .against = "\"Half precision halves memory.\" Model states stay 16 Psi."},
    {.ask = "bf16, stage 1: how many bytes of model states does each of the {N} ranks hold for {psi} parameters? (No padding.)",
     .kind = ZERO_ANSWER_WHOLE, .unit = "bytes", .answer = formula1,
     .mistakes = {{formula1_fp32, "That is the formula of fp32, 8 Psi + 8 Psi/N."},
                  {all_divided, "That divides parameters and gradients as well."},
                  {nothing_divided, "That is stage 0."},
                  {eight_divided, "That divides only 8 bytes: the master is divided as well."}},
     .because = "4 Psi + 12 Psi/N = 4 x {psi} + {K} x {psi} / {N} = {answer}.",
     .plan = 1, .line = "model states",
     .against = "\"Stage 1 saves the same in every precision.\" With 16 bits 12 of 16 bytes are cut, in fp32 8 of 16."},
    {.ask = "bf16, stage 1, {padded} numbers with padding: how many bytes does one rank send in REDUCE?",
     .kind = ZERO_ANSWER_WHOLE, .unit = "bytes", .answer = reduced,
     .mistakes = {{reduced_fp32, "That is 4 bytes for 2: gradients travel as bf16."},
                  {whole, "That is N for N - 1."}},
     .because = "{padded} x 2 bytes x {N-1} / {N} = {answer}, half of fp32's {fp32}.",
     .plan = 1, .line = "REDUCE",
     .against = "\"Sums need fp32, so fp32 travels.\" The sum is made in fp32 from gradients that travel in 16 bits."},
    {.ask = "bf16, stage 1: at most how many times smaller than in stage 0 can model states become, with as many ranks as you like?",
     .kind = ZERO_ANSWER_REAL, .unit = "times", .answer = limit,
     .mistakes = {{limit_fp32, "That is the limit of fp32: 16 / 8."},
                  {states_each, "That would leave 1 byte; parameter and gradient take 4."},
                  {zero_world_ranks, "That is stage 3: it divides everything by N."}},
     .because = "16 Psi / (4 Psi + 12 Psi/N) tends to 16 / 4 = {answer}.",
     .plan = 1, .line = "model states",
     .against = "\"N ranks, N times less memory\": only in stage 3."},
};
/* clang-format on */

const zero_lesson zero_lesson_precision = {
    .title = "mixed precision",
    .about = "16-bit parameters, fp32 masters",
    .plans = plans,
    .names = names,
    .questions = questions,
    .n = sizeof questions / sizeof questions[0],
};
