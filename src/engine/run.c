#include "base/clock.h"
#include "comm/watch.h"
#include "engine/tell.h"
#include "math/threads.h"
#include "state/run_memory.h"

zero_execute *const zero_executes[ZERO_OP_KINDS] = {
    [ZERO_OP_LOAD] = zero_run_load,
    [ZERO_OP_GATHER] = zero_run_exchange,
    [ZERO_OP_GATHER_WAIT] = zero_run_exchange_wait,
    [ZERO_OP_FORWARD] = zero_run_pass,
    [ZERO_OP_RECOMPUTE] = zero_run_pass,
    [ZERO_OP_BACKWARD] = zero_run_pass,
    [ZERO_OP_JOIN] = zero_run_join,
    [ZERO_OP_JOIN_WAIT] = zero_run_exchange_wait,
    [ZERO_OP_KEEP] = zero_run_keep,
    [ZERO_OP_COLLECT] = zero_run_collect,
    [ZERO_OP_COLLECT_WAIT] = zero_run_exchange_wait,
    [ZERO_OP_RELEASE] = zero_run_release,
    [ZERO_OP_ROUND] = zero_run_round,
    [ZERO_OP_ACCUMULATE] = zero_run_accumulate,
    [ZERO_OP_REDUCE] = zero_run_exchange,
    [ZERO_OP_REDUCE_WAIT] = zero_run_exchange_wait,
    [ZERO_OP_ALL_REDUCE] = zero_run_all_reduce,
    [ZERO_OP_ALL_REDUCE_WAIT] = zero_run_exchange_wait,
    [ZERO_OP_SEND] = zero_run_message,
    [ZERO_OP_SEND_WAIT] = zero_run_exchange_wait,
    [ZERO_OP_RECEIVE] = zero_run_message,
    [ZERO_OP_RECEIVE_WAIT] = zero_run_exchange_wait,
    [ZERO_OP_LOSS] = zero_run_loss,
    [ZERO_OP_NORM] = zero_run_norm,
    [ZERO_OP_OVERFLOW] = zero_run_overflow,
    [ZERO_OP_VERIFY] = zero_run_verify,
    [ZERO_OP_COMPARE] = zero_run_compare,
    [ZERO_OP_UPDATE] = zero_run_update,
    [ZERO_OP_RECORD] = zero_run_record,
    [ZERO_OP_FETCH_GRAD] = zero_run_fetch_grad,
    [ZERO_OP_STORE_PARAM] = zero_run_store_param,
    [ZERO_OP_PUBLISH] = zero_run_copy,
    [ZERO_OP_DELAY] = zero_run_copy,
    [ZERO_OP_FETCH] = zero_run_transfer,
    [ZERO_OP_FETCH_WAIT] = zero_run_transfer_wait,
    [ZERO_OP_STORE] = zero_run_transfer,
    [ZERO_OP_STORE_WAIT] = zero_run_transfer_wait,
    [ZERO_OP_FETCH_PARAM] = zero_run_transfer,
    [ZERO_OP_FETCH_PARAM_WAIT] = zero_run_transfer_wait,
    [ZERO_OP_SAVE] = zero_run_transfer,
    [ZERO_OP_SAVE_WAIT] = zero_run_transfer_wait,
    [ZERO_OP_RESTORE] = zero_run_transfer,
    [ZERO_OP_RESTORE_WAIT] = zero_run_transfer_wait,
};

static zero_batch make_batch(const zero_plan_input *plan, const zero_run_input *in,
                             int n_ranks)
{
    if (in->program == ZERO_PROGRAM_GENERATE)
        return (zero_batch){.B = 1, .T = in->T, .inputs = in->prompt, .room = plan->seq};
    if (in->program == ZERO_PROGRAM_TOKEN)
        return (zero_batch){.B = plan->texts,
                            .T = 1,
                            .inputs = in->prompt,
                            .past = in->past,
                            .room = plan->seq};
    int64_t positions = zero_walk_positions(in, plan->micro_batch * plan->seq *
                                                    plan->accumulation * n_ranks);
    return (zero_batch){.B = plan->micro_batch,
                        .T = plan->seq,
                        .step = in->step,
                        .loss_seed = (float)(in->loss_scale / (double)positions)};
}

/* Small messages of all groups so far. */
static zero_traffic control_of(const zero_runner *r)
{
    zero_traffic sum = {0};
    for (int k = 0; k < ZERO_FAMILY_PARTS; k++) {
        const zero_comm *group = r->groups[k];
        bool is_again = (k == ZERO_DATA_GROUP && group == r->comm) ||
                        (k == ZERO_SHARD_GROUP && group == r->data);
        if (group && !is_again) zero_traffic_add(&sum, 1, &group->traffic[ZERO_CONTROL]);
    }
    return sum;
}

/* `lazy`, `delayed`: the first program with updates makes those of the last step. */
static zero_pending_update take_update(zero_runner *r, const zero_run_input *in)
{
    zero_pending_update update = r->pending;
    bool updates = in->program == ZERO_PROGRAM_STEP || in->program == ZERO_PROGRAM_EPILOGUE;
    if (!updates) return (zero_pending_update){.is_due = false};
    r->pending.is_due = false;
    if (in->program == ZERO_PROGRAM_STEP &&
        r->schedule->input.offload == ZERO_OFFLOAD_BACKWARD)
        update = zero_run_agreed_update(in, 0.0);
    return update;
}

