/* ROUND and ACCUMULATE, which make a step's gradient; LOSS, NORM, OVERFLOW and UPDATE,
 * which end the step. */

#include "engine/walk.h"
#include "nn/share.h"
#include "sharding/schedule_device.h"
#include "sharding/update.h"
#include "state/host_copies.h"
#include "state/records.h"
#include "state/replicas.h"

static void look_at_sum(zero_walk *w, const zero_instruction *i)
{
    if (w->origin)
        zero_origin_look_at_sum(w->r, i, zero_walk_type(w, i->buffer),
                                zero_use_range(w, i, i->buffer), w->origin);
}

zero_status zero_run_round(zero_walk *w, const zero_instruction *i)
{
    w->r->backend->round(&w->r->math, zero_walk_type(w, i->buffer),
                         zero_range_len(i->range), zero_use_range(w, i, i->in),
                         zero_use_range(w, i, i->buffer));
    look_at_sum(w, i);
    return ZERO_OK;
}

zero_status zero_run_accumulate(zero_walk *w, const zero_instruction *i)
{
    w->r->backend->accumulate(&w->r->math, i->type, zero_range_len(i->range),
                              zero_use_range(w, i, i->sum), zero_use_range(w, i, i->in),
                              zero_use_range(w, i, i->buffer));
    look_at_sum(w, i);
    return ZERO_OK;
}

/* ---- the end of a step ---- */

/* The squares of this rank's shard. On a device all groups' sums are in one buffer. */
zero_status zero_run_norm(zero_walk *w, const zero_instruction *i)
{
    zero_runner *r = w->r;
    if (i->on_host) { /* the gradient has to arrive first */
        zero_link_wait(&r->link, r->grad_copies[i->group]);
        r->squares[i->group] = zero_gradient_squares(
            &zero_backend_cpu, &r->host, zero_walk_type(w, i->grad[0]),
            w->plan->model->groups[i->group].n_params, i->range,
            zero_use_range(w, i, i->grad[0]));
        return ZERO_OK;
    }
    if (zero_share_has_parts(&w->plan->model->share)) {
        /* A tensor that all ranks of a TP group have counts on the first of them alone. The
         * sum is exact, so it does not depend on how elements are dealt. */
        const zero_model *model = w->plan->model;
        zero_range part;
        zero_use(w, i->grad[0]); /* also where the range is empty */
        for (int t = -1; zero_next_part(model, i->group, i->range, &t, &part);)
            if (!zero_tensor_is_replicated(&model->tensors[t]) || model->share.rank == 0)
                r->backend->exact_squares(
                    &r->math, zero_walk_type(w, i->grad[0]), zero_range_len(part),
                    zero_use_element(w, i->grad[0], part.begin), &r->exact_squares);
        return ZERO_OK;
    }
    int64_t n_params = w->plan->model->groups[i->group].n_params;
    zero_type type = zero_walk_type(w, i->grad[0]);
    const void *grad = zero_use_range(w, i, i->grad[0]);
    if (r->link.memory)
        zero_gradient_sums(r->backend, &r->math, type, i->range, grad,
                           (double *)zero_use(w, i->buffer) +
                               r->schedule->groups[i->group].first_square);
    else
        r->squares[i->group] =
            zero_gradient_squares(r->backend, &r->math, type, n_params, i->range, grad);
    return ZERO_OK;
}

/* Here a step waits for all that the device computes. */
static void fetch_squares(zero_walk *w, const zero_instruction *i)
{
    zero_runner *r = w->r;
    const zero_schedule *s = r->schedule;
    if (i->host == ZERO_NO_BUFFER) return;
    const double *sums = zero_use(w, i->host);
    zero_link_fetch_now(&r->link, zero_use(w, i->host), zero_use(w, i->in),
                        s->buffers[i->in].bytes);
    if (!r->link.has_failed)
        memcpy(&r->changed, (const char *)sums + zero_schedule_changed_at(s),
               sizeof r->changed);
    for (int g = 0; g < w->plan->model->n_groups; g++)
        r->squares[g] =
            zero_gradient_span(w->plan->model->groups[g].n_params,
                               zero_partition_shard(&s->groups[g].partition, s->shard.rank),
                               sums + s->groups[g].first_square);
}

zero_pending_update zero_run_agreed_update(const zero_run_input *in, double norm)
{
    zero_pending_update update = {.is_due = !in->only_computes, .hyper = in->adamw};
    update.hyper.grad_scale = zero_update_grad_scale(norm, in->clip, in->loss_scale);
    return update;
}

