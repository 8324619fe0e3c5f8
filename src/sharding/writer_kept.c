/* The outputs of units between their forward pass and the backward pass that reads them.
 *
 *     in memory        FORWARD u+1, ..., BACKWARD u+1 read out[u], which lives that long
 *     in the file      FORWARD u+1, SAVE u, FORWARD u+2, SAVE_WAIT u, ...
 *                      RESTORE u, BACKWARD u+3, BACKWARD u+2, RESTORE_WAIT u, BACKWARD u+1
 *     in pieces        FORWARD u+1, KEEP u, FORWARD u+2, ...
 *                      COLLECT u, BACKWARD u+2, COLLECT_WAIT u, RECOMPUTE u+1, BACKWARD u+1
 *     pieces there     FORWARD u+1, KEEP u, SAVE u, FORWARD u+2, SAVE_WAIT u, ...
 *                      RESTORE u, BACKWARD u+3, RESTORE_WAIT u, COLLECT u, BACKWARD u+2,
 *                      COLLECT_WAIT u, RECOMPUTE u+1, BACKWARD u+1
 *
 * The pieces are the paper's P_a (section 6.1): all ranks of a TP group have the same
 * output, so each of T ranks keeps 1/T of it until they collect it again. Only inputs of
 * units that are computed again are cut. The last unit reads its input again at once, and
 * units that save nothing are rare.
 *
 *                      KEEP writes                      COLLECT writes
 *     messages         own [n / T]                      own [n]
 *     one node         TP_NODE [n], its own piece       nothing: all pieces are in place
 *     several nodes,   TP_PART [n / T]                  TP_NODE [n]
 *     or with a file
 *
 * In the second row a rank has no whole copy of its own, and COLLECT moves nothing.
 * schedule_join.c says why no rank overwrites there what another one still reads. */

#include "base/fail.h"
#include "sharding/offload.h"
#include "sharding/schedule_device.h"
#include "sharding/schedule_exchange.h"
#include "sharding/writer.h"

#define AHEAD 3 /* units between RESTORE and the use; the last ones stay in memory */

int64_t zero_write_out_floats(const zero_writer *w, int u)
{
    const zero_unit *unit = &w->model->units[u];
    const zero_unit_sizes sizes = unit->sizes(unit, w->B, w->T);
    return zero_unit_out_room(unit, &sizes);
}

static int tp_ranks(const zero_writer *w)
{
    return w->model->share.ranks;
}

/* True if a unit of this pipeline stage gives the output, or reads it. */
static bool is_here(const zero_writer *w, int u)
{
    return u >= 0 && u + 1 >= w->s->pipe.first_unit;
}

/* True if unit u's output waits for a unit that is computed again. */
static bool is_kept(const zero_writer *w, int u)
{
    return is_here(w, u) && u + 1 < w->s->pipe.end_unit &&
           zero_write_recomputes(w, u + 1) && zero_write_out_floats(w, u) > 0;
}

static bool is_cut(const zero_writer *w, int u)
{
    return w->in->partition_activations && is_kept(w, u);
}

static bool is_saved(const zero_writer *w, int u)
{
    const zero_plan_input *in = w->in;
    return w->program == ZERO_PROGRAM_STEP && in->offload_activations && is_here(w, u) &&
           u + AHEAD < w->s->pipe.end_unit && zero_write_out_floats(w, u) > 0;
}

/* True if KEEP writes where units read: the TP group is on one node, which has one copy. */
static bool keeps_in_place(const zero_writer *w)
{
    bool one_node = zero_schedule_tp_layout(w->s)->n_nodes == 1;
    return one_node && zero_schedule_join_shares(w->s) && !w->in->offload_activations;
}

/* ---- buffers ---- */

static size_t length_of(int64_t floats, bool is_moved)
{
    size_t bytes = (size_t)floats * sizeof(float);
    return is_moved ? zero_offload_padded(bytes) : bytes;
}

