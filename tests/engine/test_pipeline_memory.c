/* Memory and bytes of pipelines, against closed forms. */

#include "sharding/schedule_exchange.h"
#include "support/pipeline_test.h"

static void check_live(const zero_pipeline *p)
{
    int m = p->plan.accumulation, P = p->n_stages;
    for (int s = 0; s < P; s++) {
        int expected = p->plan.pp_schedule == ZERO_PIPELINE_GPIPE ? m
                       : m < P - s                                ? m
                                                                  : P - s;
        if (P == 1) break; /* no pipeline */
        assert_int_equal(zero_pipeline_live_formula(p->plan.pp_schedule, P, s, m),
                         expected);
        assert_int_equal(zero_pipeline_live(&p->stages[s].schedule), expected);
    }
}

TEST(microbatches_alive_are_those_of_the_formula)
{
    for_all(check_live);
}

/* Classes add up to the peak, and the largest instruction is the peak. */
static void check_sums(const zero_pipeline *p)
{
    for (int s = 0; s < p->n_stages; s++) {
        const zero_pipe_stage *stage = &p->stages[s];
        size_t sum = 0, most = 0;
        for (int c = 0; c < ZERO_CLASSES; c++) {
            sum += stage->ledger.at_peak[c];
            assert_true(stage->ledger.at_peak[c] <= stage->schedule.class_peak[c]);
        }
        const zero_schedule *plan = &stage->schedule;
        const zero_program *step = step_of(p, s);
        int last = 0;
        for (int at = 0; at < step->length; at++) {
            const zero_instruction *i = &step->code[at];
            most = i->live_bytes > most ? i->live_bytes : most;
            if (i->op == ZERO_OP_UPDATE) last = at;
        }
        assert_int_equal(sum, plan->peak_of[ZERO_PROGRAM_STEP].bytes);
        assert_int_equal(most, sum);
        /* At the end only what lives for the whole run. */
        size_t held = 0;
        for (int k = 0; k < plan->n_buffers; k++)
            if (plan->buffers[k].program == ZERO_PROGRAM_ALL)
                held += plan->buffers[k].bytes;
        assert_int_equal(step->code[last].live_bytes, held);
    }
}

TEST(memory_adds_up)
{
    for_all(check_sums);
}

/* 1F1B keeps what does not grow with the microbatches; GPipe keeps all of them. */
TEST(only_gpipe_grows_with_microbatches)
{
    zero_model model;
    describe(&model);
    size_t before[ZERO_PIPELINE_KINDS] = {0};
    for (int m = 8; m <= 32; m *= 2)
        for (int kind = 0; kind < ZERO_PIPELINE_KINDS; kind++) {
            zero_plan_input in = input(&model, 4, m, 1);
            zero_pipeline p;
            make(&p, (zero_pipeline_kind)kind, in);
            size_t now = p.stages[0].schedule.class_peak[ZERO_CLASS_ACTIVATIONS];
            bool grows = kind == ZERO_PIPELINE_GPIPE;
            assert_true(m == 8 || (grows ? now > before[kind] : now == before[kind]));
            before[kind] = now;
            zero_pipeline_destroy(&p);
        }
    zero_model_destroy(&model);
}

/* ---- bytes ---- */

/* Outputs go on, gradients come back; stage 0 sends the last one that of unit 0's output, and
 * gets its parameters. */
static void check_bytes(const zero_pipeline *p)
{
    const zero_plan_input *in = &p->plan;
    const int P = p->n_stages, D = in->n_ranks;
    const int64_t m = in->accumulation, message = 2 * 16 * 24 * 4;
    for (int s = 0; s < P; s++) {
        const zero_plan_ledger *l = &p->stages[s].ledger;
        const zero_schedule *plan = &p->stages[s].schedule;
        int64_t padded = 0, tied = s == 0 && P > 1 ? m * message : 0;
        const int64_t type = (int64_t)zero_type_size(in->type), sum = m > 1 ? 4 : type;
        for (int at = 0; at < step_of(p, s)->length; at++) {
            const zero_instruction *i = &step_of(p, s)->code[at];
            if (i->op == ZERO_OP_UPDATE) padded += plan->groups[i->group].partition.padded;
            if (i->op == ZERO_OP_SEND && i->group >= 0)
                tied += plan->groups[i->group].partition.padded * type;
        }
        assert_int_equal(zero_traffic_sent(&l->reduce.traffic), padded / D * (D - 1) * sum);
        assert_int_equal(zero_traffic_sent(&l->gather.traffic),
                         padded / D * (D - 1) * type);
        assert_int_equal(zero_traffic_sent(&l->send.traffic),
                         ((s < P - 1) + (s > 0)) * m * message + tied);
        assert_true(l->send.formula == (double)zero_traffic_sent(&l->send.traffic));
    }
}

TEST(bytes_are_those_of_the_formula)
{
    for_all(check_bytes);
}
