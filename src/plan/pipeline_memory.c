/* The walk of a stage's program that adds up bytes. FORWARD and BACKWARD are followed
 * unit by unit: a unit's buffers live as long as in a step of stage 0
 * (sharding/writer.c).
 *
 *     out     from FORWARD to the next unit's BACKWARD; the last one's until it is sent
 *     saved   from FORWARD, or (recompute) from the recomputation, to BACKWARD
 *     stream  from RECEIVE_GRADIENT, or the last unit's BACKWARD, until it is sent
 *     a gradient in flight: between the BACKWARDs of the stage that write it */
#include "plan/pipeline.h"

#include "base/number.h"
#include "math/backend.h"

struct tally {
    zero_pipeline *p;
    zero_pipe_stage *stage;
    int at;          /* the instruction */
    int live;        /* microbatches between FORWARD and BACKWARD */
    bool has_summed; /* the sums hold the gradients of at least one microbatch */
    size_t stream;   /* bytes of the gradient that passes back through all units in place */
    size_t now[ZERO_CLASSES], all;
    size_t activation_under_way, gradient_under_way; /* bytes of messages' buffers */
};

static zero_unit_sizes sizes_of(const struct tally *t, int u)
{
    return t->p->sizes[u];
}

static size_t floats(int64_t n)
{
    return (size_t)n * sizeof(float);
}

static size_t out_bytes(const struct tally *t, int u)
{
    return u >= 0 ? floats(zero_unit_out_room(&t->p->input.plan.model->units[u],
                                              &t->p->sizes[u]))
                  : 0;
}

static size_t stream_bytes(const struct tally *t)
{
    size_t most = 0;
    for (int u = 0; u < t->p->input.plan.model->n_units; u++)
        most = zero_max_size(most, out_bytes(t, u));
    return most;
}

/* ---- births and deaths ---- */

static void note_peak(struct tally *t)
{
    zero_pipe_ledger *l = &t->stage->ledger;
    zero_pipe_instruction *i = &t->stage->code[t->at];
    i->live_bytes = zero_max_size(i->live_bytes, t->all);
    if (t->all <= l->peak_bytes) return;
    l->peak_bytes = t->all;
    l->peak_at = t->at;
    for (int c = 0; c < ZERO_CLASSES; c++) l->at_peak[c] = t->now[c];
}

static void birth(struct tally *t, zero_class cls, size_t bytes)
{
    size_t *peak = &t->stage->ledger.class_peak[cls];
    t->now[cls] += bytes;
    t->all += bytes;
    *peak = zero_max_size(*peak, t->now[cls]);
    note_peak(t);
}

static void death(struct tally *t, zero_class cls, size_t bytes)
{
    t->now[cls] -= bytes;
    t->all -= bytes;
}

/* ---- what lives for the whole run ---- */

static int64_t padded(const struct tally *t, int g)
{
    return t->p->partitions[g].padded;
}

/* As zero_hold_gradients() and zero_hold_optimizer() of sharding/holdings.h. */
static void hold_group(struct tally *t, int g)
{
    const zero_plan_input *in = &t->p->input.plan;
    bool is_exact = in->type == ZERO_FP32, sums = in->accumulation > 1;
    size_t n = (size_t)padded(t, g), type = zero_type_size(in->type);
    birth(t, ZERO_CLASS_PARAMETERS, n * type);
    if (sums) birth(t, ZERO_CLASS_ACCUMULATORS, n * sizeof(float));
    if (!sums || !is_exact) birth(t, ZERO_CLASS_GRADIENTS, n * type);
    birth(t, ZERO_CLASS_OPTIMIZER, n * (is_exact ? 2 : 3) * sizeof(float));
}

static void hold_states(struct tally *t)
{
    zero_pipe_ledger *l = &t->stage->ledger;
    for (int u = t->stage->first_unit; u < t->stage->end_unit; u++) {
        const zero_unit *unit = &t->p->input.plan.model->units[u];
        for (int k = 0; k < unit->n_groups; k++)
            if (t->p->reads[u].first[k]) hold_group(t, unit->groups[k]);
    }
    l->states = t->now[ZERO_CLASS_PARAMETERS] + t->now[ZERO_CLASS_GRADIENTS] +
                t->now[ZERO_CLASS_OPTIMIZER];
    birth(t, ZERO_CLASS_WORKSPACE,
          floats(zero_math_scratch() * zero_plan_threads(&t->p->input.plan)));
}

/* ---- units ---- */

static bool is_last_unit(const struct tally *t, int u)
{
    return u == t->p->input.plan.model->n_units - 1;
}

