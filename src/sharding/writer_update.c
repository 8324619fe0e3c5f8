/* The end of a step: NORM, OVERFLOW, checks, UPDATE; and GATHER, which makes updated
 * parameters whole. */
#include "sharding/checks.h"
#include "sharding/holdings.h"
#include "sharding/schedule_device.h"
#include "sharding/schedule_exchange.h"
#include "sharding/update.h"
#include "sharding/writer.h"

/* ---- parameters ---- */

/* A gather may end in the next program: then its staging lives for the whole run. With a
 * device it is as long as the group, and lives no longer than it must. */
static int gather_staging(zero_writer *w, int g)
{
    zero_schedule *s = w->s;
    zero_group_state *state = &s->groups[g];
    bool is_passing = s->input.device && !zero_is_published(s, g);
    zero_buffer b = {
        .class = ZERO_CLASS_BUCKETS,
        .program = is_passing ? w->program : ZERO_PROGRAM_ALL,
        .space = zero_schedule_space(s, ZERO_CLASS_BUCKETS),
        .bytes = zero_exchange_staging(s, ZERO_OP_GATHER, g,
                                       zero_exchange_collectives(s, ZERO_OP_GATHER, g))};
    if (b.bytes == 0) return ZERO_NO_BUFFER;
    if (is_passing) return w->mirrors[g] = zero_schedule_add_buffer(s, b);
    if (state->gather_staging == ZERO_NO_BUFFER)
        state->gather_staging = zero_schedule_add_buffer(s, b);
    return state->gather_staging;
}

void zero_write_gather(zero_writer *w, int g, int in, int buffer)
{
    zero_exchange *x = &w->groups[g].gather;
    if (!x->is_used) *x = (zero_exchange){.is_used = true, .in = in, .out = buffer};
    int staging = gather_staging(w, g);
    zero_write_group(w, ZERO_OP_GATHER, g, in, buffer)->staging = staging;
    bool is_passing = in != ZERO_NO_BUFFER && w->s->buffers[in].program == w->program;
    w->sent[g] = is_passing ? in : ZERO_NO_BUFFER;
    if (w->in->serial) zero_write_gather_wait(w, g, buffer);
}

void zero_write_gather_wait(zero_writer *w, int g, int buffer)
{
    /* What it reads lives until here. */
    zero_write_group(w, ZERO_OP_GATHER_WAIT, g, w->sent[g], buffer)->staging =
        w->mirrors[g];
    w->sent[g] = w->mirrors[g] = ZERO_NO_BUFFER;
}

void zero_write_await(zero_writer *w, int g)
{
    if (!w->arrived[g]) zero_write_gather_wait(w, g, w->param[g]);
    w->arrived[g] = true;
}

/* ---- updates ---- */

static void norm(zero_writer *w, int g)
{
    const zero_group_state *state = &w->groups[g];
    bool on_host = zero_plan_updates_beside(w->in);
    zero_instruction *i = zero_write_group(w, ZERO_OP_NORM, g, ZERO_NO_BUFFER,
                                           on_host ? ZERO_NO_BUFFER : w->s->squares);
    i->on_host = on_host;
    i->grad[0] = on_host ? state->host_grad : state->grad;
    /* All replicas have the same squares: those of the first one count. */
    int64_t n = state->partition.n_params;
    i->range = w->s->shard.replica > 0
                   ? (zero_range){n, n}
                   : zero_partition_shard(&state->partition, w->s->shard.rank);
    w->has_norm[g] = true;
}

void zero_write_early_norm(zero_writer *w)
{
    const zero_plan_input *in = w->in;
    int g = w->unsquared;
    bool is_gathered = w->path->summed != NULL;
    bool is_early =
        in->offload == ZERO_OFFLOAD_OFF && !in->device && !in->serial && !is_gathered;
    if (g >= 0 && is_early) norm(w, g);
    w->unsquared = -1;
}

/* UPDATE or RECORD, with the states of group g. */
static zero_instruction *write_states(zero_writer *w, zero_op op, int g)
{
    const zero_group_state *state = &w->groups[g];
    zero_instruction *i = zero_write_group(w, op, g, ZERO_NO_BUFFER, ZERO_NO_BUFFER);
    bool is_beside = zero_plan_updates_beside(w->in);
    bool is_exact = w->in->type == ZERO_FP32;
    i->param[0] = !is_beside ? state->param : is_exact ? ZERO_NO_BUFFER : state->host_param;
    i->master = state->master;
    memcpy(i->state, state->state, sizeof i->state);
    i->range = zero_states_held(w->s, g);
    return i;
}

/* Beside a device an update may run ahead of the walk, so its room is its own, and begins
 * with the scratch of the host's threads. */
static int update_room(zero_writer *w, int g, zero_range range)
{
    const bool on_host = zero_plan_updates_beside(w->in);
    const int64_t scratch = zero_math_scratch() * zero_max(w->in->threads, 1);
    int64_t most = zero_update_room(w->in->optimizer, w->model, g, range);
    if (most == 0) return ZERO_NO_BUFFER;
    if (!on_host)
        return zero_write_buffer(w, ZERO_CLASS_WORKSPACE, ZERO_SPACE_OWN,
                                 (size_t)most * sizeof(float));
    for (int k = 0; w->s->update_room == ZERO_NO_BUFFER && k < w->model->n_groups; k++)
        most = zero_max(most, zero_update_room(w->in->optimizer, w->model, k,
                                               zero_states_held(w->s, k)));
    if (w->s->update_room == ZERO_NO_BUFFER)
        w->s->update_room = zero_schedule_hold(w->s, ZERO_CLASS_WORKSPACE, ZERO_SPACE_HOST,
                                               (size_t)(most + scratch) * sizeof(float));
    return w->s->update_room;
}