static void note(zero_runner *r, int buffer)
{
    if (buffer == ZERO_NO_BUFFER) return;
    zero_life *touched = &r->touched[buffer];
    if (touched->first < 0 || r->at < touched->first) touched->first = r->at;
    if (r->at > touched->last) touched->last = r->at;
}

void *zero_use(const zero_walk *w, int buffer)
{
    note(w->r, buffer);
    return zero_runner_buffer(w->r, buffer);
}

void *zero_use_element(const zero_walk *w, int buffer, int64_t i)
{
    note(w->r, buffer);
    return zero_runner_element(w->r, buffer, i);
}

/* Executes the instruction r->at. */
static zero_status execute_one(zero_walk *w, const zero_instruction *i)
{
    zero_runner *r = w->r;
    bool is_told = r->told && w->in->program == ZERO_PROGRAM_STEP && !w->in->finds_origin;
    zero_told *told = is_told ? &r->told[r->at] : NULL;
    if (r->times.watch) zero_device_times_next(&r->times, i);
    zero_lifetimes_change(r, i, false);
    if (told) zero_tell_before(w, i, told);
    ZERO_TRY(zero_executes[i->op](w, i));
    if (told) zero_tell_after(w, i, told);
    /* Generated logits outlive their program: the caller reads them. */
    if (!zero_program_generates(w->in->program)) zero_lifetimes_change(r, i, true);
    return ZERO_OK;
}

/* Sets the walk's status. */
static void walk_all(void *arg)
{
    zero_walk *w = arg;
    zero_runner *r = w->r;
    const zero_program_kind kind = w->in->program;
    const zero_program *p = &r->schedule->programs[kind];
    zero_trace *trace = w->in->finds_origin ? NULL : r->trace;
    double start = zero_clock_seconds();
    r->times.program = kind;
    for (r->at = 0; r->at < p->length; r->at++) {
        const zero_instruction *i = &p->code[r->at];
        double polled = r->polled, streamed = r->streamed, held = r->profile.held;
        if (zero_run_was_ahead(w, i)) continue;
        w->status = execute_one(w, i);
        if (w->status != ZERO_OK) {
            zero_trace_note_failure(trace, kind, r->at, start);
            return;
        }
        double end = zero_clock_seconds();
        double own = end - start - (r->streamed - streamed) - (r->profile.held - held),
               polls = r->polled - polled;
        /* On a device with a stopwatch the host only queues: there seconds come later
         * (device_times.h). */
        if (r->times.watch) own = polls = 0.0;
        zero_profile_add(&r->profile, kind, i, (zero_profile_entry){1, own, polls});
        zero_trace_note(trace, kind, r->at, false, start, end);
        start = end;
    }
    if (r->times.watch) zero_device_times_end(&r->times);
}

zero_status zero_runner_run(zero_runner *r, const zero_run_input *input,
                            zero_run_output *output)
{
    const zero_schedule *s = r->schedule;
    *output = (zero_run_output){.origin.at = -1, .undefined.at = -1, .miscomputed.at = -1};
    zero_walk w = {.r = r, .in = input, .out = output, .plan = &s->input};
    w.update = take_update(r, input);
    if (r->link.memory && s->input.offload == ZERO_OFFLOAD_LAZY)
        w.begin = zero_link_place(&r->link);
    w.batch = make_batch(w.plan, input, r->data->size);
    if (input->finds_origin) w.origin = &output->origin;
    r->exact_squares = (zero_exact){0};
    /* A search for the origin meets the numbers that the first step met. */
    if (input->program == ZERO_PROGRAM_STEP && (w.origin || !r->units_are_checked))
        w.undefined = &output->undefined;
    const int period = s->input.check_compute;
    if (input->program == ZERO_PROGRAM_STEP && period > 0 && !w.origin &&
        (input->step + 1) % period == 0)
        w.miscomputed = &output->miscomputed;
    zero_lifetimes_open(r, input->program);
    zero_traffic control = control_of(r);
    r->walk = &w;
    zero_watch_compute(r->comm, zero_program_name(input->program),
                       input->program == ZERO_PROGRAM_STEP ? input->step + 1 : 0);
    /* The host's threads wait for its calls, beside a device for updates. */
    zero_cpu_hold_threads(r->host_is_open ? &r->host : &r->math, walk_all, &w);
    zero_watch_compute(r->comm, NULL, 0);
    r->walk = NULL;
    ZERO_TRY(w.status);
    zero_traffic now = control_of(r);
    r->walks[input->program]++;
    r->updates[input->program] += w.update.is_due;
    zero_traffic_add(&r->control, 1, &now);
    zero_traffic_add(&r->control, -1, &control);
    if (input->program == ZERO_PROGRAM_STEP && output->verdict < ZERO_STEP_MISCOMPUTED)
        r->units_are_checked = true;
    return ZERO_OK;
}
