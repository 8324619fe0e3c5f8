#include "data/corpus.h"
#include "math/backends.h"
#include "math/device.h"
#include "report/plan_facts.h"
#include "sharding/stages.h"

/* ---- the plan asked for ---- */

zero_plan_input zero_plan_report_input(const zero_plan_report *r, const zero_model *part,
                                       const zero_tp_place *p, int stage)
{
    zero_plan_input in =
        zero_config_plan_at(&r->config, part, p, &r->layout, r->collectives);
    in.stage = stage;
    return in;
}

zero_plan_exchange zero_plan_data_of(const zero_plan_ledger *l)
{
    const zero_plan_exchange *others[] = {&l->all_reduce, &l->gather};
    zero_plan_exchange sum = l->reduce;
    for (int i = 0; i < ZERO_COUNT(others); i++) {
        sum.collectives += others[i]->collectives;
        sum.formula += others[i]->formula;
        zero_traffic_add(&sum.traffic, 1, &others[i]->traffic);
    }
    return sum;
}

/* ---- the largest batch ---- */

bool zero_plan_batch_grows(const zero_plan_report *r)
{
    return r->request.config.global_batch == 0;
}

/* An error only if no stage has an answer: beside others, a stage without one shows 0. */
static zero_status check_batches(const zero_plan_report *r)
{
    const zero_plan_batch *least = &r->stages[0].batch;
    if (!r->request.fit_batch) return ZERO_OK;
    for (int k = 0; k < r->n; k++) {
        const zero_plan_batch *b = &r->stages[k].batch;
        if (b->micro_batch > 0) return ZERO_OK;
        if (b->needed < least->needed) least = b;
    }
    ZERO_INVALID_IF(zero_plan_host_room(r) > 0 && least->host > zero_plan_host_room(r),
                    "--fit batch: the device would do, but not --memory-limit %zu: "
                    "the host needs %zu bytes per rank; give more bytes, more ranks, "
                    "or --offload DIR where it is --offload host",
                    zero_plan_host_room(r), least->host);
    return zero_fail(ZERO_ERR_INVALID,
                     "--fit batch: no micro batch fits %" PRId64
                     " bytes: the smallest needs %zu per rank; give more bytes, more "
                     "ranks, a higher --stage, --recompute%s",
                     r->request.fit_memory, least->needed,
                     zero_plan_batch_grows(r) ? "" : ", or no --global-batch");
}

/* ---- pipelines beside all stages ---- */

/* Both kinds, at stage 0; on a machine without a network only `idle` counts. */
static zero_status make_pipelines(zero_plan_report *r)
{
    const zero_plan_machine ideal = {.bandwidth = INFINITY, .flops = 1.0};
    const zero_plan_machine *machine = r->request.has_time ? &r->request.machine : &ideal;
    const int P = zero_plan_stages(&r->request.config.plan);
    ZERO_AT_END(zero_tp_place_destroy) zero_tp_place place = {0};
    zero_config c = r->request.config;
    c.plan.stage = 0;
    c.plan.micro_batch = r->config.plan.micro_batch;
    c.global_batch = r->config.global_batch;
    ZERO_TRY(zero_config_complete(&c, r->request.n_ranks));
    ZERO_TRY(zero_tp_find_place(&c.tp, P, &r->layout, 0, &place));
    for (int k = 0; k < ZERO_PIPELINE_KINDS; k++) {
        zero_plan_pipeline *p = &r->pipelines[k];
        zero_pipeline_time alone;
        c.plan.pp_schedule = (zero_pipeline_kind)k;
        const zero_plan_input in =
            zero_config_plan_at(&c, r->part, &place, &r->layout, r->collectives);
        ZERO_TRY(zero_pipeline_make(&p->pipeline, &in));
        ZERO_TRY(zero_pipeline_walk(&p->pipeline, &ideal, &alone));
        ZERO_TRY(zero_pipeline_walk(&p->pipeline, machine, &p->time));
        p->bubble = alone.idle;
    }
    return ZERO_OK;
}

/* True if pipelines stand beside all stages of ZeRO. */
static bool has_pipelines(const zero_plan_report *r)
{
    return r->request.all_stages && !r->request.simulated &&
           zero_plan_stages(&r->request.config.plan) > 1;
}

/* ---- all ---- */

