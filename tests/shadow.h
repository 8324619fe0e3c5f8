/* shadow.h - an interpreter that knows what every buffer holds, and computes nothing.
 *
 * It walks a program as `run` does and remembers of each buffer what was written there last:
 * "the output of unit 3 for microbatch 1", "the reduced gradient of group 2". An instruction
 * that reads something else, memory that another buffer has overwritten since, or memory that
 * a collective in flight owns, fails the test. It never looks at a buffer's planned lifetime,
 * so it finds lifetimes that are too short by what they would do to the numbers. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "sharding/schedule.h"

typedef enum {
    SHADOW_NOTHING, /* never written, or overwritten by another buffer */
    SHADOW_SCRATCH, /* matters to nobody afterwards */
    SHADOW_TOKENS,
    SHADOW_OUT,
    SHADOW_SAVED,
    SHADOW_STREAM,   /* the gradient with respect to the unit's input */
    SHADOW_LEAF,     /* one microbatch's gradient, with `count` units' contributions */
    SHADOW_SUM,      /* of the gradients of microbatches 0 .. count-1 */
    SHADOW_REDUCING, /* in flight, like STAGING and GATHERING */
    SHADOW_STAGING,
    SHADOW_REDUCED,
    SHADOW_GATHERING,
    SHADOW_GATHERED,
    SHADOW_PARAMETERS,
} shadow_kind;

typedef struct {
    shadow_kind kind;
    int unit, microbatch, count;
} shadow_content;

typedef struct {
    const zero_schedule *s;
    zero_program_kind program;
    int at;                           /* the instruction */
    shadow_content *content;          /* [n_buffers] */
    int *reduces, *gathers, *updates; /* [n_groups] */
    int losses, norms, overflows;
} shadow;

static inline const zero_instruction *shadow_now(const shadow *w)
{
    return &w->s->programs[w->program].code[w->at];
}

#define shadow_expect(w, ok) shadow_expect_at((w), (ok), #ok, __LINE__)
static inline void shadow_expect_at(const shadow *w, bool ok, const char *text, int line)
{
    const zero_instruction *i = shadow_now(w);
    if (!ok)
        fail_msg("shadow.h:%d: instruction %d, %s of unit %d, group %d, microbatch %d: %s",
                 line, w->at, zero_op_name(i->op), i->unit, i->group, i->microbatch, text);
}

static inline bool shadow_in_flight(shadow_kind kind)
{
    return kind == SHADOW_REDUCING || kind == SHADOW_STAGING || kind == SHADOW_GATHERING;
}

/* What is written to one buffer is lost in all others that share bytes with it; buffers of
 * other programs do not matter, since a program starts with nothing. */
static inline void shadow_write(shadow *w, int id, size_t bytes, shadow_content content)
{
    if (bytes == 0) return;
    shadow_expect(w, id != ZERO_NO_BUFFER);
    const zero_buffer *b = &w->s->buffers[id];
    shadow_expect(w, b->bytes >= bytes);
    if (b->shared)
        shadow_expect(w, b->array < w->s->n_arrays);
    else
        shadow_expect(w, b->offset + b->bytes <= w->s->arena_bytes);
    shadow_expect(w, b->program == w->program || b->program == ZERO_PROGRAM_ALL);
    for (int k = 0; k < w->s->n_buffers; k++) {
        const zero_buffer *other = &w->s->buffers[k];
        bool overlap = !b->shared && !other->shared && /* arrays of a window lie apart */
                       b->offset < other->offset + other->bytes &&
                       other->offset < b->offset + b->bytes;
        if (k == id || !overlap) continue;
        shadow_expect(w, !shadow_in_flight(w->content[k].kind));
        shadow_expect(w, w->content[k].kind != SHADOW_PARAMETERS);
        w->content[k].kind = SHADOW_NOTHING;
    }
    w->content[id] = content;
}

static inline void shadow_scratch(shadow *w, int id, size_t bytes)
{
    shadow_write(w, id, bytes, (shadow_content){.kind = SHADOW_SCRATCH});
}

static inline const shadow_content *shadow_read(const shadow *w, int id, shadow_kind kind)
{
    shadow_expect(w, id != ZERO_NO_BUFFER);
    shadow_expect(w, w->content[id].kind == kind);
    return &w->content[id];
}

static inline void shadow_read_unit(const shadow *w, int id, shadow_kind kind, int unit,
                                    int microbatch)
{
    const shadow_content *c = shadow_read(w, id, kind);
    shadow_expect(w, c->unit == unit && c->microbatch == microbatch);
}

static inline size_t shadow_group_bytes(const shadow *w, int g)
{
    return (size_t)zero_partition_padded(&w->s->groups[g].partition) * sizeof(float);
}

static inline zero_unit_sizes shadow_sizes(const shadow *w, int u)
{
    const zero_plan_input *in = &w->s->input;
    return in->model->units[u].sizes(
        &in->model->units[u], w->program == ZERO_PROGRAM_GENERATE ? 1 : in->micro_batch,
        in->seq);
}

