/* Memory and bytes of pipelines, against closed forms and against a step of stage 0. */

#include "math/backend.h"
#include "plan/plan.h"
#include "sharding/compile.h"
#include "sharding/schedule_exchange.h"
#include "support/pipeline_test.h"
#include "support/planned.h"

static void check_live(const zero_pipeline *p)
{
    int m = p->plan.accumulation, P = p->n_stages;
    for (int s = 0; s < P; s++) {
        int expected = p->kind == ZERO_PIPELINE_GPIPE ? m : m < P - s ? m : P - s;
        assert_int_equal(zero_pipeline_live_formula(p->kind, P, s, m), expected);
        assert_int_equal(p->stages[s].ledger.live, expected);
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
        assert_int_equal(sum, plan->peak_bytes);
        assert_int_equal(most, plan->peak_bytes);
        assert_int_equal(step->code[plan->peak_at].live_bytes, most);
        /* At the end only what lives for the whole run, and the last messages. */
        size_t held = 0;
        for (int k = 0; k < plan->n_buffers; k++)
            if (plan->buffers[k].program == ZERO_PROGRAM_ALL)
                held += plan->buffers[k].bytes;
        size_t sides = (size_t)(s > 0) + (size_t)(s < p->n_stages - 1);
        assert_int_equal(step->code[last].live_bytes, held + sides * 2 * 16 * 24 * 4);
    }
}

TEST(memory_adds_up)
{
    for_all(check_sums);
}

/* Units whose recomputation needs more memory than anything else. */
static zero_unit_sizes large_forward(const zero_unit *unit, int64_t B, int64_t T)
{
    bool is_last = unit->n_groups == 2;
    return (zero_unit_sizes){.out = is_last ? 0 : 1000,
                             .saved = 500,
                             .forward_work = 2000000,
                             .row_loss = is_last ? B * T : 0};
}

TEST(an_output_is_recomputed_where_it_must)
{
    zero_model model;
    describe(&model);
    for (int u = 0; u < model.n_units; u++) model.units[u].sizes = large_forward;
    for (int without = 0; without < 2; without++) {
        pipeline_input in = input(&model, 1, 2, 1);
        zero_pipeline p;
        in.plan.recompute = true;
        for (int u = 0; u < model.n_units; u++)
            model.units[u].recompute_without_out = without;
        zero_schedule s = compiled(&in.plan);
        make(&p, ZERO_PIPELINE_1F1B, &in);
        assert_int_equal(p.stages[0].schedule.peak_bytes,
                         s.peak_of[ZERO_PROGRAM_STEP].bytes);
        assert_int_equal(p.stages[0].schedule.class_peak[ZERO_CLASS_WORKSPACE],
                         s.peak_of[ZERO_PROGRAM_STEP].of_class[ZERO_CLASS_WORKSPACE]);
        zero_schedule_destroy(&s);
        zero_pipeline_destroy(&p);
    }
    zero_model_destroy(&model);
}

/* A pipeline of one stage is a rank of stage 0: the same bytes in all classes. */
TEST(one_stage_is_plain_data_parallelism)
{
    zero_model model;
    describe(&model);
    for (int k = 0; k < 2 * 2 * 3 * 3; k++) {
        pipeline_input in = input(&model, 1, 1 + k / 4 % 3, 1 + k / 12 * 2);
        zero_pipeline p;
        zero_plan_ledger l;
        in.plan.type = k % 2 ? ZERO_BF16 : ZERO_FP32;
        in.plan.recompute = k / 2 % 2;
        in.plan.layout = NULL;
        zero_schedule s = compiled(&in.plan);
        zero_plan_add_up(&s, &l);
        make(&p, ZERO_PIPELINE_1F1B, &in);
        const zero_schedule *ours = &p.stages[0].schedule;
        for (int c = 0; c < ZERO_CLASSES; c++)
            if (s.peak_of[ZERO_PROGRAM_STEP].of_class[c] != ours->class_peak[c])
                fail_msg("case %d, %s: %zu and %zu", k, zero_class_name((zero_class)c),
                         s.peak_of[ZERO_PROGRAM_STEP].of_class[c], ours->class_peak[c]);
        if (in.plan.n_ranks == 1)
            assert_int_equal(ours->peak_bytes, s.peak_of[ZERO_PROGRAM_STEP].bytes);
        zero_traffic all = l.reduce.traffic;
        zero_traffic_add(&all, 1, &l.gather.traffic);
        assert_int_equal(p.stages[0].ledger.reduced_sent,
                         zero_traffic_total(&all).bytes_sent);
        zero_schedule_destroy(&s);
        zero_pipeline_destroy(&p);
    }
    zero_model_destroy(&model);
}

/* 1F1B keeps what does not grow with the microbatches; GPipe keeps all of them. */
TEST(only_gpipe_grows_with_microbatches)
{
    zero_model model;
    describe(&model);
    size_t before[ZERO_PIPELINE_KINDS] = {0};
    for (int m = 4; m <= 16; m *= 2)
        for (int kind = 0; kind < ZERO_PIPELINE_KINDS; kind++) {
            pipeline_input in = input(&model, 4, m, 1);
            zero_pipeline p;
            make(&p, (zero_pipeline_kind)kind, &in);
            size_t now = p.stages[0].schedule.class_peak[ZERO_CLASS_ACTIVATIONS];
            bool grows = kind == ZERO_PIPELINE_GPIPE;
            assert_true(m == 4 || (grows ? now > before[kind] : now == before[kind]));
            before[kind] = now;
            zero_pipeline_destroy(&p);
        }
    zero_model_destroy(&model);
}

/* ---- bytes ---- */

static void check_bytes(const zero_pipeline *p)
{
    const zero_plan_input *in = &p->plan;
    int P = p->n_stages, D = in->n_ranks;
    int64_t m = in->accumulation, message = 2 * 16 * 24 * 4, between = 0, instructions = 0;
    for (int s = 0; s < P; s++) {
        const zero_pipe_ledger *l = &p->stages[s].ledger;
        int64_t padded = 0, tied = 0;
        assert_int_equal(l->activations_sent, s < P - 1 ? m * message : 0);
        assert_int_equal(l->gradients_sent, s > 0 ? m * message : 0);
        between += l->activations_sent + l->gradients_sent;
        const zero_schedule *plan = &p->stages[s].schedule;
        for (int at = 0; at < step_of(p, s)->length; at++) {
            const zero_instruction *i = &step_of(p, s)->code[at];
            zero_traffic t = zero_instruction_traffic(plan, i);
            instructions += zero_traffic_total(&t).bytes_sent;
            if (i->op == ZERO_OP_UPDATE) padded += plan->groups[i->group].partition.padded;
            if (i->op == ZERO_OP_TIE) tied += plan->groups[i->group].partition.padded;
        }
        int64_t type = (int64_t)zero_type_size(in->type), sum = m > 1 ? 4 : type;
        assert_int_equal(l->reduced_sent, padded / D * (D - 1) * (sum + type));
        assert_int_equal(l->tied_sent, tied * sum); /* two stages */
        instructions -= l->reduced_sent + l->tied_sent;
    }
    assert_int_equal(between, 2 * (P - 1) * m * message);
    assert_int_equal(between, instructions);
}

TEST(bytes_are_those_of_the_formula)
{
    for_all(check_bytes);
}
