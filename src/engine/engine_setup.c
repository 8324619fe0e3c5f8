/* Opening and closing an engine. */

#include "comm/divide.h"
#include "comm/mpi_error.h"
#include "engine/engine.h"
#include "plan/plan.h"
#include "sharding/compile.h"

zero_plan_input zero_engine_place(zero_plan_input plan, const zero_model *model,
                                  zero_comm *comm)
{
    const zero_comm *data = zero_comm_data(comm), *tp = zero_comm_tp(comm),
                    *pipe = zero_comm_pipe(comm);
    plan.model = model;
    plan.seq = model->seq;
    plan.activations = zero_model_activations(model);
    plan.n_ranks = data->size;
    plan.rank = data->rank;
    plan.layout = &data->layout;
    plan.tp_layout = tp ? &tp->layout : NULL;
    plan.pp_layout = pipe ? &pipe->layout : NULL;
    plan.pp = pipe ? pipe->size : 1;
    plan.pp_stage = pipe ? pipe->rank : 0;
    plan.world_layout = &comm->layout;
    return plan;
}

/* Refuses a run that the system's out-of-memory killer would end. */
static zero_status check_bytes(const zero_engine *e, size_t bytes, const char *at_least)
{
    double needed = (double)bytes, limit = (double)e->spec.memory_limit;
    if (limit <= 0.0 || needed <= limit) return ZERO_OK;
    ZERO_FAIL_IF(e->spec.plan.forward_only, ZERO_ERR_NOMEM,
                 "the model needs %s%.1f MiB per rank, but %.1f MiB are available: use "
                 "more ranks and a higher --stage",
                 at_least, needed / 0x1p20, limit / 0x1p20);
    return zero_fail(
        ZERO_ERR_NOMEM,
        "the plan needs %s%.1f MiB per rank, but %.1f MiB are available: use more nodes, a "
        "smaller --micro-batch or --seq, --recompute, a higher --stage, or a smaller model",
        at_least, needed / 0x1p20, limit / 0x1p20);
}

static zero_status check_device(const zero_engine *e, size_t bytes, const char *at_least)
{
    size_t limit = e->spec.device_limit;
    ZERO_FAIL_IF(
        !(limit == 0 || bytes <= limit), ZERO_ERR_NOMEM,
        "the plan needs %s%.1f MiB of the device's memory per rank, but %.1f MiB are "
        "available: use more ranks with a device each, a smaller --micro-batch or --seq, "
        "--recompute, a higher --stage, or a smaller model",
        at_least, (double)bytes / 0x1p20, (double)limit / 0x1p20);
    return ZERO_OK;
}

static zero_status check_memory(const zero_engine *e)
{
    ZERO_TRY(check_device(e, zero_plan_device_needed(&e->schedule), ""));
    return check_bytes(e, zero_plan_needed(&e->schedule), "");
}

static zero_status init_local(zero_engine *e, const zero_engine_spec *spec, zero_comm *comm)
{
    const zero_comm *data = zero_comm_data(comm), *tp = zero_comm_tp(comm);
    const zero_share *share = &spec->plan.model->share;
    ZERO_INVALID_IF(spec->plan.n_ranks != data->size || spec->plan.rank != data->rank,
                    "a plan for rank %d of %d cannot run on rank %d of %d", spec->plan.rank,
                    spec->plan.n_ranks, data->rank, data->size);
    ZERO_INVALID_IF(share->ranks != (tp ? tp->size : 1) ||
                        share->rank != (tp ? tp->rank : 0),
                    "part %d of %d of a model cannot run on rank %d of a TP group of %d",
                    share->rank, share->ranks, tp ? tp->rank : 0, tp ? tp->size : 1);
    const zero_comm *pipe = zero_comm_pipe(comm);
    const int stages = pipe ? pipe->size : 1, stage = pipe ? pipe->rank : 0;
    ZERO_INVALID_IF(zero_plan_stages(&spec->plan) != stages || spec->plan.pp_stage != stage,
                    "a plan of pipeline stage %d of %d cannot run on stage %d of %d",
                    spec->plan.pp_stage, zero_plan_stages(&spec->plan), stage, stages);
    /* The plan's shard groups must be those into which `comm` was divided. */
    const zero_comm *shard = zero_comm_shard(comm);
    int ranks = spec->plan.shard_ranks > 0 ? spec->plan.shard_ranks : spec->plan.n_ranks;
    ZERO_INVALID_IF(ranks != shard->size,
                    "a plan that shards over %d ranks cannot run on shard groups of %d",
                    ranks, shard->size);
    e->spec = *spec;
    e->loss_scale = zero_loss_scale_init(spec->plan.type);
    /* A plan of millions of instructions takes minutes to compile: if its model
     * states alone are too large, it is refused before. */
    zero_plan_bound least;
    ZERO_TRY(zero_plan_least(&e->spec.plan, &least));
    /* Compiling finds the exact bytes. */
    if (least.instructions > ZERO_PLAN_QUICK) {
        ZERO_TRY(check_device(e, least.device_bytes, "at least "));
        ZERO_TRY(check_bytes(e, least.bytes, "at least "));
    }
    ZERO_TRY(zero_schedule_compile(&e->schedule, &spec->plan));
    ZERO_TRY(check_memory(e));
    return zero_new(&e->eval_losses, zero_engine_eval_microbatches(e) + 1,
                    "losses of microbatches");
}