zero_instruction *zero_write_update_block(zero_writer *w, int g)
{
    const zero_group_state *state = &w->groups[g];
    bool is_late = w->in->offload == ZERO_OFFLOAD_DELAYED;
    zero_instruction *i = write_states(w, ZERO_OP_UPDATE, g);
    i->on_host = zero_plan_updates_beside(w->in);
    i->work = update_room(w, g, i->range);
    i->grad[0] = is_late ? state->late_grad : i->on_host ? state->host_grad : state->grad;
    if (is_late && !i->on_host) i->param[0] = state->late_param;
    return i;
}

/* Copies elements whose states this rank holds; beside a device one side is the host's. */
static zero_instruction *copy_held(zero_writer *w, zero_op op, int g, int from, int to,
                                   int host)
{
    zero_instruction *i = zero_write_group(w, op, g, from, to);
    i->host = host;
    i->range = zero_states_held(w->s, g);
    return i;
}

/* `after`: an instruction of the walk, as for the UPDATE that it follows in the stream. */
static void store_param(zero_writer *w, int g, int after)
{
    const zero_group_state *state = &w->groups[g];
    copy_held(w, ZERO_OP_STORE_PARAM, g, ZERO_NO_BUFFER, state->param, state->host_param)
        ->after = after;
}

void zero_write_update_of(zero_writer *w, int g)
{
    const zero_group_state *state = &w->groups[g];
    if (w->in->offload == ZERO_OFFLOAD_OFF)
        zero_write_update_block(w, g);
    else if (w->in->offload == ZERO_OFFLOAD_DELAYED) {
        /* `delayed`: the last step's GATHER may be in flight, and writes where PUBLISH and
         * STORE_PARAM write. */
        if (!w->arrived[g]) zero_write_gather_wait(w, g, state->param);
        w->arrived[g] = true;
        if (zero_plan_updates_beside(w->in))
            store_param(w, g, zero_write_last(w));
        else
            copy_held(w, ZERO_OP_PUBLISH, g, state->late_param, state->param,
                      ZERO_NO_BUFFER);
    } else
        zero_write_stream(w, g);
    bool is_in_tier =
        w->in->offload != ZERO_OFFLOAD_OFF && w->in->offload != ZERO_OFFLOAD_DELAYED;
    if (is_in_tier && zero_plan_updates_beside(w->in))
        store_param(w, g, zero_write_after(w, g));
    if (state->records != ZERO_NO_BUFFER)
        write_states(w, ZERO_OP_RECORD, g)->buffer = state->records;
    if (zero_is_published(w->s, g)) zero_write_gather(w, g, state->param, state->param);
}

static void update_all(zero_writer *w)
{
    for (int k = 0; k < w->n_order; k++) zero_write_update_of(w, w->order[k]);
}

void zero_write_late_update(zero_writer *w)
{
    if (w->in->offload != ZERO_OFFLOAD_DELAYED) return;
    zero_write_whole_stream(w);
    zero_write_finish_stream(w);
    update_all(w);
}

void zero_write_gradient_is_final(zero_writer *w, int g)
{
    const zero_group_state *state = &w->groups[g];
    if (zero_plan_updates_beside(w->in))
        copy_held(w, ZERO_OP_FETCH_GRAD, g, state->grad, ZERO_NO_BUFFER, state->host_grad);
    w->final_at[g] = zero_write_last(w);
}

void zero_write_update(zero_writer *w)
{
    int n_groups = w->model->n_groups;
    zero_offload place = w->in->offload;
    if (place == ZERO_OFFLOAD_BACKWARD) update_all(w);
    if (place == ZERO_OFFLOAD_DELAYED) zero_write_whole_stream(w);
    if (place != ZERO_OFFLOAD_OFF) zero_write_finish_stream(w);
    zero_write_loss(w);
    for (int g = 0; g < n_groups; g++)
        if (w->groups[g].is_here && !w->has_norm[g]) norm(w, g);
    zero_instruction *agree = zero_write(w, ZERO_OP_OVERFLOW);
    if (!zero_plan_updates_beside(w->in)) { /* else the host has them already */
        agree->in = w->s->squares;
        agree->host = w->s->squares_host;
    }
    /* Parameters are whole now, on all ranks, and nothing of this step has changed them;
     * with `backward` it has. */
    if (place != ZERO_OFFLOAD_BACKWARD && place != ZERO_OFFLOAD_DELAYED) {
        if (w->in->check_memory) zero_write(w, ZERO_OP_VERIFY)->buffer = w->s->check;
        if (zero_is_checked(w->s)) zero_write(w, ZERO_OP_COMPARE)->buffer = w->s->check;
    }
    w->after = zero_write_last(w);
    if (place != ZERO_OFFLOAD_LAZY && place != ZERO_OFFLOAD_BACKWARD) update_all(w);
    bool is_beside = zero_plan_updates_beside(w->in);
    for (int g = 0; place == ZERO_OFFLOAD_DELAYED && g < n_groups; g++) {
        const zero_group_state *state = &w->groups[g];
        if (!state->is_here) continue;
        copy_held(w, ZERO_OP_DELAY, g, is_beside ? state->host_grad : state->grad,
                  state->late_grad, ZERO_NO_BUFFER);
    }
    if (place == ZERO_OFFLOAD_END) zero_write_finish_stream(w);
    if (place != ZERO_OFFLOAD_LAZY) zero_write_copies(w);
}
