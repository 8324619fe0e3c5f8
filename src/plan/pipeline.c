#include "plan/pipeline.h"

#include "base/fail.h"
#include "base/grow.h"
#include "base/number.h"
#include "sharding/compile.h"
#include "sharding/schedule_exchange.h"
#include "sharding/schedule_memory.h"

int zero_pipeline_live_formula(zero_pipeline_kind kind, int n_stages, int stage,
                               int microbatches)
{
    if (kind == ZERO_PIPELINE_GPIPE) return microbatches;
    return (int)zero_min(microbatches, n_stages - stage);
}

double zero_pipeline_bubble_formula(int n_stages, int microbatches)
{
    return (double)(n_stages - 1) / (double)(microbatches + n_stages - 1);
}

int zero_pipeline_most_stages(const zero_model *model)
{
    return (int)zero_max(1, model->n_units - 2);
}

static zero_status check(const zero_pipeline *p)
{
    const zero_plan_input *plan = &p->plan;
    int most = zero_pipeline_most_stages(plan->model);
    if (plan->n_ranks < 1 || plan->accumulation < 1 || plan->micro_batch < 1)
        return zero_fail(ZERO_ERR_INVALID,
                         "a pipeline with %d replicas and %d microbatches of %" PRId64
                         " sequences: each must be at least 1",
                         plan->n_ranks, plan->accumulation, plan->micro_batch);
    ZERO_FAIL_IF(
        p->n_stages < 1 || p->n_stages > most, ZERO_ERR_INVALID,
        "a pipeline of %d stages: the model has %d units, of which the first and the "
        "last stay with a neighbour; expected 1 to %d stages",
        p->n_stages, plan->model->n_units, most);
    return ZERO_OK;
}

static void add_up(zero_pipe_stage *stage)
{
    const zero_schedule *s = &stage->schedule;
    const zero_program *program = &s->programs[ZERO_PROGRAM_STEP];
    zero_pipe_ledger *l = &stage->ledger;
    int live = 0, peak = 0;
    l->states = s->class_peak[ZERO_CLASS_PARAMETERS] + s->class_peak[ZERO_CLASS_GRADIENTS] +
                s->class_peak[ZERO_CLASS_OPTIMIZER];
    for (int at = 0; at < program->length; at++) {
        const zero_instruction *i = &program->code[at];
        if (i->live_bytes > program->code[peak].live_bytes) peak = at;
        zero_traffic t = zero_instruction_traffic(s, i);
        int64_t *const by_content[ZERO_PIPE_CONTENTS] = {
            [ZERO_PIPE_OUTPUT] = &l->activations_sent,
            [ZERO_PIPE_GRADIENT] = &l->gradients_sent,
            [ZERO_PIPE_FIRST] = &l->tied_sent,
            [ZERO_PIPE_PARAMETERS] = &l->tied_sent};
        int64_t *sum = i->op == ZERO_OP_SEND ? by_content[s->messages[i->join].content]
                                             : &l->reduced_sent;
        *sum += zero_traffic_sent(&t);
        live += i->op == ZERO_OP_FORWARD && i->unit == s->pipe.first_unit;
        l->live = (int)zero_max(l->live, live);
        const int last =
            s->pipe.first_unit + (s->pipe.stage == 0 && s->pipe.first_stage > 0);
        live -= i->op == ZERO_OP_BACKWARD && i->unit == last;
    }
    zero_schedule_live_at(s, ZERO_PROGRAM_STEP, peak, l->at_peak);
}

zero_status zero_pipeline_make(zero_pipeline *p, zero_pipeline_kind kind,
                               const zero_plan_input *plan, int n_stages)
{
    *p = (zero_pipeline){.kind = kind, .n_stages = n_stages, .plan = *plan};
    ZERO_TRY(check(p));
    p->plan.pp = n_stages;
    p->plan.pp_schedule = kind;
    zero_status st = zero_new(&p->stages, n_stages, "stages of a pipeline");
    for (int s = 0; st == ZERO_OK && s < n_stages; s++) {
        p->plan.pp_stage = s;
        st = zero_schedule_compile(&p->stages[s].schedule, &p->plan);
        if (st == ZERO_OK) add_up(&p->stages[s]);
    }
    if (st != ZERO_OK) zero_pipeline_destroy(p);
    return st;
}

void zero_pipeline_destroy(zero_pipeline *p)
{
    for (int s = 0; p->stages && s < p->n_stages; s++)
        zero_schedule_destroy(&p->stages[s].schedule);
    free(p->stages);
    *p = (zero_pipeline){0};
}
