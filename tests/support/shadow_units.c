/* The reads and writes of units. */
#include "base/number.h"
#include "sharding/schedule_device.h"
#include "support/model_writers.h"
#include "support/shadow_ops.h"

#define BYTES_OF(floats) ((size_t)(floats) * sizeof(float))

static const zero_unit *unit_now(const shadow *w)
{
    return &shadow_plan(w)->input.model->units[shadow_now(w)->unit];
}

static bool is_last_unit(const shadow *w)
{
    return shadow_now(w)->unit == shadow_plan(w)->input.model->n_units - 1;
}

static zero_unit_sizes sizes_of(const shadow *w, int u)
{
    const zero_schedule *s = shadow_plan(w);
    const zero_unit *unit = &s->input.model->units[u];
    return unit->sizes(unit, zero_program_samples(s, w->program),
                       zero_program_positions(s, w->program));
}

static size_t token_bytes(const shadow *w)
{
    const zero_schedule *s = shadow_plan(w);
    const zero_model *model = s->input.model;
    const int64_t positions =
        zero_program_samples(s, w->program) * zero_program_positions(s, w->program);
    const bool generates = zero_program_generates(w->program);
    return (size_t)positions * (model->input_bytes + (generates ? 0 : model->target_bytes));
}

static bool has_device(const shadow *w)
{
    return shadow_plan(w)->input.device;
}

/* Tokens pass through a slot of the host. The copy from the last one may still be in flight. */
static void fill_slot(shadow *w, term tokens)
{
    const zero_instruction *i = shadow_now(w);
    const zero_schedule *s = shadow_plan(w);
    shadow_expect(w, i->microbatch == 0 || s->n_tokens == ZERO_HOST_TOKENS);
    shadow_expect(w, i->host == s->first_tokens + i->microbatch % s->n_tokens);
    shadow_write(w, i->host, token_bytes(w), tokens);
}

void shadow_load(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    int64_t index =
        (int64_t)i->rank_stride * w->rank + (int64_t)i->microbatch_stride * i->microbatch;
    int64_t all = (int64_t)w->job->n_ranks * shadow_plan(w)->input.accumulation;
    shadow_expect(w, index >= 0 && index < all);
    for (int64_t k = 0; k < all; k++) shadow_expect(w, w->index[k] != index);
    *shadow_index_of(w, w->rank, i->microbatch) = index;
    if (zero_program_generates(w->program)) index = 0; /* of no batch */
    term tokens = truth_tokens(w->step, index);
    if (has_device(w)) fill_slot(w, tokens);
    shadow_write(w, i->tokens, token_bytes(w), tokens);
}

/* Parameters are whole, and those of the last update. */
static term read_group(shadow *w, term read, int g, int buffer)
{
    for (int p = 0; p < shadow_pieces(w); p++) {
        if (shadow_is_empty(w, g, p)) continue;
        term param = shadow_read_piece(w, g, buffer, p);
        shadow_expect(w, param == truth_read(&w->truth)[(int64_t)g * shadow_pieces(w) + p]);
        read = term_of(TERM_READ, read, param, 0);
    }
    return read;
}

static term read_params(shadow *w)
{
    const zero_unit *unit = unit_now(w);
    term read = 0;
    for (int k = 0; k < unit->n_groups; k++)
        read = read_group(w, read, unit->groups[k], shadow_now(w)->param[k]);
    return read;
}

static term read_tokens(shadow *w)
{
    if (zero_program_generates(w->program) && !has_device(w))
        return truth_tokens(w->step, 0);
    return shadow_read(w, shadow_now(w)->tokens, token_bytes(w));
}

static term read_input(shadow *w)
{
    int u = shadow_now(w)->unit;
    return u > 0 ? shadow_read(w, shadow_now(w)->in, BYTES_OF(sizes_of(w, u - 1).out)) : 0;
}

static void scratch(shadow *w, int buffer, int64_t floats)
{
    shadow_write(w, buffer, BYTES_OF(floats), term_of(TERM_JUNK, 0, 0, 0));
}

/* With a device the copy of the last head's rows has ended; that of these is in flight. */
static void note_loss(shadow *w, int64_t floats)
{
    const zero_instruction *i = shadow_now(w);
    bool copies = has_device(w) && floats > 0;
    int64_t rows = w->program == ZERO_PROGRAM_STEP ? shadow_plan(w)->input.accumulation : 1;
    if (copies && i->microbatch > 0) shadow_unlock_plain(w, i->row_loss);
    scratch(w, i->row_loss, floats);
    if (copies) shadow_lock_plain(w, i->row_loss);
    if (copies && i->microbatch == 0)
        shadow_lock_staging(w, i->host, (size_t)rows * BYTES_OF(floats));
    *shadow_loss_of(w, w->rank, shadow_now(w)->microbatch) = true;
}

