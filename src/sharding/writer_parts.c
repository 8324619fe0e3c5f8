/* The passes of a shared model's units, part by part.
 *
 *     FORWARD 5.0, JOIN 5, JOIN_WAIT 5, FORWARD 5.1, JOIN 5, JOIN_WAIT 5, FORWARD 5.2
 *     BACKWARD 5.0, JOIN 5, BACKWARD 5.1, JOIN_WAIT 5, BACKWARD 5.2, ...
 *
 * All parts of a pass name the same buffers. A JOIN has two of its own: a part writes
 * `joint`, and the part that waits reads `joined`. They are one buffer if the JOIN works in
 * place, and if there is no other rank, so no JOIN: then the program is the same but for
 * JOIN and its wait. */

#include "base/fail.h"
#include "nn/share.h"
#include "sharding/schedule_exchange.h"
#include "sharding/writer.h"

#define MAX_PARTS (INT64_C(1) << 20) /* of a pass; a list that never ends is found there */
#define MAX_COUNT (INT64_C(1) << 48)

/* A pass in the making. */
struct pass {
    zero_writer *w;
    const zero_unit *unit;
    zero_pass kind;
    zero_instruction whole; /* what all parts have in common */
    zero_instruction join;  /* the last JOIN; at one rank it is not written */
    bool is_joining;        /* no part has read its result yet */
    bool is_in_flight;      /* its JOIN_WAIT is still to be written */
};

/* ---- the contract of unit->part() ---- */

static const char *const pass_names[] = {
    [ZERO_PASS_FORWARD] = "forward",   [ZERO_PASS_RECOMPUTE] = "recompute",
    [ZERO_PASS_BACKWARD] = "backward", [ZERO_PASS_EVALUATE] = "evaluate",
    [ZERO_PASS_GENERATE] = "generate",
};

/* The part breaks a rule of zero/model.h. */
static bool refuse(struct pass *p, int64_t index, const char *what)
{
    p->w->s->status = zero_fail(ZERO_ERR_INVALID,
                                "unit '%s', part %" PRId64
                                " of its %s pass %s; see zero_unit_part in zero/model.h",
                                p->unit->name, index, pass_names[p->kind], what);
    return false;
}

static bool is_sound(struct pass *p, const zero_unit_part *part, int64_t index)
{
    bool joins = part->join != ZERO_JOIN_NONE;
    int ranks = p->w->model->share.ranks;
    bool fits = part->count >= 1 && part->count <= MAX_COUNT &&
                (part->join == ZERO_JOIN_GATHER || part->count % ranks == 0);
    if (part->waits && !p->is_joining)
        return refuse(p, index,
                      "waits, but no part has joined since the last one that waits");
    if (joins && p->is_joining && !part->waits)
        return refuse(p, index, "joins before a part has waited for the last join");
    if (joins && !fits) {
        p->w->s->status =
            zero_fail(ZERO_ERR_INVALID,
                      "unit '%s', part %" PRId64 " of its %s pass joins %" PRId64
                      " floats: expected 1 to 2^48, for a sum a multiple of the %d ranks "
                      "of a TP group",
                      p->unit->name, index, pass_names[p->kind], part->count, ranks);
        return false;
    }
    if (part->is_last && (joins || (p->is_joining && !part->waits)))
        return refuse(p, index,
                      "is the last one, but a join is left for which no part waits");
    if (!part->is_last && index == MAX_PARTS - 1)
        return refuse(p, index, "is not the last one: expected at most 2^20 parts");
    return true;
}

/* ---- JOIN ---- */

int zero_write_join_staging(zero_writer *w, int join)
{
    return zero_write_staging(
        w, zero_exchange_staging(w->s, ZERO_OP_JOIN, join,
                                 zero_exchange_collectives(w->s, ZERO_OP_JOIN, join)));
}

static void begin_join(struct pass *p, const zero_unit_part *part, int64_t index)
{
    zero_schedule *s = p->w->s;
    if (s->model->share.ranks == 1 || s->status != ZERO_OK) return;
    zero_instruction *i = zero_write(p->w, ZERO_OP_JOIN);
    i->unit = p->whole.unit;
    i->part = (int)index;
    i->in = p->join.in;
    i->buffer = p->join.buffer;
    i->join = zero_schedule_add_join(
        s, (zero_join_exchange){
               .kind = part->join, .count = part->count, .in = i->in, .out = i->buffer});
    if (i->join < 0) return;
    i->staging = zero_write_join_staging(p->w, i->join);
    p->join = *i;
    p->is_in_flight = true;
}

static void finish_join(struct pass *p)
{
    if (p->is_in_flight) zero_write_wait(p->w, ZERO_OP_JOIN_WAIT, &p->join);
    p->is_in_flight = false;
}

/* ---- parts ---- */

void zero_write_parts(zero_writer *w)
{
    zero_program *program = &w->s->programs[w->program];
    if (!zero_share_has_parts(&w->model->share) || w->s->status != ZERO_OK) return;
    struct pass p = {.w = w, .whole = program->code[--program->length]};
    p.kind = zero_program_pass(w->program, p.whole.op);
    p.unit = &w->model->units[p.whole.unit];
    zero_unit_part part = {0};
    for (int64_t k = 0; !part.is_last && w->s->status == ZERO_OK; k++) {
        part = p.unit->part(p.unit, p.kind, w->B, w->T, k);
        if (is_sound(&p, &part, k)) {
            /* A part may read one join's result and begin the next: these are four
             * buffers. */
            bool joins = part.join != ZERO_JOIN_NONE;
            if (part.waits) finish_join(&p);
            int joined = part.waits ? p.join.buffer : ZERO_NO_BUFFER;
            if (joins) {
                /* The buffers of the JOIN that begins after a part. */
                const zero_schedule *s = p.w->s;
                int ranks = s->model->share.ranks;
                bool shares = ranks > 1 && zero_schedule_join_shares(s);
                bool gathers = part.join == ZERO_JOIN_GATHER && ranks > 1;
                size_t bytes = (size_t)part.count * sizeof(float);
                p.join.in = p.join.buffer =
                    zero_write_buffer(w, ZERO_CLASS_WORKSPACE,
                                      shares ? ZERO_SPACE_TP_PART : ZERO_SPACE_OWN, bytes);
                if (shares || gathers)
                    p.join.buffer =
                        zero_write_buffer(w, ZERO_CLASS_WORKSPACE,
                                          shares ? ZERO_SPACE_TP_NODE : ZERO_SPACE_OWN,
                                          gathers ? bytes * (size_t)ranks : bytes);
            }
            zero_instruction *i = zero_write(p.w, p.whole.op);
            *i = p.whole;
            i->part = (int)k;
            i->joined = joined;
            if (joins) i->joint = p.join.in;
            p.is_joining = joins || (p.is_joining && !part.waits);
            if (joins) begin_join(&p, &part, k);
            if (p.w->in->serial) finish_join(&p);
        }
    }
}