static zero_status init_weights(zero_engine *e)
{
    zero_drawn_weights drawn = {e->schedule.model, e->spec.seed};
    const zero_weights random = zero_weights_drawn(&drawn), *given = e->spec.weights;
    e->spec.weights = NULL; /* borrowed until here */
    if (e->spec.awaits_states) return ZERO_OK;
    return zero_engine_set_weights(e, given ? given : &random);
}

static zero_status compile_as(zero_engine *e, zero_plan_input plan)
{
    zero_schedule_destroy(&e->schedule);
    ZERO_TRY(zero_schedule_compile(&e->schedule, &plan));
    return check_memory(e);
}

static void end_sharing(zero_engine *e)
{
    zero_window_destroy(&e->window);
    zero_window_destroy(&e->tp_window);
}

static zero_status share_memory(zero_engine *e, zero_comm *comm)
{
    zero_status st = zero_runner_share(&e->schedule, comm, &e->window, &e->tp_window);
    if (st != ZERO_ERR_ENV || !e->spec.may_use_p2p) return st;
    zero_print(e->why_p2p, "%s", zero_last_error());
    end_sharing(e);
    zero_plan_input plan = e->schedule.input;
    plan.collectives = ZERO_ALGORITHM_P2P;
    plan.ipc = 0;
    return zero_agree(comm, compile_as(e, plan));
}

static zero_status open_runner(zero_engine *e, zero_comm *comm)
{
    const zero_engine_spec *spec = &e->spec;
    zero_runner_place place = {.backend = spec->backend,
                               .device = spec->device,
                               .bits = spec->bits,
                               .directory = spec->directory,
                               .window = &e->window,
                               .tp_window = &e->tp_window};
    zero_status st = zero_runner_init(&e->runner, &e->schedule, &place, comm);
    const zero_plan_input *plan = &e->schedule.input;
    if (st != ZERO_ERR_UNSUPPORTED || (!plan->ipc && !plan->device_messages)) return st;
    ZERO_FAIL_IF(!spec->may_stage, ZERO_ERR_ENV,
                 "--device-exchange %s: %s; use --device-exchange auto or staged",
                 zero_plan_device_exchange(plan), zero_last_error());
    zero_print(e->why_staged, "%s", zero_last_error());
    end_sharing(e);
    zero_plan_input staged = *plan;
    staged.ipc = 0;
    staged.device_messages = 0;
    ZERO_TRY(zero_agree(comm, compile_as(e, staged)));
    ZERO_TRY(share_memory(e, comm));
    return zero_runner_init(&e->runner, &e->schedule, &place, comm);
}

zero_status zero_engine_init(zero_engine *e, const zero_engine_spec *spec, zero_comm *comm)
{
    *e = (zero_engine){0};
    zero_status st = zero_agree(comm, init_local(e, spec, comm));
    if (st == ZERO_OK) st = share_memory(e, comm);
    if (st == ZERO_OK) st = open_runner(e, comm);
    if (st == ZERO_OK) st = init_weights(e);
    if (st != ZERO_OK) zero_engine_destroy(e);
    return st;
}

void zero_engine_destroy(zero_engine *e)
{
    /* Nobody will see an update that was left to the next step. */
    if (e->runner.pending.is_due) e->in_flight = false;
    /* Collectives in flight must not outlive their buffers; a failure has no one to
     * tell. */
    if (e->in_flight && zero_mpi_is_up() && zero_engine_settle(e) != ZERO_OK)
        e->in_flight = false;
    zero_runner_destroy(&e->runner);
    end_sharing(e);
    zero_schedule_destroy(&e->schedule);
    free(e->eval_losses);
    *e = (zero_engine){0};
}

void zero_engine_record(zero_engine *e, zero_trace *trace)
{
    zero_runner *r = &e->runner;
    r->trace = trace;
    r->tier.ring = trace && trace->transfers.ring ? &trace->transfers : NULL;
    if (trace) trace->comm = r->comm;
    zero_comm_spans_attach(r->comm, trace ? &trace->flights : NULL);
}
