#include "sharding/writer.h"

#include "base/fail.h"
#include "base/number.h"
#include "sharding/checks.h"
#include "sharding/holdings.h"
#include "sharding/schedule_device.h"
#include "sharding/schedule_exchange.h"

/* ---- opening ---- */

/* All tables lie in one block of memory. */
static bool allocate(zero_writer *w)
{
    int **const of_units[] = {&w->out, &w->saved, &w->kept, &w->saved_file};
    int **const of_groups[] = {&w->param,       &w->piece, &w->sent,
                               &w->mirrors,     &w->grad,  &w->first_writer,
                               &w->last_writer, &w->order, &w->final_at};
    bool **const flags[] = {&w->arrived, &w->is_due, &w->has_norm};
    const size_t units = (size_t)w->model->n_units, groups = (size_t)w->model->n_groups;
    size_t blocks = 1;
    for (size_t g = 0; g < groups; g++) blocks += (size_t)w->groups[g].n_blocks;
    w->memory = calloc(blocks * sizeof *w->blocks.list + groups * sizeof *w->partial +
                           (ZERO_COUNT(of_units) * units + ZERO_COUNT(of_groups) * groups) *
                               sizeof(int) +
                           ZERO_COUNT(flags) * groups,
                       1);
    if (!w->memory) return false;
    w->blocks.list = w->memory;
    w->partial = (void *)(w->blocks.list + blocks);
    int *at = (int *)(w->partial + groups);
    for (int k = 0; k < ZERO_COUNT(of_units); k++, at += units) *of_units[k] = at;
    for (int k = 0; k < ZERO_COUNT(of_groups); k++, at += groups) *of_groups[k] = at;
    for (int k = 0; k < ZERO_COUNT(flags); k++) *flags[k] = (bool *)at + (size_t)k * groups;
    return true;
}

/* Parameters that the last step gathered may still be on their way. */
static void find_parameters(zero_writer *w)
{
    const zero_schedule *s = w->s;
    for (int g = 0; g < s->model->n_groups; g++) {
        bool is_whole = s->groups[g].param_held == ZERO_HOLD_WHOLE;
        w->param[g] = is_whole ? s->groups[g].param : ZERO_NO_BUFFER;
        w->piece[g] = s->groups[g].param;
        w->sent[g] = w->mirrors[g] = ZERO_NO_BUFFER;
        w->arrived[g] = !zero_is_published(s, g) || s->input.serial;
    }
}

/* Updates are made in the order in which the next forward pass needs the parameters, or in
 * that in which backward completes gradients. */
static void order_updates(zero_writer *w)
{
    const zero_model *model = w->model;
    bool backward = w->in->offload == ZERO_OFFLOAD_BACKWARD;
    for (int k = 0; k < model->n_units; k++) {
        int u = backward ? model->n_units - 1 - k : k;
        if (!zero_schedule_backs(w->s, u)) continue;
        for (int j = 0; j < model->units[u].n_groups; j++)
            if (w->last_writer[model->units[u].groups[j]] == u)
                w->order[w->n_order++] = model->units[u].groups[j];
    }
}

static void find_stream(zero_writer *w)
{
    const zero_schedule *s = w->s;
    bool updates = w->program == ZERO_PROGRAM_STEP || w->program == ZERO_PROGRAM_EPILOGUE;
    for (int k = 0; k < w->n_order; k++) {
        int g = w->order[k];
        w->is_due[g] = updates && s->input.offload == ZERO_OFFLOAD_LAZY;
        for (int number = 0; number < s->groups[g].n_blocks; number++)
            w->blocks.list[w->blocks.n++] = (zero_writer_block){g, number};
    }
    for (int u = 0; u < s->model->n_units; u++)
        w->saved_file[u] = w->kept[u] = ZERO_NO_BUFFER;
}