/* *sum = the squares of all ranks' gradients. */
static zero_status add_squares(zero_runner *r, double *sum)
{
    int n_groups = r->schedule->model->n_groups;
    if (zero_share_has_parts(&r->schedule->model->share)) {
        ZERO_TRY(zero_comm_sum(r->comm, ZERO_EXACT_WORDS, r->exact_squares.word));
        *sum = zero_exact_value(&r->exact_squares);
        return ZERO_OK;
    }
    /* Other stages of a pipeline have the other groups. */
    for (int g = 0; g < n_groups; g++) {
        const int64_t n = r->schedule->model->groups[g].n_params;
        if (!r->schedule->groups[g].is_here)
            r->squares[g] = zero_gradient_span(n, (zero_range){n, n}, NULL);
    }
    ZERO_TRY(zero_comm_merge_spans(r->comm, n_groups, r->squares));
    *sum = 0.0;
    for (int g = 0; g < n_groups; g++) *sum += zero_tree_span_sum(&r->squares[g]);
    return ZERO_OK;
}

/* Squares of floats cannot overflow a double, so the norm is finite if and only if every
 * gradient is. A loss that is not finite has no gradient, whatever was computed. */
zero_status zero_run_overflow(zero_walk *w, const zero_instruction *i)
{
    zero_run_output *out = w->out;
    double squares;
    fetch_squares(w, i);
    ZERO_TRY(add_squares(w->r, &squares));
    out->grad_norm = sqrt(squares) / w->in->loss_scale;
    bool is_finite = isfinite(squares) && isfinite(out->loss);
    bool has_failed = w->r->tier.has_failed || w->r->link.has_failed;
    zero_step_verdict mine = has_failed                 ? ZERO_STEP_FAILED
                             : w->in->is_refused        ? ZERO_STEP_REFUSED
                             : w->r->changed > 0        ? ZERO_STEP_CORRUPTED
                             : out->undefined.at >= 0   ? ZERO_STEP_UNDEFINED
                             : out->miscomputed.at >= 0 ? ZERO_STEP_MISCOMPUTED
                             : !is_finite               ? ZERO_STEP_OVERFLOW
                                                        : ZERO_STEP_FINE;
    int64_t gravest;
    bool same;
    ZERO_TRY(zero_comm_vote(w->r->comm, mine, w->in->arguments, &gravest, &same));
    out->verdict = (zero_step_verdict)gravest;
    out->differs = !same;
    out->overflow = out->verdict != ZERO_STEP_FINE || out->differs;
    if (!out->overflow) {
        /* `lazy`, `delayed`: the next step makes this update, with this step's numbers. */
        zero_pending_update update = zero_run_agreed_update(w->in, out->grad_norm);
        switch (w->plan->offload) {
        case ZERO_OFFLOAD_BACKWARD: break; /* it has been made */
        case ZERO_OFFLOAD_LAZY:
        case ZERO_OFFLOAD_DELAYED: w->r->pending = update; break;
        default: w->update = update;
        }
    }
    return ZERO_OK;
}

/* The slot may hold another block's parameters where this one has padding, which is
 * zeros and is gathered, too. */
static void clear_padding(const zero_walk *w, const zero_instruction *i, char *param)
{
    const zero_schedule *s = w->r->schedule;
    int k = i->file - s->groups[i->group].first_block;
    size_t size = zero_type_size(s->input.type);
    zero_range all = zero_offload_range(s, i->group, k);
    int64_t end = zero_range_is_empty(i->range) ? all.begin : i->range.end;
    memset(param + (size_t)(end - all.begin) * size, 0, (size_t)(all.end - end) * size);
}

/* Where UPDATE notes parameters that were not their masters, rounded; NULL if it does
 * not look. */
static uint64_t *changes_of(const zero_walk *w, const zero_instruction *i)
{
    zero_runner *r = w->r;
    const zero_schedule *s = r->schedule;
    int period = zero_update_period(s);
    if (period == 0) return NULL;
    if (!r->link.memory || i->on_host) return &r->changed;
    char *words = zero_runner_buffer(r, s->squares);
    bool is_due = (w->in->step + i->group) % period == 0;
    return is_due ? (uint64_t *)(void *)(words + zero_schedule_changed_at(s)) : NULL;
}