/* ---- parts ---- */

static zero_pass pass_now(const shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    if (w->program == ZERO_PROGRAM_EVALUATE) return ZERO_PASS_EVALUATE;
    if (zero_program_generates(w->program)) return ZERO_PASS_GENERATE;
    return i->op == ZERO_OP_FORWARD     ? ZERO_PASS_FORWARD
           : i->op == ZERO_OP_RECOMPUTE ? ZERO_PASS_RECOMPUTE
                                        : ZERO_PASS_BACKWARD;
}

static zero_unit_part part_at(const shadow *w, int index)
{
    const zero_schedule *s = shadow_plan(w);
    if (index == ZERO_PART_ALL) return (zero_unit_part){.is_last = true};
    return unit_now(w)->part(unit_now(w), pass_now(w), zero_program_samples(s, w->program),
                             zero_program_positions(s, w->program), index);
}

static bool is_first_part(const shadow *w)
{
    return shadow_now(w)->part == ZERO_PART_ALL || shadow_now(w)->part == 0;
}

static bool is_last_part(const shadow *w)
{
    return part_at(w, shadow_now(w)->part).is_last;
}

static term between_parts(term call, int part, int buffer)
{
    return term_of(TERM_PART, call, (term)part, (term)buffer);
}

/* All parts of a pass share a buffer, which keeps what the part before this one left. */
static void carry(shadow *w, int buffer, int64_t floats, term call)
{
    int part = shadow_now(w)->part;
    if (floats == 0) return;
    if (!is_first_part(w))
        shadow_expect(w, shadow_read(w, buffer, BYTES_OF(floats)) ==
                             between_parts(call, part - 1, buffer));
    shadow_write(w, buffer, BYTES_OF(floats), between_parts(call, part, buffer));
}

/* A part that waits reads what the TP group made of the last part that joined. */
static void take_joined(shadow *w, term call)
{
    const zero_instruction *i = shadow_now(w);
    int ranks = shadow_plan(w)->input.model->share.ranks, from = i->part - 1;
    zero_unit_part part = part_at(w, i->part);
    shadow_expect(w, (i->joined != ZERO_NO_BUFFER) == part.waits);
    if (!part.waits) return;
    while (part_at(w, from).join == ZERO_JOIN_NONE) from--;
    part = part_at(w, from);
    int64_t n = part.join == ZERO_JOIN_GATHER ? part.count * ranks : part.count;
    term joint = term_of(TERM_JOINT, call, (term)from, 0);
    shadow_expect(w, shadow_read(w, i->joined, BYTES_OF(n)) ==
                         (ranks > 1 ? term_of(TERM_JOINED, joint, 0, 0) : joint));
}

static void give_joint(shadow *w, term call)
{
    const zero_instruction *i = shadow_now(w);
    zero_unit_part part = part_at(w, i->part);
    bool joins = part.join != ZERO_JOIN_NONE;
    shadow_expect(w, (i->joint != ZERO_NO_BUFFER) == joins);
    if (joins)
        shadow_write(w, i->joint, BYTES_OF(part.count),
                     term_of(TERM_JOINT, call, (term)i->part, 0));
}

/* ---- calls ---- */

static term call_forward(shadow *w)
{
    return term_call(shadow_now(w)->unit, read_tokens(w), read_input(w), read_params(w));
}

/* A recomputed output is known already: it goes to scratch, or is left out. */
static void write_output(shadow *w, int64_t floats, term call)
{
    const zero_instruction *i = shadow_now(w);
    bool without = i->op == ZERO_OP_RECOMPUTE && unit_now(w)->recompute_without_out;
    if (without)
        shadow_expect(w, i->out == ZERO_NO_BUFFER);
    else
        carry(w, i->out, floats, call);
    if (!without && is_last_part(w))
        shadow_write(w, i->out, BYTES_OF(floats), term_of(TERM_OUT, call, 0, 0));
}

/* TOKEN finds the cache as GENERATE or the last TOKEN left it. */
static void keep_text(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    const zero_schedule *s = shadow_plan(w);
    const zero_unit *unit = unit_now(w);
    const term kept = term_of(TERM_JUNK, (term)(2 + i->unit), 0, 0);
    int64_t n = s->input.texts * unit->sizes(unit, 1, s->input.seq).cache;
    bool keeps = zero_program_generates(w->program) && zero_schedule_has_cache(s) && n > 0;
    shadow_expect(w, keeps == (i->cache != ZERO_NO_BUFFER));
    if (!keeps) return;
    if (w->program == ZERO_PROGRAM_TOKEN)
        shadow_expect(w, shadow_read(w, i->cache, BYTES_OF(n)) == kept);
    shadow_write(w, i->cache, BYTES_OF(n), kept);
}

