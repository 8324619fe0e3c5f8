/* Stage 0: plain data parallelism, the baseline that the other stages must equal bit by bit.
 *
 * Every rank holds all parameters, gradients and optimizer states: 16 Psi bytes. The gradient
 * of a group is all-reduced, as a reduce-scatter to its owners and an all-gather, as soon as
 * its last contribution is there: 2 (N-1)/N Psi elements per rank and step. Then every rank
 * makes the same update.
 *
 * With M > 1 microbatches the first one's gradient is written to the accumulator itself; the
 * others are written beside it and added, one group at a time. */
#include "sharding/compile.h"

#include <stdlib.h>

static size_t padded_bytes(const zero_schedule *s, int g)
{
    return (size_t)zero_partition_padded(&s->groups[g].partition) * sizeof(float);
}

static int whole_run(zero_schedule *s, zero_class cls, int g)
{
    return zero_schedule_add_buffer(s, ZERO_PROGRAM_ALL, cls, padded_bytes(s, g));
}

static void add_states(zero_schedule *s)
{
    zero_class sums =
        s->input.accumulation > 1 ? ZERO_CLASS_ACCUMULATORS : ZERO_CLASS_GRADIENTS;
    for (int g = 0; g < s->input.model->n_groups; g++) {
        s->groups[g].param = whole_run(s, ZERO_CLASS_PARAMETERS, g);
        s->groups[g].grad = whole_run(s, sums, g);
        zero_schedule_share(s, s->groups[g].grad); /* neighbours read it */
        s->groups[g].momentum = whole_run(s, ZERO_CLASS_OPTIMIZER, g);
        s->groups[g].variance = whole_run(s, ZERO_CLASS_OPTIMIZER, g);
    }
}

/* What the stage remembers while it writes the step. */
struct writer {
    zero_schedule *s;
    zero_pass pass;
    int *grad;    /* [n_groups]: where the microbatch's gradient goes */
    int staging;  /* one reduce-scatter is in flight at a time */
    int reducing; /* the group it is of; -1: none */
};

/* The reduced shards go back to everyone while the next group is computed. */
static void finish_reduce(struct writer *w)
{
    if (w->reducing < 0) return;
    int buffer = w->s->groups[w->reducing].grad;
    zero_instruction *wait =
        zero_schedule_emit(w->s, ZERO_PROGRAM_STEP, ZERO_OP_REDUCE_WAIT);
    wait->group = w->reducing;
    wait->buffer = buffer;
    wait->staging = w->staging;
    zero_compile_collective(w->s, ZERO_OP_GATHER, w->reducing, buffer, ZERO_NO_BUFFER);
    w->reducing = -1;
}

static void accumulate(struct writer *w, int g)
{
    zero_instruction *i = zero_schedule_emit(w->s, ZERO_PROGRAM_STEP, ZERO_OP_ACCUMULATE);
    i->group = g;
    i->microbatch = w->pass.microbatch;
    i->in = w->grad[g];
    i->buffer = w->s->groups[g].grad;
}

/* After the backward of unit u: what to do with the groups whose gradient is now complete. */
static void finish_groups(struct writer *w, int u)
{
    const zero_model *model = w->s->input.model;
    const zero_unit *unit = &model->units[u];
    for (int k = 0; k < unit->n_groups; k++) {
        int g = unit->groups[k];
        if (zero_model_last_writer(model, g) != u) continue;
        if (w->pass.microbatch > 0) accumulate(w, g);
        if (w->pass.microbatch < w->s->input.accumulation - 1) continue;
        finish_reduce(w);
        zero_compile_collective(w->s, ZERO_OP_REDUCE, g, w->s->groups[g].grad, w->staging);
        w->reducing = g;
    }
}