bool zero_writer_open(zero_writer *w, zero_schedule *s, zero_program_kind program,
                      const zero_gradient_path *path)
{
    const zero_plan_input *in = &s->input;
    zero_deal deal = path ? path->deal : ZERO_DEAL_ROUND;
    *w = (zero_writer){.s = s,
                       .in = in,
                       .model = in->model,
                       .groups = s->groups,
                       .program = program,
                       .B = zero_program_samples(s, program),
                       .T = zero_program_positions(s, program),
                       .rank_stride = deal == ZERO_DEAL_BLOCKS ? in->accumulation : 1,
                       .microbatch_stride = deal == ZERO_DEAL_BLOCKS ? 1 : in->n_ranks,
                       .row_loss = ZERO_NO_BUFFER,
                       .host_rows = ZERO_NO_BUFFER,
                       .reducing = {.group = -1},
                       .crossing = {.group = -1},
                       .summing = -1,
                       .unsquared = -1,
                       .after = -1,
                       .path = path};
    if (!allocate(w)) {
        s->status =
            zero_fail(ZERO_ERR_NOMEM, "no memory to plan %d units", in->model->n_units);
        zero_writer_close(w);
        return false;
    }
    find_parameters(w);
    /* The first and the last unit that writes each group, in one pass over the
     * units. */
    const zero_model *model = w->model;
    for (int k = 0; k < model->n_groups; k++) w->last_writer[k] = -1;
    for (int u = 0; u < model->n_units; u++)
        for (int k = 0; zero_schedule_backs(s, u) && k < model->units[u].n_groups; k++) {
            int g = model->units[u].groups[k];
            w->first_writer[g] = u;
            if (w->last_writer[g] < 0) w->last_writer[g] = u;
        }
    order_updates(w);
    find_stream(w);
    return true;
}

void zero_writer_close(zero_writer *w)
{
    free(w->memory);
    *w = (zero_writer){0};
}

/* ---- buffers ---- */

int zero_write_buffer(zero_writer *w, zero_class cls, zero_space space, size_t bytes)
{
    if (bytes == 0) return ZERO_NO_BUFFER;
    return zero_schedule_add_buffer(
        w->s,
        (zero_buffer){.class = cls, .program = w->program, .space = space, .bytes = bytes});
}

int zero_write_staging(zero_writer *w, size_t bytes)
{
    return zero_write_buffer(w, ZERO_CLASS_BUCKETS,
                             zero_schedule_space(w->s, ZERO_CLASS_BUCKETS), bytes);
}

static int bytes(zero_writer *w, zero_class cls, int64_t n)
{
    return zero_write_buffer(w, cls, zero_schedule_space(w->s, cls), (size_t)n);
}

static int floats(zero_writer *w, zero_class cls, int64_t n)
{
    return bytes(w, cls, n * (int64_t)sizeof(float));
}

/* With the workspaces of all threads. */
static zero_unit_sizes sizes_of(const zero_writer *w, int u)
{
    const zero_unit *unit = &w->model->units[u];
    zero_unit_sizes sizes = unit->sizes(unit, w->B, w->T);
    const int64_t more = (zero_plan_threads(w->in) - 1) * sizes.thread_work;
    sizes.forward_work += more;
    sizes.backward_work += more;
    return sizes;
}

static bool trains(const zero_writer *w)
{
    return w->program == ZERO_PROGRAM_STEP;
}

static int last_unit(const zero_writer *w)
{
    return w->model->n_units - 1;
}

zero_instruction *zero_write(zero_writer *w, zero_op op)
{
    zero_instruction *i = zero_schedule_emit(w->s, w->program, op);
    i->microbatch = w->microbatch;
    return i;
}

void zero_write_wait(zero_writer *w, zero_op op, const zero_instruction *begun)
{
    zero_instruction *i = zero_write(w, op);
    *i = *begun;
    i->op = op;
}

zero_instruction *zero_write_group(zero_writer *w, zero_op op, int g, int in, int buffer)
{
    zero_instruction *i = zero_write(w, op);
    i->group = g;
    i->in = in;
    i->buffer = buffer;
    return i;
}

int zero_write_last(const zero_writer *w)
{
    return w->s->programs[w->program].length - 1;
}