zero_status zero_run_update(zero_walk *w, const zero_instruction *i)
{
    const zero_runner *r = w->r;
    if (!w->update.is_due || r->tier.has_failed) return ZERO_OK;
    zero_run_await_reader(w, i->group);
    if (i->on_host) zero_host_await_update(w->r, i->group);
    zero_update_state state = {.optimizer = w->plan->optimizer,
                               .how = {w->plan->muon_scale, w->plan->muon_type},
                               .room = zero_use(w, i->work),
                               .type = w->plan->type,
                               .grad = zero_use_range(w, i, i->grad[0]),
                               .param = zero_use_range(w, i, i->param[0]),
                               .master = zero_use_range(w, i, i->master),
                               .changed = changes_of(w, i)};
    for (int k = 0; k < ZERO_MOST_STATES; k++)
        state.state[k] = zero_use_range(w, i, i->state[k]);
    if (i->file != ZERO_NO_BUFFER) {
        /* The states of a block in its slot. */
        const zero_schedule *s = w->r->schedule;
        int k = i->file - s->groups[i->group].first_block;
        zero_slot_view view = zero_offload_view(s, i->group, k, zero_use(w, i->buffer));
        if (view.master) state.master = view.master;
        memcpy(state.state, view.state, sizeof state.state);
        if (view.param) {
            state.param = view.param;
            state.changed = NULL; /* the slot has what was there before */
            clear_padding(w, i, view.param);
        }
    }
    if (i->on_host && state.room) {
        w->r->host.scratch = state.room;
        state.room += zero_math_scratch() * zero_max(w->plan->threads, 1);
    }
    if (!state.master) { /* fp32: the parameter is its own master */
        state.master = state.param;
        state.param = NULL;
    }
    zero_update_apply(i->on_host ? &zero_backend_cpu : r->backend,
                      i->on_host ? &r->host : &r->math, w->plan->model, i->group, i->range,
                      &w->update.hyper, &state);
    return ZERO_OK;
}

/* ---- delayed updates ---- */

/* PUBLISH and DELAY: only if there was, or will be, an update. */
zero_status zero_run_copy(zero_walk *w, const zero_instruction *i)
{
    if (!(i->op == ZERO_OP_DELAY ? w->r->pending : w->update).is_due) return ZERO_OK;
    if (!w->r->link.memory) /* the host copies what the backend wrote */
        ZERO_TRY(w->r->backend->sync(&w->r->math));
    memcpy(zero_use_range(w, i, i->buffer), zero_use_range(w, i, i->in),
           zero_range_bytes(i->range, zero_walk_type(w, i->in)));
    return ZERO_OK;
}

/* ---- flipped bits ----
 *
 * VERIFY, COMPARE and RECORD: a step looks for flipped bits before its first UPDATE,
 * because that hides them. All ranks are between OVERFLOW and UPDATE then, so parameters
 * that lie once per node do not change. UPDATE itself looks at the parameters that it
 * overwrites. */

zero_status zero_name_step(int64_t step, zero_status st)
{
    if (st != ZERO_ERR_CORRUPTED) return st;
    return zero_fail(st, "step %" PRId64 ": %s", step + 1, zero_last_error());
}

zero_status zero_run_verify(zero_walk *w, ZERO_UNUSED const zero_instruction *i)
{
    return zero_name_step(w->in->step, zero_records_verify(w->r));
}

/* A step that overflows has no UPDATE, and a flipped bit may be why: all is compared
 * then. */
zero_status zero_run_compare(zero_walk *w, ZERO_UNUSED const zero_instruction *i)
{
    const zero_step_verdict verdict = w->out->verdict;
    bool has_gradient = verdict < ZERO_STEP_OVERFLOW; /* else it may be anything */
    /* The vote: ranks that were called with different steps disagree on what is due. */
    if (w->out->differs || verdict > ZERO_STEP_OVERFLOW) return ZERO_OK;
    if (has_gradient && !zero_is_compared(w->r->schedule)) return ZERO_OK;
    ZERO_TRY(zero_name_step(
        w->in->step, zero_replicas_compare_due(
                         w->r, has_gradient ? w->in->step : ZERO_ALL_STEPS, has_gradient)));
    w->r->compares++;
    return ZERO_OK;
}

/* Does nothing where UPDATE left the states as they are. A device's failure waits for the
 * next vote: the other ranks continue this step. */
zero_status zero_run_record(zero_walk *w, const zero_instruction *i)
{
    if (!w->update.is_due) return ZERO_OK;
    zero_status st = zero_records_take(w->r, i->group);
    return w->r->link.has_failed ? ZERO_OK : st;
}