/* Where this microbatch's gradient of unit u's groups goes. */
static void choose_gradients(struct writer *w, int u)
{
    zero_schedule *s = w->s;
    const zero_model *model = s->input.model;
    const zero_unit *unit = &model->units[u];
    for (int k = 0; k < unit->n_groups; k++) {
        int g = unit->groups[k];
        if (w->pass.microbatch == 0)
            w->grad[g] = s->groups[g].grad;
        else if (zero_model_first_writer(model, g) == u)
            w->grad[g] = zero_schedule_add_buffer(s, ZERO_PROGRAM_STEP,
                                                  ZERO_CLASS_GRADIENTS, padded_bytes(s, g));
    }
}

static void compile_microbatch(struct writer *w)
{
    int n_units = w->s->input.model->n_units;
    zero_compile_open_pass(w->s, &w->pass);
    zero_compile_load(w->s, &w->pass);
    for (int u = 0; u < n_units; u++) zero_compile_forward(w->s, &w->pass, u);
    for (int u = n_units - 1; u >= 0; u--) {
        choose_gradients(w, u);
        zero_compile_backward(w->s, &w->pass, u, w->grad);
        finish_groups(w, u);
    }
}

static void compile_update(struct writer *w)
{
    zero_schedule *s = w->s;
    int n_groups = s->input.model->n_groups;
    finish_reduce(w);
    for (int g = n_groups - 1; g >= 0; g--) {
        zero_instruction *wait =
            zero_schedule_emit(s, ZERO_PROGRAM_STEP, ZERO_OP_GATHER_WAIT);
        wait->group = g;
        wait->buffer = s->groups[g].grad;
    }
    zero_compile_loss(s, &w->pass);
    for (int g = 0; g < n_groups; g++) zero_compile_norm(s, g);
    zero_schedule_emit(s, ZERO_PROGRAM_STEP, ZERO_OP_OVERFLOW);
    for (int g = 0; g < n_groups; g++) zero_compile_update(s, g);
}

static void compile_forward_only(zero_schedule *s, zero_pass *pass)
{
    zero_compile_open_pass(s, pass);
    if (pass->program == ZERO_PROGRAM_EVALUATE) zero_compile_load(s, pass);
    for (int u = 0; u < s->input.model->n_units; u++) zero_compile_forward(s, pass, u);
    if (pass->program == ZERO_PROGRAM_EVALUATE) zero_compile_loss(s, pass);
}

/* One staging buffer serves every group in turn. */
static int add_staging(zero_schedule *s)
{
    size_t most = 0;
    for (int g = 0; g < s->input.model->n_groups; g++) {
        zero_collective_spec spec = zero_schedule_collective(s, ZERO_OP_REDUCE, g);
        size_t bytes = zero_collective_staging(&spec, zero_schedule_layout(s));
        if (bytes > most) most = bytes;
    }
    return zero_schedule_add_buffer(s, ZERO_PROGRAM_STEP, ZERO_CLASS_BUCKETS, most);
}

void zero_stage_none_compile(zero_schedule *s)
{
    const zero_plan_input *in = &s->input;
    int n_units = in->model->n_units;
    int *tables = calloc((size_t)(2 * n_units + in->model->n_groups), sizeof *tables);
    if (!tables) {
        s->status = zero_fail(ZERO_ERR_NOMEM, "no memory to compile %d units", n_units);
        return;
    }
    zero_pass pass = {.program = ZERO_PROGRAM_STEP,
                      .B = in->micro_batch,
                      .T = in->seq,
                      .rank_stride = in->accumulation,
                      .microbatch_stride = 1,
                      .training = true,
                      .out = tables,
                      .saved = tables + n_units};

    add_states(s);
    struct writer w = {.s = s,
                       .pass = pass,
                       .grad = tables + 2 * n_units,
                       .staging = add_staging(s),
                       .reducing = -1};
    for (int m = 0; m < in->accumulation; m++) {
        w.pass.microbatch = m;
        compile_microbatch(&w);
    }
    compile_update(&w);

    pass.training = false;
    pass.rank_stride = 1;
    pass.program = ZERO_PROGRAM_EVALUATE;
    compile_forward_only(s, &pass);
    pass.program = ZERO_PROGRAM_GENERATE;
    pass.B = 1;
    compile_forward_only(s, &pass);
    free(tables);
}
