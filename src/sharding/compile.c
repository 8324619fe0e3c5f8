#include "sharding/compile.h"

static int floats(zero_schedule *s, const zero_pass *pass, zero_class cls, int64_t n)
{
    return zero_schedule_add_buffer(s, pass->program, cls, (size_t)n * sizeof(float));
}

static zero_unit_sizes sizes_of(const zero_schedule *s, const zero_pass *pass, int u)
{
    const zero_unit *unit = &s->input.model->units[u];
    return unit->sizes(unit, pass->B, pass->T);
}

/* The gradient stream runs in place through all units: it is as long as the longest output. */
static int64_t stream_floats(const zero_schedule *s, const zero_pass *pass)
{
    int64_t most = 0;
    for (int u = 0; u < s->input.model->n_units; u++) {
        int64_t out = sizes_of(s, pass, u).out;
        if (out > most) most = out;
    }
    return most;
}

void zero_compile_open_pass(zero_schedule *s, zero_pass *pass)
{
    int last = s->input.model->n_units - 1;
    size_t position = s->input.model->input_bytes + s->input.model->target_bytes;
    size_t tokens = (size_t)(pass->B * pass->T) * position;
    pass->tokens = zero_schedule_add_buffer(s, pass->program, ZERO_CLASS_DATA, tokens);
    pass->row_loss = ZERO_NO_BUFFER;
    pass->stream = ZERO_NO_BUFFER;
    if (pass->program != ZERO_PROGRAM_GENERATE)
        pass->row_loss =
            floats(s, pass, ZERO_CLASS_LOGITS, sizes_of(s, pass, last).row_loss);
    if (pass->training)
        pass->stream = floats(s, pass, ZERO_CLASS_ACTIVATIONS, stream_floats(s, pass));
}

void zero_compile_load(zero_schedule *s, const zero_pass *pass)
{
    zero_instruction *i = zero_schedule_emit(s, pass->program, ZERO_OP_LOAD);
    i->microbatch = pass->microbatch;
    i->rank_stride = pass->rank_stride;
    i->microbatch_stride = pass->microbatch_stride;
    i->tokens = pass->tokens;
}

void zero_compile_loss(zero_schedule *s, const zero_pass *pass)
{
    zero_instruction *i = zero_schedule_emit(s, pass->program, ZERO_OP_LOSS);
    i->microbatch = pass->microbatch;
    i->rank_stride = pass->rank_stride;
    i->microbatch_stride = pass->microbatch_stride;
}

void zero_compile_norm(zero_schedule *s, int g)
{
    zero_instruction *i = zero_schedule_emit(s, ZERO_PROGRAM_STEP, ZERO_OP_NORM);
    i->group = g;
    i->grad[0] = s->groups[g].grad;
}

void zero_compile_update(zero_schedule *s, int g)
{
    zero_instruction *i = zero_schedule_emit(s, ZERO_PROGRAM_STEP, ZERO_OP_UPDATE);
    i->group = g;
    i->grad[0] = s->groups[g].grad;
    i->param[0] = s->groups[g].param;
    i->momentum = s->groups[g].momentum;
    i->variance = s->groups[g].variance;
}

static void name_groups(const zero_schedule *s, int u, zero_instruction *i)
{
    const zero_unit *unit = &s->input.model->units[u];
    for (int k = 0; k < unit->n_groups; k++) i->param[k] = s->groups[unit->groups[k]].param;
}

void zero_compile_forward(zero_schedule *s, zero_pass *pass, int u)
{
    int last = s->input.model->n_units - 1;
    zero_unit_sizes size = sizes_of(s, pass, u);
    pass->out[u] = floats(s, pass, ZERO_CLASS_ACTIVATIONS, size.out);
    /* A forward pass that no backward follows still writes there, but nobody reads it. */
    pass->saved[u] =
        floats(s, pass, pass->training ? ZERO_CLASS_ACTIVATIONS : ZERO_CLASS_WORKSPACE,
               size.saved);
    int work = floats(s, pass, ZERO_CLASS_WORKSPACE, size.forward_work);
    int logits = ZERO_NO_BUFFER;
    if (u == last && !pass->training)
        logits = floats(s, pass, ZERO_CLASS_LOGITS, size.logits);

    zero_instruction *i = zero_schedule_emit(s, pass->program, ZERO_OP_FORWARD);
    i->unit = u;
    i->microbatch = pass->microbatch;
    i->tokens = pass->tokens;
    i->in = u > 0 ? pass->out[u - 1] : ZERO_NO_BUFFER;
    i->out = pass->out[u];
    i->saved = pass->saved[u];
    i->work = work;
    i->logits = logits;
    if (logits != ZERO_NO_BUFFER) i->row_loss = pass->row_loss;
    name_groups(s, u, i);
}

void zero_compile_backward(zero_schedule *s, zero_pass *pass, int u, const int *grad)
{
    const zero_model *model = s->input.model;
    const zero_unit *unit = &model->units[u];
    zero_unit_sizes size = sizes_of(s, pass, u);
    int work = floats(s, pass, ZERO_CLASS_WORKSPACE, size.backward_work);
    int logits = floats(s, pass, ZERO_CLASS_LOGITS, size.logits);

    zero_instruction *i = zero_schedule_emit(s, pass->program, ZERO_OP_BACKWARD);
    i->unit = u;
    i->microbatch = pass->microbatch;
    i->tokens = pass->tokens;
    i->in = u > 0 ? pass->out[u - 1] : ZERO_NO_BUFFER;
    i->saved = pass->saved[u];
    i->stream = pass->stream;
    i->work = work;
    i->logits = logits;
    if (logits != ZERO_NO_BUFFER) i->row_loss = pass->row_loss;
    name_groups(s, u, i);
    for (int k = 0; k < unit->n_groups; k++) {
        int g = unit->groups[k];
        i->grad[k] = grad[g];
        i->accumulate[k] = u != zero_model_first_writer(model, g);
    }
}

void zero_compile_collective(zero_schedule *s, zero_op op, int g, int buffer, int staging)
{
    zero_instruction *i = zero_schedule_emit(s, ZERO_PROGRAM_STEP, op);
    i->group = g;
    i->buffer = buffer;
    i->staging = staging;
    zero_collective_spec spec = zero_schedule_collective(s, op, g);
    zero_status st =
        zero_collective_traffic(&spec, zero_schedule_layout(s), s->input.rank, &i->traffic);
    if (st != ZERO_OK) s->status = st;
}