#define SHADOW_BYTES(floats) ((size_t)(floats) * sizeof(float))

/* ---- instructions ---- */

static inline void shadow_load(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    size_t bytes =
        2 * (size_t)(w->s->input.micro_batch * w->s->input.seq) * sizeof(int32_t);
    shadow_write(w, i->tokens, bytes,
                 (shadow_content){.kind = SHADOW_TOKENS, .microbatch = i->microbatch});
}

/* What forward and backward of a unit both read. */
static inline void shadow_read_inputs(const shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    const zero_unit *unit = &w->s->input.model->units[i->unit];
    for (int k = 0; k < unit->n_groups; k++) {
        shadow_expect(w, i->param[k] == w->s->groups[unit->groups[k]].param);
        shadow_read(w, i->param[k], SHADOW_PARAMETERS);
    }
    if (w->program != ZERO_PROGRAM_GENERATE)
        shadow_read_unit(w, i->tokens, SHADOW_TOKENS, 0, i->microbatch);
    if (i->unit > 0) shadow_read_unit(w, i->in, SHADOW_OUT, i->unit - 1, i->microbatch);
}

static inline void shadow_forward(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    zero_unit_sizes n = shadow_sizes(w, i->unit);
    shadow_content out = {SHADOW_OUT, i->unit, i->microbatch, 0};
    shadow_content saved = {SHADOW_SAVED, i->unit, i->microbatch, 0};
    shadow_scratch(w, i->work, SHADOW_BYTES(n.forward_work));
    if (w->program != ZERO_PROGRAM_STEP) {
        shadow_scratch(w, i->logits, SHADOW_BYTES(n.logits));
        if (w->program == ZERO_PROGRAM_EVALUATE)
            shadow_scratch(w, i->row_loss, SHADOW_BYTES(n.row_loss));
    }
    shadow_write(w, i->out, SHADOW_BYTES(n.out), out);
    shadow_write(w, i->saved, SHADOW_BYTES(n.saved), saved);
    shadow_read_inputs(w); /* last: outputs must not have landed on the inputs */
}

/* The first of a microbatch's contributions defines the gradient, the others add to it. */
static inline void shadow_add_gradient(shadow *w, int k)
{
    const zero_instruction *i = shadow_now(w);
    int g = w->s->input.model->units[i->unit].groups[k];
    shadow_content leaf = {SHADOW_LEAF, g, i->microbatch, 1};
    if (i->accumulate[k]) {
        shadow_read_unit(w, i->grad[k], SHADOW_LEAF, g, i->microbatch);
        leaf.count += w->content[i->grad[k]].count;
    } else {
        shadow_expect(w, w->content[i->grad[k]].kind < SHADOW_LEAF);
    }
    shadow_write(w, i->grad[k], shadow_group_bytes(w, g), leaf);
}

static inline void shadow_backward(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    const zero_model *model = w->s->input.model;
    zero_unit_sizes n = shadow_sizes(w, i->unit);
    int last = model->n_units - 1;
    size_t stream = SHADOW_BYTES(shadow_sizes(w, 0).out);
    if (i->unit < last)
        shadow_read_unit(w, i->stream, SHADOW_STREAM, i->unit + 1, i->microbatch);
    shadow_scratch(w, i->work, SHADOW_BYTES(n.backward_work));
    shadow_scratch(w, i->logits, SHADOW_BYTES(n.logits));
    shadow_scratch(w, i->row_loss, SHADOW_BYTES(n.row_loss));
    for (int k = 0; k < model->units[i->unit].n_groups; k++) shadow_add_gradient(w, k);
    shadow_write(w, i->stream, stream,
                 (shadow_content){SHADOW_STREAM, i->unit, i->microbatch, 0});
    if (n.saved > 0) shadow_read_unit(w, i->saved, SHADOW_SAVED, i->unit, i->microbatch);
    shadow_read_inputs(w);
}

static inline int shadow_readers(const shadow *w, int g)
{
    const zero_model *model = w->s->input.model;
    int n = 0;
    for (int u = 0; u < model->n_units; u++)
        for (int k = 0; k < model->units[u].n_groups; k++)
            n += model->units[u].groups[k] == g;
    return n;
}

/* How many microbatches' gradients a buffer holds, all of them complete. */
static inline int shadow_leaves(const shadow *w, int id, int g)
{
    const shadow_content *c = &w->content[id];
    shadow_expect(w, c->unit == g);
    if (c->kind == SHADOW_SUM) return c->count;
    shadow_read(w, id, SHADOW_LEAF);
    shadow_expect(w, c->count == shadow_readers(w, g));
    return 1;
}