bool zero_pipeline_recomputes(const zero_pipeline *p, int unit)
{
    bool is_last = unit == p->input.plan.model->n_units - 1;
    return p->input.plan.recompute && !is_last && p->sizes[unit].saved > 0;
}

static bool recomputes(const struct tally *t, int u)
{
    return zero_pipeline_recomputes(t->p, u);
}

/* The class of a unit's input (sharding/writer_kept.c). */
static zero_class class_of_input(const struct tally *t, int u)
{
    return recomputes(t, u) ? ZERO_CLASS_KEPT : ZERO_CLASS_ACTIVATIONS;
}

/* The class of a unit's output. The output of the stage's last unit is sent. */
static zero_class class_of_output(const struct tally *t, int u)
{
    bool is_sent = u + 1 == t->stage->end_unit;
    return is_sent ? ZERO_CLASS_ACTIVATIONS : class_of_input(t, u + 1);
}

/* Targets lie after inputs, as LOAD of a step has them in one buffer. */
static size_t token_bytes(const struct tally *t)
{
    const zero_plan_input *in = &t->p->input.plan;
    int64_t positions = in->micro_batch * in->seq;
    bool is_first = t->stage->first_unit == 0;
    bool is_last = t->stage->end_unit == in->model->n_units;
    size_t inputs = is_first ? zero_schedule_targets_at(in->model, positions) : 0;
    return inputs + (is_last ? (size_t)positions * in->model->target_bytes : 0);
}

static void forward(struct tally *t)
{
    for (int u = t->stage->first_unit; u < t->stage->end_unit; u++) {
        zero_unit_sizes size = sizes_of(t, u);
        bool keeps = !recomputes(t, u);
        zero_class saved = keeps ? ZERO_CLASS_ACTIVATIONS : ZERO_CLASS_WORKSPACE;
        birth(t, class_of_output(t, u), out_bytes(t, u));
        birth(t, saved, floats(size.saved));
        birth(t, ZERO_CLASS_WORKSPACE, floats(size.forward_work));
        death(t, ZERO_CLASS_WORKSPACE, floats(size.forward_work));
        if (!keeps) death(t, saved, floats(size.saved));
    }
    t->live++;
    t->stage->ledger.live = (int)zero_max(t->stage->ledger.live, t->live);
}

static void recompute(struct tally *t, int u)
{
    const zero_unit *unit = &t->p->input.plan.model->units[u];
    zero_unit_sizes size = sizes_of(t, u);
    size_t work = floats(size.forward_work);
    if (!unit->recompute_without_out) work += out_bytes(t, u);
    birth(t, ZERO_CLASS_ACTIVATIONS, floats(size.saved));
    birth(t, ZERO_CLASS_WORKSPACE, work);
    death(t, ZERO_CLASS_WORKSPACE, work);
}

/* ---- gradients in flight ---- */

/* An fp32 gradient is written where it stays, if that is still empty. */
static bool is_in_flight(const struct tally *t)
{
    return t->p->input.plan.type != ZERO_FP32 || t->has_summed;
}

/* The unit's gradients in flight that begin with its BACKWARD, or end with it. */
static size_t gradient_bytes(const struct tally *t, int u, const bool *which)
{
    const zero_unit *unit = &t->p->input.plan.model->units[u];
    size_t bytes = 0;
    for (int k = 0; k < unit->n_groups && is_in_flight(t); k++)
        if (which[k]) bytes += floats(padded(t, unit->groups[k]));
    return bytes;
}

static void backward_unit(struct tally *t, int u)
{
    const zero_pipe_reads *reads = &t->p->reads[u];
    zero_unit_sizes size = sizes_of(t, u);
    size_t work = floats(size.backward_work);
    size_t logits = floats(size.logits + (is_last_unit(t, u) ? size.row_loss : 0));
    if (recomputes(t, u)) recompute(t, u);
    birth(t, ZERO_CLASS_IN_FLIGHT, gradient_bytes(t, u, reads->last));
    birth(t, ZERO_CLASS_WORKSPACE, work);
    birth(t, ZERO_CLASS_LOGITS, logits);
    death(t, ZERO_CLASS_WORKSPACE, work);
    death(t, ZERO_CLASS_LOGITS, logits);
    death(t, ZERO_CLASS_IN_FLIGHT, gradient_bytes(t, u, reads->first));
    death(t, ZERO_CLASS_ACTIVATIONS, floats(size.saved));
    death(t, class_of_input(t, u), out_bytes(t, u - 1));
}