/* ---- computing ---- */

static void number_microbatches(const zero_writer *w, zero_instruction *i)
{
    i->rank_stride = w->rank_stride;
    i->microbatch_stride = w->microbatch_stride;
}

void zero_write_load(zero_writer *w, int m)
{
    const zero_model *model = w->model;
    bool generates = zero_program_generates(w->program);
    w->microbatch = m;
    w->tokens = w->stream = ZERO_NO_BUFFER;
    /* The gradient stream runs in place through all units: it is as long as the longest
     * output. */
    int64_t longest = 0;
    for (int u = 0; u < model->n_units; u++)
        longest = zero_max(longest, zero_write_out_floats(w, u));
    if (trains(w)) w->stream = floats(w, ZERO_CLASS_ACTIVATIONS, longest);
    if (generates && !w->in->device) return; /* the caller's tokens are read */
    int64_t positions = w->B * w->T;
    bool is_last = w->s->pipe.end_unit == model->n_units;
    if (!is_last && w->s->pipe.first_unit > 0 && !zero_schedule_backs(w->s, 0)) return;
    size_t inputs = zero_schedule_targets_at(model, positions);
    size_t targets = generates ? 0 : (size_t)positions * model->target_bytes;
    w->tokens = bytes(w, ZERO_CLASS_DATA, (int64_t)(inputs + targets));
    /* With a device one buffer serves all microbatches: rows are copied to the host while
     * the next microbatch is computed. */
    if (!generates && is_last && (!w->in->device || w->row_loss == ZERO_NO_BUFFER)) {
        int64_t n = sizes_of(w, last_unit(w)).row_loss * (int64_t)sizeof(float);
        int64_t times = trains(w) ? w->in->accumulation : 1;
        w->row_loss = bytes(w, ZERO_CLASS_LOGITS, n);
        if (w->in->device)
            w->host_rows = zero_write_buffer(w, ZERO_CLASS_LOGITS, ZERO_SPACE_HOST,
                                             (size_t)(n * times));
    }
    zero_instruction *i = zero_write(w, ZERO_OP_LOAD);
    number_microbatches(w, i);
    i->tokens = w->tokens;
    if (w->s->n_tokens > 0) i->host = w->s->first_tokens + m % w->s->n_tokens;
}

void zero_write_loss(zero_writer *w)
{
    zero_instruction *i = zero_write(w, ZERO_OP_LOSS);
    number_microbatches(w, i);
    i->host = w->host_rows;
    if (w->in->device) i->row_loss = w->row_loss; /* it is copied until here */
}

/* --check-compute: what BACKWARD changes, and a hash for each piece of each result. */
static void compute_twice(zero_writer *w, zero_instruction *i)
{
    const zero_unit *unit = &w->model->units[i->unit];
    const zero_unit_sizes sizes = sizes_of(w, i->unit);
    const bool is_back = i->op == ZERO_OP_BACKWARD;
    const int64_t out = zero_write_out_floats(w, i->unit);
    int64_t changed = 0, results = 2, n = out + sizes.saved;
    if (w->in->check_compute == 0 || !trains(w)) return;
    if (is_back) {
        n = sizes.row_loss + (i->unit > 0 ? zero_write_out_floats(w, i->unit - 1) : 0);
        if (i->unit != last_unit(w)) changed = out;
    }
    for (int k = 0; is_back && k < unit->n_groups; k++) {
        int g = unit->groups[k];
        n += w->model->groups[g].n_params;
        results += w->model->groups[g].n_tensors;
        if (i->accumulate[k]) changed += w->groups[g].partition.padded;
    }
    i->before = floats(w, ZERO_CLASS_WORKSPACE, changed);
    n = n * (int64_t)sizeof(float) / (int64_t)ZERO_TWICE_PIECE + results;
    i->hashes = zero_write_buffer(w, ZERO_CLASS_WORKSPACE,
                                  w->in->device ? ZERO_SPACE_HOST : ZERO_SPACE_OWN,
                                  (size_t)n * sizeof(uint64_t));
}