static inline void shadow_accumulate(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    shadow_expect(w, i->buffer == w->s->groups[i->group].grad);
    shadow_expect(w, shadow_leaves(w, i->in, i->group) == 1);
    shadow_read_unit(w, i->in, SHADOW_LEAF, i->group, i->microbatch);
    int before = shadow_leaves(w, i->buffer, i->group);
    shadow_expect(w, before == i->microbatch);
    shadow_write(w, i->buffer, shadow_group_bytes(w, i->group),
                 (shadow_content){SHADOW_SUM, i->group, 0, before + 1});
}

static inline void shadow_reduce(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    zero_collective_spec spec = zero_schedule_collective(w->s, ZERO_OP_REDUCE, i->group);
    size_t staging = zero_collective_staging(&spec, zero_schedule_layout(w->s));
    shadow_expect(w, i->buffer == w->s->groups[i->group].grad);
    shadow_expect(w, shadow_leaves(w, i->buffer, i->group) == w->s->input.accumulation);
    if (i->staging != ZERO_NO_BUFFER)
        shadow_expect(w, !shadow_in_flight(w->content[i->staging].kind));
    shadow_write(w, i->staging, staging, (shadow_content){SHADOW_STAGING, i->group, 0, 0});
    shadow_write(w, i->buffer, shadow_group_bytes(w, i->group),
                 (shadow_content){SHADOW_REDUCING, i->group, 0, 0});
    w->reduces[i->group]++;
}

static inline void shadow_reduce_wait(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    shadow_read_unit(w, i->buffer, SHADOW_REDUCING, i->group, 0);
    w->content[i->buffer].kind = SHADOW_REDUCED;
    if (i->staging == ZERO_NO_BUFFER) return;
    if (w->s->input.n_ranks > 1)
        shadow_read_unit(w, i->staging, SHADOW_STAGING, i->group, 0);
    w->content[i->staging].kind = SHADOW_NOTHING;
}

static inline void shadow_gather(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    shadow_read_unit(w, i->buffer, SHADOW_REDUCED, i->group, 0);
    w->content[i->buffer].kind = SHADOW_GATHERING;
    w->gathers[i->group]++;
}

static inline void shadow_gather_wait(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    shadow_read_unit(w, i->buffer, SHADOW_GATHERING, i->group, 0);
    w->content[i->buffer].kind = SHADOW_GATHERED;
}

static inline void shadow_norm(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    shadow_expect(w, i->group == w->norms); /* groups in order: one sum on all ranks */
    shadow_read_unit(w, i->grad[0], SHADOW_GATHERED, i->group, 0);
    w->norms++;
}

static inline void shadow_update(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    const zero_group_state *g = &w->s->groups[i->group];
    shadow_expect(w, w->overflows == 1);
    shadow_read_unit(w, i->grad[0], SHADOW_GATHERED, i->group, 0);
    shadow_expect(w, i->param[0] == g->param && i->momentum == g->momentum &&
                         i->variance == g->variance);
    /* Nobody reads the parameters any more in this step. */
    w->content[i->param[0]].kind = SHADOW_NOTHING;
    w->updates[i->group]++;
}

static inline void shadow_execute(shadow *w)
{
    switch (shadow_now(w)->op) {
    case ZERO_OP_LOAD: shadow_load(w); break;
    case ZERO_OP_FORWARD: shadow_forward(w); break;
    case ZERO_OP_BACKWARD: shadow_backward(w); break;
    case ZERO_OP_ACCUMULATE: shadow_accumulate(w); break;
    case ZERO_OP_REDUCE: shadow_reduce(w); break;
    case ZERO_OP_REDUCE_WAIT: shadow_reduce_wait(w); break;
    case ZERO_OP_GATHER: shadow_gather(w); break;
    case ZERO_OP_GATHER_WAIT: shadow_gather_wait(w); break;
    case ZERO_OP_LOSS: w->losses++; break;
    case ZERO_OP_NORM: shadow_norm(w); break;
    case ZERO_OP_OVERFLOW:
        shadow_expect(w, w->norms == w->s->input.model->n_groups); /* the norm is known */
        w->overflows++;
        break;
    case ZERO_OP_UPDATE: shadow_update(w); break;
    case ZERO_OP_KINDS: shadow_expect(w, false); break;
    }
}

/* Walks the program to its end; release with shadow_free(). */
static inline void shadow_walk(shadow *w, const zero_schedule *s, zero_program_kind program)
{
    size_t groups = (size_t)s->input.model->n_groups;
    *w = (shadow){.s = s, .program = program};
    w->content = calloc((size_t)s->n_buffers, sizeof *w->content);
    w->reduces = calloc(3 * groups, sizeof *w->reduces);
    assert_true(w->content && w->reduces);
    w->gathers = w->reduces + groups;
    w->updates = w->gathers + groups;
    for (size_t g = 0; g < groups; g++)
        w->content[s->groups[g].param].kind = SHADOW_PARAMETERS;
    for (; w->at < s->programs[program].length; w->at++) shadow_execute(w);
}

static inline void shadow_free(shadow *w)
{
    free(w->reduces);
    free(w->content);
}
