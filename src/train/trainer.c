/* zero/train.h: opening, closing, and steps; trainer_state.c has the rest. */
#include "train/trainer.h"

#include "sharding/update.h"
#include "train/devices.h"

/* ---- may it be used ---- */

zero_status zero_trainer_check(const zero_trainer *t)
{
    ZERO_INVALID_IF(!t, "the trainer is NULL: open one with zero_trainer_open()");
    ZERO_TRY(zero_comm_check(t->comm));
    ZERO_INVALID_IF(
        t->engine.schedule.model->units != t->units,
        "the trainer's model was destroyed, or described anew: close the trainer before");
    return ZERO_OK;
}

int64_t zero_trainer_samples(const zero_trainer *t)
{
    const zero_plan_input *plan = &t->engine.schedule.input;
    return plan->n_ranks * plan->accumulation * plan->micro_batch;
}

zero_status zero_trainer_check_step(const zero_trainer *t, int64_t step)
{
    /* A manifest counts no more samples. */
    int64_t most = (INT64_C(1) << 62) / zero_trainer_samples(t);
    ZERO_INVALID_IF(!(step >= 0 && step <= most),
                    "step %" PRId64 ": expected 0 to %" PRId64, step, most);
    return ZERO_OK;
}

/* ---- open and close ---- */

zero_volume zero_trainer_moved(const zero_comm *comm)
{
    zero_traffic sum = {0};
    for (int kind = 0; kind < ZERO_COLLECTIVE_KINDS; kind++)
        zero_traffic_add(&sum, 1, &comm->traffic[kind]);
    return zero_traffic_total(&sum);
}

zero_status zero_trainer_open(const zero_trainer_spec *spec, zero_comm *comm,
                              zero_trainer **trainer)
{
    zero_engine_spec e;
    ZERO_TRY(zero_comm_check(comm));
    zero_status st = trainer
                         ? zero_trainer_read_spec(spec, comm, &e)
                         : zero_fail(ZERO_ERR_INVALID,
                                     "zero_trainer_open() without a place for the trainer");
    ZERO_TRY(zero_agree(comm, st));
    ZERO_TRY(zero_trainer_compare(&e, comm));
    /* The number of this rank's device. */
    char where[128];
    zero_device_place found;
    const char *device = zero_trainer_device(spec);
    zero_print(where, "device '%s'", device);
    ZERO_TRY(zero_devices_place(device, where, comm, &found));
    e.device = found.device;
    ZERO_FREED zero_trainer *t = NULL;
    ZERO_TRY(zero_agree(comm, zero_new(&t, 1, "a trainer")));
    *t = (zero_trainer){
        .comm = comm, .at_open = zero_trainer_moved(comm), .units = e.plan.model->units};
    ZERO_TRY(zero_engine_init(&t->engine, &e, comm));
    zero_comm_keep(comm);
    ZERO_GIVE(trainer, t);
    return ZERO_OK;
}

void zero_trainer_close(zero_trainer **trainer)
{
    if (!trainer || !*trainer) return;
    zero_trainer *t = *trainer;
    zero_comm *comm = t->comm;
    *trainer = NULL;
    zero_engine_destroy(&t->engine);
    free(t);
    zero_comm_release(comm);
}

/* ---- steps ---- */

zero_status zero_trainer_publish(zero_trainer *t)
{
    if (!t->is_written) return ZERO_OK;
    t->is_written = false;
    return zero_engine_publish(&t->engine);
}

static zero_status check_source(const zero_source *source, const void *result)
{
    ZERO_INVALID_IF(!source, "the source is NULL: expected one with a function sample");
    ZERO_INVALID_IF(!source->sample, "a source without its function sample");
    ZERO_INVALID_IF(!result, "the place for the result is NULL");
    return ZERO_OK;
}

static zero_status check_input(const zero_trainer *t, const zero_step_input *in)
{
    ZERO_INVALID_IF(!in, "the step's input is NULL: expected its learning rate and so on");
    ZERO_TRY(zero_trainer_check_step(t, in->step));
    zero_adamw h =
        zero_update_adamw(in->lr, in->beta1, in->beta2, in->eps, in->weight_decay);
    ZERO_TRY(zero_update_check(&h, in->clip));
    ZERO_INVALID_IF(
        t->engine.schedule.input.offload == ZERO_OFFLOAD_BACKWARD && in->clip != 0.0,
        "clip %g with offload_when \"backward\", which updates before the norm is "
        "known: expected 0",
        in->clip);
    return ZERO_OK;
}

typedef zero_status step_function(zero_engine *e, const zero_source *source,
                                  const zero_step_input *in, zero_run_output *out);

static zero_status take_step(zero_trainer *t, const zero_source *source,
                             const zero_step_input *input, step_function *step,
                             zero_step_result *result)
{
    zero_run_output out;
    ZERO_TRY(zero_trainer_check(t));
    ZERO_TRY(zero_trainer_publish(t));
    double loss_scale = (double)t->engine.loss_scale.scale;
    zero_status st = check_source(source, result);
    if (st == ZERO_OK) st = check_input(t, input);
    if (st != ZERO_OK) return zero_engine_refuse(&t->engine, st);
    ZERO_TRY(step(&t->engine, source, input, &out));
    *result = (zero_step_result){.loss = out.loss,
                                 .grad_norm = out.grad_norm,
                                 .loss_scale = loss_scale,
                                 .skipped = out.overflow};
    return ZERO_OK;
}

zero_status zero_trainer_step(zero_trainer *trainer, const zero_source *source,
                              const zero_step_input *input, zero_step_result *result)
{
    return take_step(trainer, source, input, zero_engine_step, result);
}

zero_status zero_trainer_compute(zero_trainer *trainer, const zero_source *source,
                                 int64_t step, zero_step_result *result)
{
    const zero_step_input input = {.step = step, .eps = 1.0};
    return take_step(trainer, source, &input, zero_engine_compute, result);
}

zero_status zero_trainer_evaluate(zero_trainer *trainer, const zero_source *source,
                                  double *loss)
{
    ZERO_TRY(zero_trainer_check(trainer));
    ZERO_TRY(zero_trainer_publish(trainer));
    ZERO_TRY(zero_agree(trainer->comm, check_source(source, loss)));
    return zero_engine_evaluate(&trainer->engine, source, loss);
}