static void name_parameters(const zero_writer *w, int u, zero_instruction *i)
{
    const zero_unit *unit = &w->model->units[u];
    for (int k = 0; k < unit->n_groups; k++) i->param[k] = w->param[unit->groups[k]];
}

/* FORWARD or RECOMPUTE. */
static zero_instruction *forward(zero_writer *w, zero_op op, int u, int out)
{
    int work = floats(w, ZERO_CLASS_WORKSPACE, sizes_of(w, u).forward_work);
    zero_instruction *i = zero_write(w, op);
    i->unit = u;
    if (w->s->pipe.n_stages > 1) number_microbatches(w, i);
    i->tokens = w->tokens;
    i->in = u > 0 ? w->out[u - 1] : ZERO_NO_BUFFER;
    i->out = out;
    i->saved = w->saved[u];
    i->work = work;
    name_parameters(w, u, i);
    compute_twice(w, i);
    return i;
}

/* The last unit is never recomputed: its backward follows its forward at once. */
bool zero_write_recomputes(const zero_writer *w, int u)
{
    return trains(w) && zero_plan_recomputes(w->in, u) && sizes_of(w, u).saved > 0;
}

bool zero_write_backward_reads(const zero_writer *w, int u)
{
    return zero_write_recomputes(w, u) || !w->model->units[u].backward_without_params;
}

/* Within a node that shares memory a gather is a pointer: its update need not be early. */
static bool gathers_take_time(const zero_writer *w)
{
    bool one_node = zero_schedule_layout(w->s)->n_nodes == 1;
    return w->s->shard.size > 1 && !(one_node && zero_schedule_shares(w->s));
}

/* Texts are drawn on the host, from the logits of all words. */
static bool fetches_logits(const zero_writer *w)
{
    return w->in->device && zero_program_generates(w->program);
}

/* Floats of the last unit's logits. To generate on a device it needs only those of the
 * texts' last positions, which are few beside a device's chunk. */
static int64_t logits_of(const zero_writer *w)
{
    const zero_model *model = w->model;
    const int64_t all = sizes_of(w, last_unit(w)).logits;
    if (!fetches_logits(w)) return all;
    return zero_min(all, model->vocab * zero_program_samples(w->s, w->program));
}

/* Where GATHER takes time, the next unit's updates stand before this one's FORWARD, which
 * hides it. Beside a device all of them do: the host updates while the device executes the
 * pass before, and STORE_PARAM, whose copy waits for all calls that are queued, does not
 * wait for this one. */
static void write_due_ahead(zero_writer *w, int u)
{
    bool is_beside = zero_plan_updates_beside(w->in) && !w->in->serial;
    if (is_beside || gathers_take_time(w)) zero_write_due_of_unit(w, u, !is_beside);
}

void zero_write_forward(zero_writer *w, int u)
{
    zero_unit_sizes size = sizes_of(w, u);
    bool keeps = trains(w) && !zero_write_recomputes(w, u);
    bool gives_logits = u == last_unit(w) && !trains(w);
    int logits = gives_logits ? floats(w, ZERO_CLASS_LOGITS, logits_of(w)) : ZERO_NO_BUFFER;
    zero_write_due_of_unit(w, u, false);
    if (u < last_unit(w)) write_due_ahead(w, u + 1);
    const zero_unit *unit = &w->model->units[u];
    for (int k = 0; k < unit->n_groups; k++) zero_write_await(w, unit->groups[k]);
    w->out[u] = zero_write_output(w, u);
    /* If no backward reads it, it is written all the same, but not kept. */
    w->saved[u] =
        floats(w, keeps ? ZERO_CLASS_ACTIVATIONS : ZERO_CLASS_WORKSPACE, size.saved);
    int place = zero_write_place_kept(w, u);
    zero_instruction *i = forward(w, ZERO_OP_FORWARD, u, w->out[u]);
    i->buffer = place;
    const zero_schedule *s = w->s;
    bool has_cache = zero_program_generates(w->program) && s->first_cache != ZERO_NO_BUFFER;
    if (has_cache && s->buffers[s->first_cache + u].bytes > 0)
        i->cache = s->first_cache + u;
    i->logits = logits;
    if (gives_logits) {
        i->row_loss = w->row_loss;
        i->host = w->host_rows;
    }
    if (gives_logits && fetches_logits(w))
        i->host = zero_write_buffer(w, ZERO_CLASS_LOGITS, ZERO_SPACE_HOST,
                                    (size_t)logits_of(w) * sizeof(float));
    zero_write_parts(w);
    zero_write_keep_after(w, u);
}