/* The model's last unit has an output that no unit reads, so it lives until the end. */
static void backward(struct tally *t)
{
    int end = t->stage->end_unit;
    bool has_last = end == t->p->input.plan.model->n_units;
    if (has_last) birth(t, ZERO_CLASS_ACTIVATIONS, t->stream);
    for (int u = end - 1; u >= t->stage->first_unit; u--) backward_unit(t, u);
    if (has_last) death(t, ZERO_CLASS_ACTIVATIONS, out_bytes(t, end - 1));
    if (t->stage->first_unit == 0) death(t, ZERO_CLASS_ACTIVATIONS, t->stream);
    death(t, ZERO_CLASS_DATA, token_bytes(t));
    t->has_summed = true;
    t->live--;
}

/* ---- messages ---- */

/* Sends a message of `bytes`. Its buffer, which may be longer, lives until the next message
 * in the same direction. */
static void send(struct tally *t, size_t bytes, size_t buffer, size_t *under_way,
                 int64_t *sum)
{
    zero_pipe_instruction *i = &t->stage->code[t->at];
    death(t, ZERO_CLASS_BUCKETS, *under_way);
    death(t, ZERO_CLASS_ACTIVATIONS, buffer);
    birth(t, ZERO_CLASS_BUCKETS, buffer);
    *under_way = buffer;
    i->sent = (int64_t)bytes;
    *sum += i->sent;
}

static void send_activation(struct tally *t)
{
    size_t bytes = out_bytes(t, t->stage->end_unit - 1);
    send(t, bytes, bytes, &t->activation_under_way, &t->stage->ledger.activations_sent);
}

static void send_gradient(struct tally *t)
{
    size_t bytes = out_bytes(t, t->stage->first_unit - 1);
    send(t, bytes, t->stream, &t->gradient_under_way, &t->stage->ledger.gradients_sent);
}

/* Bytes that each of n ranks sends in an all-reduce: sums, then results. `sum` and `result`
 * are the bytes of an element. */
static int64_t all_reduced(int64_t elements, int n, size_t sum, size_t result)
{
    return elements * (int64_t)(sum + result) * (n - 1) / n;
}

/* Sums over microbatches travel as they are, and are rounded after the last sum (as at
 * stage 0). */
static void add_gradients(struct tally *t, bool ties, int64_t *sum)
{
    const zero_plan_input *in = &t->p->input.plan;
    zero_pipe_instruction *i = &t->stage->code[t->at];
    size_t type = zero_type_size(in->type);
    size_t addend = in->accumulation > 1 ? sizeof(float) : type;
    int n = ties ? t->p->holders[i->group] : in->n_ranks;
    birth(t, ZERO_CLASS_BUCKETS, t->p->input.staging);
    death(t, ZERO_CLASS_BUCKETS, t->p->input.staging);
    i->sent = all_reduced(padded(t, i->group), n, addend, ties ? addend : type);
    *sum += i->sent;
}

/* ---- the walk ---- */

static void execute(struct tally *t, const zero_pipe_instruction *i)
{
    zero_pipe_ledger *l = &t->stage->ledger;
    size_t input = out_bytes(t, t->stage->first_unit - 1);
    switch (i->op) {
    case ZERO_PIPE_LOAD: birth(t, ZERO_CLASS_DATA, token_bytes(t)); break;
    case ZERO_PIPE_RECEIVE_ACTIVATION:
        birth(t, class_of_input(t, t->stage->first_unit), input);
        break;
    case ZERO_PIPE_FORWARD: forward(t); break;
    case ZERO_PIPE_SEND_ACTIVATION: send_activation(t); break;
    case ZERO_PIPE_RECEIVE_GRADIENT: birth(t, ZERO_CLASS_ACTIVATIONS, t->stream); break;
    case ZERO_PIPE_BACKWARD: backward(t); break;
    case ZERO_PIPE_SEND_GRADIENT: send_gradient(t); break;
    case ZERO_PIPE_TIE: add_gradients(t, true, &l->tied_sent); break;
    case ZERO_PIPE_REDUCE: add_gradients(t, false, &l->reduced_sent); break;
    case ZERO_PIPE_UPDATE:
    case ZERO_PIPE_OPS: break;
    }
}

void zero_pipeline_add_up(zero_pipeline *p, int stage)
{
    struct tally t = {.p = p, .stage = &p->stages[stage]};
    t.stream = stream_bytes(&t);
    hold_states(&t);
    for (t.at = 0; t.at < t.stage->length; t.at++) {
        note_peak(&t);
        execute(&t, &t.stage->code[t.at]);
    }
}
