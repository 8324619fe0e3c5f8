#include "plan/pipeline.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/fail.h"
#include "base/grow.h"
#include "base/number.h"

/* Forward passes of all stages in a step. The programs of a pipeline with that many take 200 MB. */
#define MOST_PASSES (INT64_C(1) << 20)

static const char *const names[ZERO_PIPELINE_KINDS] = {
    [ZERO_PIPELINE_GPIPE] = "gpipe",
    [ZERO_PIPELINE_1F1B] = "1f1b",
};

static const char *const op_names[ZERO_PIPE_OPS] = {
    [ZERO_PIPE_LOAD] = "LOAD",
    [ZERO_PIPE_RECEIVE_ACTIVATION] = "RECEIVE_ACTIVATION",
    [ZERO_PIPE_FORWARD] = "FORWARD",
    [ZERO_PIPE_SEND_ACTIVATION] = "SEND_ACTIVATION",
    [ZERO_PIPE_RECEIVE_GRADIENT] = "RECEIVE_GRADIENT",
    [ZERO_PIPE_BACKWARD] = "BACKWARD",
    [ZERO_PIPE_SEND_GRADIENT] = "SEND_GRADIENT",
    [ZERO_PIPE_TIE] = "TIE",
    [ZERO_PIPE_REDUCE] = "REDUCE",
    [ZERO_PIPE_UPDATE] = "UPDATE",
};

const char *zero_pipeline_name(zero_pipeline_kind kind)
{
    return names[kind];
}

const char *zero_pipe_op_name(zero_pipe_op op)
{
    return op_names[op];
}

/* ---- closed forms ---- */

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

/* ---- stages ---- */

int zero_pipeline_most_stages(const zero_model *model)
{
    return (int)zero_max(1, model->n_units - 2);
}

/* The units between the first and the last are dealt evenly. Those two go to the stages of
 * their neighbours. */
static void deal_units(zero_pipeline *p)
{
    int64_t P = p->input.n_stages, between = p->input.plan.model->n_units - 2;
    for (int64_t s = 0; s < P; s++) {
        p->stages[s].first_unit = s == 0 ? 0 : 1 + (int)(between * s / P);
        p->stages[s].end_unit = 1 + (int)(between * (s + 1) / P);
    }
    p->stages[P - 1].end_unit = p->input.plan.model->n_units;
}

/* mark[g]: the last stage that was seen to read the group, or -1. */
static void find_readers(zero_pipeline *p, int *mark)
{
    const zero_model *model = p->input.plan.model;
    for (int g = 0; g < model->n_groups; g++) mark[g] = -1;
    for (int s = 0; s < p->input.n_stages; s++)
        for (int u = p->stages[s].first_unit; u < p->stages[s].end_unit; u++)
            for (int k = 0; k < model->units[u].n_groups; k++) {
                int g = model->units[u].groups[k];
                p->reads[u].first[k] = mark[g] != s;
                p->holders[g] += mark[g] != s;
                mark[g] = s;
            }
    for (int g = 0; g < model->n_groups; g++) mark[g] = -1;
    for (int s = p->input.n_stages - 1; s >= 0; s--)
        for (int u = p->stages[s].end_unit - 1; u >= p->stages[s].first_unit; u--)
            for (int k = 0; k < model->units[u].n_groups; k++) {
                int g = model->units[u].groups[k];
                p->reads[u].last[k] = mark[g] != s;
                mark[g] = s;
            }
}

static void find_sizes(zero_pipeline *p)
{
    const zero_plan_input *in = &p->input.plan;
    for (int u = 0; u < in->model->n_units; u++) {
        const zero_unit *unit = &in->model->units[u];
        p->sizes[u] = zero_plan_sizes(in, unit, in->micro_batch, in->seq);
    }
}

static zero_status deal(zero_pipeline *p)
{
    int *mark = malloc((size_t)p->input.plan.model->n_groups * sizeof *mark);
    if (!mark) return zero_fail(ZERO_ERR_NOMEM, "no memory to deal units to stages");
    find_sizes(p);
    deal_units(p);
    find_readers(p, mark);
    free(mark);
    return ZERO_OK;
}

/* ---- programs ---- */

/* A stage's program in the making. */
struct draft {
    const zero_pipeline *p;
    zero_pipe_stage *stage;
    bool is_first, is_last;
    zero_status status;
};

static void emit(struct draft *d, zero_pipe_op op, int microbatch, int group)
{
    zero_pipe_stage *s = d->stage;
    zero_pipe_instruction *grown =
        zero_grow(s->code, s->length, &s->capacity, sizeof *grown);
    if (!grown) {
        d->status = zero_fail(ZERO_ERR_NOMEM, "no memory for instruction %d of a pipeline",
                              s->length);
        return;
    }
    s->code = grown;
    s->code[s->length++] =
        (zero_pipe_instruction){.op = op, .microbatch = microbatch, .group = group};
}

static void forward(struct draft *d, int m)
{
    if (d->is_first || d->is_last) emit(d, ZERO_PIPE_LOAD, m, -1);
    if (!d->is_first) emit(d, ZERO_PIPE_RECEIVE_ACTIVATION, m, -1);
    emit(d, ZERO_PIPE_FORWARD, m, -1);
    if (!d->is_last) emit(d, ZERO_PIPE_SEND_ACTIVATION, m, -1);
}

static void backward(struct draft *d, int m)
{
    if (!d->is_last) emit(d, ZERO_PIPE_RECEIVE_GRADIENT, m, -1);
    emit(d, ZERO_PIPE_BACKWARD, m, -1);
    if (!d->is_first) emit(d, ZERO_PIPE_SEND_GRADIENT, m, -1);
}