int zero_write_output(zero_writer *w, int u)
{
    bool is_step = w->program == ZERO_PROGRAM_STEP, cut = is_cut(w, u);
    zero_class cls = is_kept(w, u) && !cut ? ZERO_CLASS_KEPT : ZERO_CLASS_ACTIVATIONS;
    return zero_write_buffer(w, cls, zero_schedule_space(w->s, cls),
                             length_of(zero_write_out_floats(w, u),
                                       is_step && w->in->offload_activations && !cut));
}

/* The elements of this rank's piece. */
static zero_range piece_of(const zero_writer *w, int u)
{
    int64_t n = zero_write_out_floats(w, u) / tp_ranks(w);
    int64_t begin = n * w->model->share.rank;
    return (zero_range){begin, begin + n};
}

/* ---- the file ---- */

/* The buffer that waits: the whole output, or this rank's piece. */
static int *held(zero_writer *w, int u)
{
    return is_cut(w, u) ? &w->kept[u] : &w->out[u];
}

static void move(zero_writer *w, zero_op op, int u)
{
    zero_instruction *i = zero_write(w, op);
    i->unit = u;
    i->file = w->saved_file[u];
    i->buffer = *held(w, u);
}

/* After a failure nothing is held: a piece that cannot be cut has no buffer, and the plan
 * is refused. */
static void save(zero_writer *w, int u)
{
    if (w->s->status != ZERO_OK) return;
    if (w->saved_file[u] == ZERO_NO_BUFFER)
        w->saved_file[u] =
            zero_offload_add_block(w->s, ZERO_CLASS_KEPT, w->s->buffers[*held(w, u)].bytes);
    move(w, ZERO_OP_SAVE, u);
    if (w->in->serial) move(w, ZERO_OP_SAVE_WAIT, u);
}

static void restore(zero_writer *w, int u)
{
    if (w->s->status != ZERO_OK) return;
    zero_buffer b = w->s->buffers[*held(w, u)];
    b.first = b.last = 0;
    *held(w, u) = zero_schedule_add_buffer(w->s, b);
    move(w, ZERO_OP_RESTORE, u);
    if (w->in->serial) move(w, ZERO_OP_RESTORE_WAIT, u);
}

static void await_restored(zero_writer *w, int u)
{
    if (is_saved(w, u) && !w->in->serial) move(w, ZERO_OP_RESTORE_WAIT, u);
}

/* ---- pieces ---- */

/* Pieces are whole floats: two numbers of 16 bits each. A JOIN has to stand in the forward
 * pass of the unit that reads them, the last one that was written. */
static zero_status check_keep(const zero_writer *w, int u)
{
    const zero_unit *unit = &w->model->units[u];
    const zero_program *p = &w->s->programs[w->program];
    int in_float = (int)(sizeof(float) / zero_type_size(unit->activations));
    ZERO_FAIL_IF(zero_write_out_floats(w, u) % tp_ranks(w) != 0, ZERO_ERR_INVALID,
                 "unit '%s' gives %" PRId64
                 " numbers of %s: --partition-activations needs a multiple of %d, %d for "
                 "each of the %d ranks of a TP group; give another --micro-batch or --seq",
                 unit->name, unit->sizes(unit, w->B, w->T).out,
                 zero_type_name(unit->activations), in_float * tp_ranks(w), in_float,
                 tp_ranks(w));
    for (int at = p->length - 1; at >= 0; at--) {
        const zero_instruction *i = &p->code[at];
        if (i->unit == u + 1 && i->op == ZERO_OP_JOIN) return ZERO_OK;
        if (i->unit == u + 1 && i->op == ZERO_OP_FORWARD && i->part <= 0) break;
    }
    return zero_fail(ZERO_ERR_INVALID,
                     "unit '%s' joins nothing in its forward pass: --partition-activations "
                     "needs a join there, so that no rank of the TP group still reads the "
                     "memory where the unit's input is kept; leave the option out",
                     unit[1].name);
}