/* The output is known already. A unit that cannot leave it out writes it to workspace,
 * unread. */
static void compute_again(zero_writer *w, int u)
{
    zero_unit_sizes size = sizes_of(w, u);
    int out = ZERO_NO_BUFFER;
    w->saved[u] = floats(w, ZERO_CLASS_ACTIVATIONS, size.saved);
    if (!w->model->units[u].recompute_without_out)
        out = floats(w, ZERO_CLASS_WORKSPACE, zero_write_out_floats(w, u));
    forward(w, ZERO_OP_RECOMPUTE, u, out);
    zero_write_parts(w);
}

/* An fp32 gradient that ranks keep whole is written where it stays, if that is still empty.
 * Any other is in flight until it is rounded, added or reduced. One that is reduced as it
 * is lies where neighbours can read it. */
static int choose_gradient(zero_writer *w, int g)
{
    const zero_plan_input *in = w->in;
    const zero_group_state *state = &w->groups[g];
    bool is_exact = in->type == ZERO_FP32, whole = state->grad_held == ZERO_HOLD_WHOLE;
    bool is_only = in->accumulation == 1;
    bool is_first = w->microbatch == 0 && !in->reproducible;
    if (is_exact && whole && (is_only || is_first)) return state->grad;
    bool is_read = is_exact && !whole && zero_schedule_shares(w->s);
    return zero_hold_buffer(w->s, w->program, ZERO_CLASS_IN_FLIGHT, g, ZERO_HOLD_WHOLE,
                            is_read ? ZERO_SPACE_PART : ZERO_SPACE_OWN, ZERO_FP32);
}

static void name_gradients(zero_writer *w, int u, zero_instruction *i)
{
    const zero_unit *unit = &w->model->units[u];
    for (int k = 0; k < unit->n_groups; k++) {
        int g = unit->groups[k];
        i->grad[k] = w->grad[g];
        i->accumulate[k] = u != w->first_writer[g];
    }
}

void zero_write_backward(zero_writer *w, int u)
{
    const zero_unit *unit = &w->model->units[u];
    zero_unit_sizes size = sizes_of(w, u);
    zero_write_bring_back_for(w, u);
    if (zero_write_recomputes(w, u)) compute_again(w, u);
    for (int k = 0; k < unit->n_groups; k++)
        if (w->first_writer[unit->groups[k]] == u)
            w->grad[unit->groups[k]] = choose_gradient(w, unit->groups[k]);
    int work = floats(w, ZERO_CLASS_WORKSPACE, size.backward_work);
    int logits = floats(w, ZERO_CLASS_LOGITS, size.logits);

    zero_instruction *i = zero_write(w, ZERO_OP_BACKWARD);
    i->unit = u;
    if (w->s->pipe.n_stages > 1) number_microbatches(w, i);
    i->tokens = w->tokens;
    i->in = u > 0 ? w->out[u - 1] : ZERO_NO_BUFFER;
    i->saved = w->saved[u];
    i->stream = w->stream;
    i->work = work;
    i->logits = logits;
    if (u == last_unit(w)) {
        i->row_loss = w->row_loss;
        i->host = w->host_rows;
    }
    if (!unit->backward_without_params) name_parameters(w, u, i);
    name_gradients(w, u, i);
    compute_twice(w, i);
    zero_write_parts(w);
}
