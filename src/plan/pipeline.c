#include "plan/pipeline.h"

#include "base/fail.h"
#include "base/grow.h"
#include "base/number.h"
#include "sharding/compile.h"
#include "sharding/schedule_exchange.h"
#include "sharding/schedule_memory.h"

/* Forward passes of all units in a step. The programs of a pipeline with that many take 1
 * GB. */
#define MOST_PASSES (INT64_C(1) << 20)

const char *zero_pipeline_name(zero_pipeline_kind kind)
{
    return kind == ZERO_PIPELINE_GPIPE ? "gpipe" : "1f1b";
}

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

/* The units between the first and the last are dealt evenly. Those two go to the stages of
 * their neighbours. */
static zero_pipeline_place place_of(const zero_pipeline *p, int stage)
{
    int64_t P = p->n_stages, between = p->plan.model->n_units - 2;
    return (zero_pipeline_place){
        .kind = p->kind,
        .n_stages = p->n_stages,
        .stage = stage,
        .first_unit = stage == 0 ? 0 : 1 + (int)(between * stage / P),
        .end_unit =
            stage == P - 1 ? p->plan.model->n_units : 1 + (int)(between * (stage + 1) / P),
        .holders = p->holders};
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
    if (p->n_stages < 1 || p->n_stages > most)
        return zero_fail(
            ZERO_ERR_INVALID,
            "a pipeline of %d stages: the model has %d units, of which the first and the "
            "last stay with a neighbour; expected 1 to %d stages",
            p->n_stages, plan->model->n_units, most);
    if ((int64_t)plan->model->n_units * plan->accumulation <= MOST_PASSES) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "a pipeline of %d units and %d microbatches: their product is above "
                     "2^20; give fewer stages or a smaller --global-batch",
                     plan->model->n_units, plan->accumulation);
}

static void add_up(zero_pipe_stage *stage)
{
    const zero_schedule *s = &stage->schedule;
    const zero_program *program = &s->programs[ZERO_PROGRAM_STEP];
    zero_pipe_ledger *l = &stage->ledger;
    int live = 0;
    zero_schedule_live_at(s, ZERO_PROGRAM_STEP, s->peak_at, l->at_peak);
    l->states = s->class_peak[ZERO_CLASS_PARAMETERS] + s->class_peak[ZERO_CLASS_GRADIENTS] +
                s->class_peak[ZERO_CLASS_OPTIMIZER];
    for (int at = 0; at < program->length; at++) {
        const zero_instruction *i = &program->code[at];
        const zero_op_row *row = &zero_ops[i->op];
        zero_traffic t = zero_instruction_traffic(s, i);
        int64_t *sum = row->kind == ZERO_WORK_TIE    ? &l->tied_sent
                       : row->kind != ZERO_WORK_SEND ? &l->reduced_sent
                       : row->goes_back              ? &l->gradients_sent
                                                     : &l->activations_sent;
        *sum += zero_traffic_sent(&t);
        live += i->op == ZERO_OP_FORWARD && i->unit == s->pipe.first_unit;
        l->live = (int)zero_max(l->live, live);
        live -= i->op == ZERO_OP_BACKWARD && i->unit == s->pipe.first_unit;
    }
}

zero_status zero_pipeline_make(zero_pipeline *p, zero_pipeline_kind kind,
                               const zero_plan_input *plan, int n_stages)
{
    *p = (zero_pipeline){.kind = kind, .n_stages = n_stages, .plan = *plan};
    p->plan.stage = p->plan.rank = p->plan.check_replicas = p->plan.check_memory = 0;
    p->plan.texts = p->plan.shard_ranks = 0;
    p->plan.serial = false;
    p->plan.layout = p->plan.world_layout = NULL;
    ZERO_TRY(check(p));
    const zero_model *model = plan->model;
    int *seen = NULL; /* [n_groups]: the last stage that has it, from 1 on */
    zero_status st = zero_new(&p->stages, n_stages, "stages of a pipeline");
    if (st == ZERO_OK) st = zero_new(&p->holders, model->n_groups, "groups of a pipeline");
    if (st == ZERO_OK) st = zero_new(&seen, model->n_groups, "groups of a pipeline");
    for (int s = 0; st == ZERO_OK && s < n_stages; s++) {
        zero_pipeline_place place = place_of(p, s);
        for (int u = place.first_unit; u < place.end_unit; u++)
            for (int k = 0; k < model->units[u].n_groups; k++) {
                int g = model->units[u].groups[k];
                p->holders[g] += seen[g] != s + 1;
                seen[g] = s + 1;
            }
    }
    free(seen);
    for (int s = 0; st == ZERO_OK && s < n_stages; s++) {
        zero_pipeline_place place = place_of(p, s);
        st = zero_schedule_compile_stage(&p->stages[s].schedule, &p->plan, &place);
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
    free(p->holders);
    *p = (zero_pipeline){0};
}