/* Logits of FORWARD in the last unit, without a backward pass: while a device makes texts, those of
 * the samples' last positions alone. */
static int64_t logits_of(const shadow *w, int64_t all)
{
    const zero_schedule *s = shadow_plan(w);
    if (!zero_program_generates(w->program) || !has_device(w)) return all;
    return zero_min(all, s->input.model->vocab * zero_program_samples(s, w->program));
}

/* FORWARD and RECOMPUTE. */
void shadow_forward(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    zero_unit_sizes n = sizes_of(w, i->unit);
    term call = call_forward(w);
    shadow_expect(w, w->overflows == 0);
    take_joined(w, call);
    carry(w, i->work, n.forward_work, call);
    if (is_last_unit(w) && w->program != ZERO_PROGRAM_STEP)
        carry(w, i->logits, logits_of(w, n.logits), call);
    if (is_last_unit(w) && zero_program_generates(w->program) && has_device(w))
        scratch(w, i->host, logits_of(w, n.logits));
    if (is_last_unit(w) && w->program == ZERO_PROGRAM_EVALUATE) note_loss(w, n.row_loss);
    keep_text(w);
    write_output(w, n.out, call);
    carry(w, i->saved, n.saved, call);
    if (is_last_part(w))
        shadow_write(w, i->saved, BYTES_OF(n.saved), term_of(TERM_SAVED, call, 0, 0));
    give_joint(w, call);
    shadow_expect(w, call == call_forward(w)); /* no output has landed on an input */
}

static term call_backward(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    zero_unit_sizes n = sizes_of(w, i->unit);
    term tokens = read_tokens(w), in = read_input(w), stream = 0;
    if (!is_last_unit(w)) stream = shadow_read(w, i->stream, BYTES_OF(n.out));
    term saved = shadow_read(w, i->saved, BYTES_OF(n.saved));
    term read = unit_now(w)->backward_without_params ? 0 : read_params(w);
    return term_backward(tokens, in, saved, stream, read);
}

/* A gradient that is set may be written by any part. */
static void carry_gradient(shadow *w, int k, term backward)
{
    const zero_instruction *i = shadow_now(w);
    int g = unit_now(w)->groups[k], buffer = i->grad[k];
    for (int p = 0; p < shadow_pieces(w); p++) {
        if (shadow_is_empty(w, g, p)) continue;
        term x = between_parts(backward, i->part - 1, buffer);
        if (i->accumulate[k] || !is_first_part(w)) {
            term is = shadow_read_piece(w, g, buffer, p);
            if (!i->accumulate[k]) shadow_expect(w, is == x);
        }
        if (!i->accumulate[k])
            shadow_write_piece(w, g, buffer, p, between_parts(backward, i->part, buffer));
    }
}

/* The first contribution of a microbatch defines the gradient; the others add to it. */
static void add_gradient(shadow *w, int k, term backward)
{
    const zero_instruction *i = shadow_now(w);
    int g = unit_now(w)->groups[k];
    bool is_first = i->unit == first_writer(shadow_plan(w)->input.model, g);
    shadow_expect(w, i->accumulate[k] == !is_first);
    for (int p = 0; p < shadow_pieces(w); p++) {
        if (shadow_is_empty(w, g, p)) continue;
        term x = term_gradient(backward, k, p);
        if (!is_first) x = term_add(shadow_read_piece(w, g, i->grad[k], p), x);
        shadow_write_piece(w, g, i->grad[k], p, x);
    }
}

void shadow_backward(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    zero_unit_sizes n = sizes_of(w, i->unit);
    term call = call_backward(w);
    shadow_expect(w, w->overflows == 0);
    take_joined(w, call);
    carry(w, i->work, n.backward_work, call);
    carry(w, i->logits, n.logits, call);
    if (is_last_unit(w)) note_loss(w, n.row_loss);
    for (int k = 0; k < unit_now(w)->n_groups; k++) carry_gradient(w, k, call);
    for (int k = 0; k < unit_now(w)->n_groups && is_last_part(w); k++)
        add_gradient(w, k, call);
    give_joint(w, call);
    shadow_expect(w, call == call_backward(w));
    if (i->unit > 0 && is_last_part(w))
        shadow_write(w, i->stream, BYTES_OF(sizes_of(w, i->unit - 1).out),
                     term_of(TERM_STREAM, call, 0, 0));
}