static void write_gpipe(struct draft *d)
{
    int m = d->p->input.plan.accumulation;
    for (int k = 0; k < m; k++) forward(d, k);
    for (int k = m - 1; k >= 0; k--) backward(d, k);
}

/* A stage first starts one microbatch for each stage after it. Then it starts one before
 * each that it ends. */
static void write_1f1b(struct draft *d, int stage)
{
    int m = d->p->input.plan.accumulation;
    int ahead = (int)zero_min(m, d->p->input.n_stages - 1 - stage);
    for (int k = 0; k < ahead; k++) forward(d, k);
    for (int k = 0; k < m; k++) {
        if (ahead + k < m) forward(d, ahead + k);
        backward(d, k);
    }
}

static void write_for_groups(struct draft *d, zero_pipe_op op, bool tied, bool untied)
{
    const zero_pipeline *p = d->p;
    for (int u = d->stage->first_unit; u < d->stage->end_unit; u++) {
        const zero_unit *unit = &p->input.plan.model->units[u];
        for (int k = 0; k < unit->n_groups; k++) {
            bool is_tied = p->holders[unit->groups[k]] > 1;
            if (p->reads[u].first[k] && (is_tied ? tied : untied))
                emit(d, op, -1, unit->groups[k]);
        }
    }
}

/* A tied gradient waits for the first stage, whose backward pass is the last to end. A
 * stage reduces all its other gradients before that. */
static void write_end(struct draft *d)
{
    bool has_replicas = d->p->input.plan.n_ranks > 1;
    if (has_replicas) write_for_groups(d, ZERO_PIPE_REDUCE, false, true);
    write_for_groups(d, ZERO_PIPE_TIE, true, false);
    if (has_replicas) write_for_groups(d, ZERO_PIPE_REDUCE, true, false);
    write_for_groups(d, ZERO_PIPE_UPDATE, true, true);
}

static zero_status write_stage(zero_pipeline *p, int stage)
{
    struct draft d = {.p = p,
                      .stage = &p->stages[stage],
                      .is_first = stage == 0,
                      .is_last = stage == p->input.n_stages - 1};
    if (p->kind == ZERO_PIPELINE_GPIPE)
        write_gpipe(&d);
    else
        write_1f1b(&d, stage);
    write_end(&d);
    return d.status;
}

/* ---- making ---- */

static zero_status check(const zero_pipeline_input *in)
{
    const zero_plan_input *plan = &in->plan;
    int most = zero_pipeline_most_stages(plan->model);
    if (plan->n_ranks < 1 || plan->accumulation < 1 || plan->micro_batch < 1)
        return zero_fail(ZERO_ERR_INVALID,
                         "a pipeline with %d replicas and %d microbatches of %" PRId64
                         " sequences: each must be at least 1",
                         plan->n_ranks, plan->accumulation, plan->micro_batch);
    if (in->n_stages <= most && (int64_t)in->n_stages * plan->accumulation > MOST_PASSES)
        return zero_fail(ZERO_ERR_INVALID,
                         "a pipeline of %d stages and %d microbatches: their product is "
                         "above 2^20; give fewer stages or a smaller --global-batch",
                         in->n_stages, plan->accumulation);
    if (in->n_stages >= 1 && in->n_stages <= most) return ZERO_OK;
    return zero_fail(ZERO_ERR_INVALID,
                     "a pipeline of %d stages: the model has %d units, of which the first "
                     "and the last stay with a neighbour; expected 1 to %d stages",
                     in->n_stages, plan->model->n_units, most);
}

static zero_status cut_groups(zero_pipeline *p)
{
    const zero_model *model = p->input.plan.model;
    int64_t *n = malloc((size_t)model->n_groups * sizeof *n);
    if (!n) return zero_fail(ZERO_ERR_NOMEM, "no memory for %d groups", model->n_groups);
    for (int g = 0; g < model->n_groups; g++) n[g] = model->groups[g].n_params;
    zero_status st = zero_partition_cut(ZERO_PARTITION_SLICE, p->input.plan.n_ranks,
                                        model->n_groups, n, p->partitions);
    free(n);
    return st;
}

static zero_status make(zero_pipeline *p)
{
    const zero_model *model = p->input.plan.model;
    size_t n = (size_t)p->input.n_stages;
    p->stages = calloc(n, sizeof *p->stages);
    p->reads = calloc((size_t)model->n_units, sizeof *p->reads);
    p->sizes = calloc((size_t)model->n_units, sizeof *p->sizes);
    p->partitions = calloc((size_t)model->n_groups, sizeof *p->partitions);
    p->holders = calloc((size_t)model->n_groups, sizeof *p->holders);
    if (!p->stages || !p->reads || !p->sizes || !p->partitions || !p->holders)
        return zero_fail(ZERO_ERR_NOMEM, "no memory for a pipeline of %zu stages", n);
    ZERO_TRY(deal(p));
    ZERO_TRY(cut_groups(p));
    for (int s = 0; s < p->input.n_stages; s++) {
        ZERO_TRY(write_stage(p, s));
        zero_pipeline_add_up(p, s);
    }
    return ZERO_OK;
}

zero_status zero_pipeline_make(zero_pipeline *p, zero_pipeline_kind kind,
                               const zero_pipeline_input *input)
{
    *p = (zero_pipeline){.kind = kind, .input = *input};
    ZERO_TRY(check(input));
    zero_status st = make(p);
    if (st != ZERO_OK) zero_pipeline_destroy(p);
    return st;
}

void zero_pipeline_destroy(zero_pipeline *p)
{
    for (int s = 0; p->stages && s < p->input.n_stages; s++) free(p->stages[s].code);
    free(p->stages);
    free(p->reads);
    free(p->sizes);
    free(p->partitions);
    free(p->holders);
    *p = (zero_pipeline){0};
}
