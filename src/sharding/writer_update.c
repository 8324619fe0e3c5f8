/* The end of a step: NORM, OVERFLOW, checks, UPDATE; and GATHER, which makes updated parameters
 * whole. */
#include "sharding/checks.h"
#include "sharding/holdings.h"
#include "sharding/schedule_exchange.h"
#include "sharding/writer.h"

/* ---- parameters ---- */

/* A gather may end in the next program: its staging lives for the whole run. */
static int gather_staging(zero_schedule *s, int g)
{
    zero_group_state *state = &s->groups[g];
    size_t need =
        zero_schedule_staging(s, ZERO_OP_GATHER, g, zero_schedule_collectives(s, g));
    if (state->gather_staging == ZERO_NO_BUFFER && need > 0)
        state->gather_staging =
            zero_schedule_add_buffer(s, (zero_buffer){.class = ZERO_CLASS_BUCKETS,
                                                      .program = ZERO_PROGRAM_ALL,
                                                      .bytes = need});
    return state->gather_staging;
}

void zero_write_gather(zero_writer *w, int g, int in, int buffer)
{
    zero_exchange *x = &w->s->groups[g].gather;
    if (!x->is_used) *x = (zero_exchange){.is_used = true, .in = in, .out = buffer};
    int staging = gather_staging(w->s, g);
    zero_instruction *i = zero_write(w, ZERO_OP_GATHER);
    i->group = g;
    i->in = in;
    i->buffer = buffer;
    i->staging = staging;
    if (w->s->input.serial) zero_write_gather_wait(w, g, buffer);
}

void zero_write_gather_wait(zero_writer *w, int g, int buffer)
{
    zero_instruction *i = zero_write(w, ZERO_OP_GATHER_WAIT);
    i->group = g;
    i->buffer = buffer;
}

/* ---- updates ---- */

static void norm(zero_writer *w, int g)
{
    const zero_group_state *state = &w->s->groups[g];
    zero_instruction *i = zero_write(w, ZERO_OP_NORM);
    i->group = g;
    i->grad[0] = state->grad;
    i->range = zero_partition_shard(&state->partition, w->s->input.rank);
}

/* UPDATE or RECORD, with the states of group g. */
static zero_instruction *write_states(zero_writer *w, zero_op op, int g)
{
    const zero_group_state *state = &w->s->groups[g];
    zero_instruction *i = zero_write(w, op);
    i->group = g;
    i->param[0] = state->param;
    i->master = state->master;
    i->momentum = state->momentum;
    i->variance = state->variance;
    i->range = zero_states_held(w->s, g);
    return i;
}

static void update(zero_writer *w, int g)
{
    const zero_group_state *state = &w->s->groups[g];
    write_states(w, ZERO_OP_UPDATE, g)->grad[0] = state->grad;
    if (state->records != ZERO_NO_BUFFER)
        write_states(w, ZERO_OP_RECORD, g)->buffer = state->records;
    if (zero_is_published(w->s, g)) zero_write_gather(w, g, state->param, state->param);
}

/* Parameters are whole now, on all ranks, and nothing of this step has changed them. */
static void check(zero_writer *w)
{
    const zero_schedule *s = w->s;
    if (s->input.check_memory) zero_write(w, ZERO_OP_VERIFY)->buffer = s->check;
    if (zero_is_compared(s)) zero_write(w, ZERO_OP_COMPARE)->buffer = s->check;
}

void zero_write_update(zero_writer *w)
{
    const zero_model *model = w->s->input.model;
    zero_write_loss(w);
    for (int g = 0; g < model->n_groups; g++) norm(w, g);
    zero_write(w, ZERO_OP_OVERFLOW);
    check(w);
    /* The next forward pass needs the parameters in this order. */
    for (int u = 0; u < model->n_units; u++)
        for (int k = 0; k < model->units[u].n_groups; k++)
            if (w->last_writer[model->units[u].groups[k]] == u)
                update(w, model->units[u].groups[k]);
}
