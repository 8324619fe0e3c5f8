#include "plan/pipeline.h"

#include "base/fail.h"
#include "base/grow.h"
#include "base/number.h"
#include "sharding/compile.h"

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

int zero_pipeline_live(const zero_schedule *s)
{
    const zero_program *step = &s->programs[ZERO_PROGRAM_STEP];
    const zero_pipeline_place *at = &s->pipe;
    const int last = at->first_unit + (at->stage == 0 && at->first_stage > 0);
    int live = 0, most = 0;
    for (int k = 0; k < step->length; k++) {
        const zero_instruction *i = &step->code[k];
        live += i->op == ZERO_OP_FORWARD && i->unit == at->first_unit;
        most = (int)zero_max(most, live);
        live -= i->op == ZERO_OP_BACKWARD && i->unit == last;
    }
    return most;
}

zero_status zero_pipeline_make(zero_pipeline *p, const zero_plan_input *plan)
{
    *p = (zero_pipeline){.n_stages = zero_plan_stages(plan), .plan = *plan};
    zero_status st = zero_new(&p->stages, p->n_stages, "stages of a pipeline");
    for (int s = 0; st == ZERO_OK && s < p->n_stages; s++) {
        p->plan.pp_stage = s;
        st = zero_schedule_compile(&p->stages[s].schedule, &p->plan);
        if (st == ZERO_OK) zero_plan_add_up(&p->stages[s].schedule, &p->stages[s].ledger);
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