static zero_status open(zero_plan_report *r)
{
    const zero_backend *backend;
    ZERO_TRY(zero_config_check(&r->config));
    ZERO_TRY(zero_backend_find(r->config.backend, &backend));
    if (has_pipelines(r)) r->config.plan.pp = 1;
    ZERO_TRY(zero_config_complete(&r->config, r->request.n_ranks));
    const zero_config *c = &r->config;
    int64_t data_vocab;
    zero_shape preset;
    ZERO_TRY(zero_model_preset(c->model, &preset));
    ZERO_TRY(zero_corpus_expect_vocab(c->data, c->tokenizer, &data_vocab, &r->whose_vocab));
    if (preset.vocab > 0) r->whose_vocab = "the preset's";
    if (c->shape.vocab > 0) r->whose_vocab = "--vocab";
    ZERO_TRY(zero_config_shape(c, data_vocab, &r->shape));
    ZERO_INVALID_IF(r->shape.vocab <= 0,
                    "--tokenizer %s: the text decides the vocabulary, and a plan does "
                    "not read it; give --vocab N",
                    c->tokenizer);
    ZERO_TRY(zero_tp_check(&r->config.tp, &r->shape));
    ZERO_TRY(zero_model_build(&r->shape, &r->model));
    ZERO_TRY(zero_model_activate(&r->model, zero_config_activations(&r->config)));
    zero_model_chunk_logits(&r->model, zero_device_logits(r->config.device));
    ZERO_TRY(zero_plan_machine_fill(r));
    int n = r->request.n_ranks, nodes = (int)c->fake_nodes;
    ZERO_INVALID_IF(nodes > n, "--fake-nodes %d: there are only %d ranks", nodes, n);
    ZERO_INVALID_IF(
        c->plan.node_parameters && nodes == 0,
        "--node-parameters without --fake-nodes: a plan then gives each rank, or "
        "TP group, a node of its own, so none that shard together share memory; "
        "give --fake-nodes K for K nodes");
    /* Without --fake-nodes every rank has its own node, as in the paper; or every TP
     * group. */
    if (nodes == 0) nodes = c->tp.across_nodes ? n : n / zero_tp_ranks(&c->tp);
    ZERO_TRY(zero_layout_init_blocks(&r->layout, n, nodes));
    ZERO_TRY(zero_tp_check_nodes(&c->tp, &r->layout));
    ZERO_TRY(zero_tp_find_place(&c->tp, zero_plan_stages(&c->plan), &r->layout,
                                r->request.rank, &r->place));
    r->is_auto = zero_same_text(c->collectives, "auto");
    if (r->is_auto)
        r->collectives = zero_algorithm_choose(&r->layout, &r->why);
    else
        ZERO_INVALID_IF(!zero_algorithm_find(c->collectives, &r->collectives),
                        "--collectives %s: no such algorithm", c->collectives);
    ZERO_TRY(zero_tp_cut(&r->config.tp, &r->model, r->request.rank, &r->made, &r->part));
    return ZERO_OK;
}

static zero_status make_stages(zero_plan_report *r)
{
    int first = r->request.all_stages ? 0 : (int)r->config.plan.stage;
    int n = r->request.all_stages ? ZERO_STAGE_COUNT : 1;
    ZERO_TRY(zero_new(&r->stages, n, "stages"));
    r->n = n;
    for (int k = 0; k < n; k++) ZERO_TRY(zero_plan_stage_make(r, first + k, &r->stages[k]));
    ZERO_TRY(check_batches(r));
    return has_pipelines(r) ? make_pipelines(r) : ZERO_OK;
}

zero_status zero_plan_report_open(zero_plan_report *report,
                                  const zero_plan_request *request)
{
    *report = (zero_plan_report){.request = *request, .config = request->config};
    zero_status st = open(report);
    if (st != ZERO_OK) zero_plan_report_destroy(report);
    return st;
}

zero_status zero_plan_report_make(zero_plan_report *report,
                                  const zero_plan_request *request)
{
    ZERO_TRY(zero_plan_report_open(report, request));
    zero_status st = make_stages(report);
    if (st != ZERO_OK) zero_plan_report_destroy(report);
    return st;
}

int zero_plan_stage_number(const zero_plan_stage *stage)
{
    return stage->schedule.input.stage;
}

void zero_plan_report_destroy(zero_plan_report *report)
{
    for (int k = 0; k < report->n; k++) {
        zero_schedule_destroy(&report->stages[k].schedule);
        json_decref(report->stages[k].facts);
        free(report->stages[k].peers);
    }
    free(report->stages);
    for (int k = 0; k < ZERO_PIPELINE_KINDS; k++)
        zero_pipeline_destroy(&report->pipelines[k].pipeline);
    zero_tp_place_destroy(&report->place);
    zero_layout_destroy(&report->layout);
    zero_model_destroy(&report->made);
    zero_model_destroy(&report->model);
    *report = (zero_plan_report){0};
}