int zero_write_place_kept(zero_writer *w, int u)
{
    if (!is_cut(w, u - 1) || !keeps_in_place(w)) return ZERO_NO_BUFFER;
    w->kept[u - 1] = zero_write_buffer(w, ZERO_CLASS_KEPT, ZERO_SPACE_TP_NODE,
                                       length_of(zero_write_out_floats(w, u - 1), false));
    return w->kept[u - 1];
}

static void keep(zero_writer *w, int u)
{
    /* After a failure nothing is kept. */
    if (w->s->status == ZERO_OK) w->s->status = check_keep(w, u);
    if (w->s->status != ZERO_OK) return;
    if (!keeps_in_place(w)) {
        bool shares = zero_schedule_join_shares(w->s);
        zero_range piece = piece_of(w, u);
        int buffer = zero_write_buffer(
            w, ZERO_CLASS_KEPT, shares ? ZERO_SPACE_TP_PART : ZERO_SPACE_OWN,
            length_of(zero_range_len(piece), w->in->offload_activations));
        if (buffer != ZERO_NO_BUFFER) w->s->buffers[buffer].begin = piece.begin;
        w->kept[u] = buffer;
    }
    zero_instruction *i = zero_write(w, ZERO_OP_KEEP);
    i->unit = u;
    i->in = w->out[u];
    i->buffer = w->kept[u];
    i->range = piece_of(w, u);
    w->out[u] = ZERO_NO_BUFFER;
}

static void collect(zero_writer *w, int u)
{
    bool shares = zero_schedule_join_shares(w->s);
    int whole = keeps_in_place(w)
                    ? w->kept[u]
                    : zero_write_buffer(w, ZERO_CLASS_ACTIVATIONS,
                                        shares ? ZERO_SPACE_TP_NODE : ZERO_SPACE_OWN,
                                        length_of(zero_write_out_floats(w, u), false));
    if (w->s->status != ZERO_OK) return;
    zero_instruction *i = zero_write(w, ZERO_OP_COLLECT);
    i->unit = u;
    i->in = w->kept[u];
    i->buffer = w->out[u] = whole;
    i->range = piece_of(w, u);
    i->join =
        zero_schedule_add_join(w->s, (zero_join_exchange){.kind = ZERO_JOIN_GATHER,
                                                          .collects = true,
                                                          .count = zero_range_len(i->range),
                                                          .in = i->in,
                                                          .out = i->buffer});
    if (i->join < 0) return;
    i->staging = zero_write_join_staging(w, i->join);
    w->collecting = *i;
    if (w->in->serial) zero_write_wait(w, ZERO_OP_COLLECT_WAIT, &w->collecting);
}

/* ---- passes ---- */

void zero_write_keep_after(zero_writer *w, int u)
{
    bool serial = w->in->serial;
    if (is_saved(w, u - 2) && !serial) move(w, ZERO_OP_SAVE_WAIT, u - 2);
    if (is_cut(w, u - 1)) keep(w, u - 1);
    if (is_saved(w, u - 1)) save(w, u - 1);
}

/* A COLLECT ends before the next one begins. The last unit of a pipeline stage has no pass
 * before it that hides the first one. */
void zero_write_bring_back_for(zero_writer *w, int u)
{
    bool serial = w->in->serial;
    if (is_saved(w, u - AHEAD)) restore(w, u - AHEAD);
    if (is_cut(w, u - 1)) {
        if (u == w->s->pipe.end_unit - 1) collect(w, u - 1);
        if (!serial) zero_write_wait(w, ZERO_OP_COLLECT_WAIT, &w->collecting);
    } else {
        await_restored(w, u - 1);
    }
    if (!is_cut(w, u - 2)) return;
    await_restored(w, u - 2);
    collect(w, u - 2);
}
