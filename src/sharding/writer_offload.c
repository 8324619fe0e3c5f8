/* The stream of optimizer states, and transfers to and from the file. */
#include "base/number.h"
#include "sharding/checks.h"
#include "sharding/holdings.h"
#include "sharding/offload.h"
#include "sharding/schedule_exchange.h"
#include "sharding/writer.h"

/* ---- the stream of optimizer states ----
 *
 * All blocks of a program, in the order of their UPDATEs. Block k is in slot k modulo the
 * number of slots. While one block is updated, half of the slots are read ahead; the others
 * are being written.
 *
 *     STORE_WAIT k-2, FETCH k+2, FETCH_WAIT k, UPDATE k, STORE k,
 *     STORE_WAIT k-1, FETCH k+3, FETCH_WAIT k+1, UPDATE k+1, STORE k+1, ... */

static int n_slots(const zero_writer *w)
{
    return w->in->serial ? 1 : w->s->n_slots;
}

static zero_instruction *transfer(zero_writer *w, zero_op op, int k)
{
    const zero_writer_block *block = &w->blocks.list[k];
    const zero_schedule *s = w->s;
    zero_instruction *i = zero_write_group(w, op, block->group, ZERO_NO_BUFFER,
                                           s->first_slot + k % n_slots(w));
    i->file = s->groups[block->group].first_block + block->number;
    i->range = zero_offload_range(s, block->group, block->number);
    bool is_early = w->in->offload == ZERO_OFFLOAD_BACKWARD;
    i->after = is_early && zero_offload_has_parameters(w->s, block->group)
                   ? w->final_at[block->group]
                   : w->after;
    return i;
}

static void await_stores(zero_writer *w, int end)
{
    for (; w->blocks.stored < end; w->blocks.stored++)
        transfer(w, ZERO_OP_STORE_WAIT, w->blocks.stored);
}

int zero_write_after(const zero_writer *w, int g)
{
    bool is_early = w->in->offload == ZERO_OFFLOAD_BACKWARD;
    return is_early ? w->final_at[g] : w->after;
}

void zero_write_stream(zero_writer *w, int g)
{
    zero_writer_stream *stream = &w->blocks;
    int ahead = n_slots(w) / 2;
    if (w->in->offload_host) { /* all of its states lie in memory */
        zero_write_update_block(w, g)->after = zero_write_after(w, g);
        return;
    }
    for (; stream->next < stream->n; stream->next++) {
        int k = stream->next;
        if (stream->list[k].group != g) return;
        int end = (int)zero_min(k + ahead + 1, stream->n);
        for (; w->blocks.fetched < end; w->blocks.fetched++) {
            await_stores(w, w->blocks.fetched + 1 - n_slots(w));
            transfer(w, ZERO_OP_FETCH, w->blocks.fetched);
        }
        transfer(w, ZERO_OP_FETCH_WAIT, k);
        const zero_writer_block *block = &w->blocks.list[k];
        zero_range held = zero_states_held(w->s, block->group);
        zero_instruction *i = zero_write_update_block(w, block->group);
        i->file = w->groups[block->group].first_block + block->number;
        i->buffer = w->s->first_slot + k % n_slots(w);
        i->range =
            zero_range_overlap(zero_offload_range(w->s, block->group, block->number), held);
        i->after = zero_write_after(w, block->group);
        transfer(w, ZERO_OP_STORE, k);
    }
}

void zero_write_whole_stream(zero_writer *w)
{
    for (int k = 0; k < w->n_order; k++) zero_write_stream(w, w->order[k]);
}

void zero_write_finish_stream(zero_writer *w)
{
    await_stores(w, w->blocks.next);
}

/* ---- lazy updates ---- */

/* The stream is in the order in which groups become due. */
void zero_write_due(zero_writer *w, int g)
{
    for (; w->is_due[g]; w->n_due++) {
        int first = w->order[w->n_due];
        w->is_due[first] = false;
        zero_write_update_of(w, first);
        if (zero_is_published(w->s, first)) w->arrived[first] = w->in->serial;
    }
}

void zero_write_due_of_unit(zero_writer *w, int u, bool only_published)
{
    const zero_unit *unit = &w->model->units[u];
    for (int k = 0; k < unit->n_groups; k++)
        if (!only_published || zero_is_published(w->s, unit->groups[k]))
            zero_write_due(w, unit->groups[k]);
}

/* ---- parameters ----
 *
 *     STORE_WAIT of the group's blocks, FETCH_PARAM g, ..., FETCH_PARAM_WAIT g, GATHER g */

static void move_piece(zero_writer *w, zero_op op, int g)
{
    zero_write_group(w, op, g, ZERO_NO_BUFFER, w->piece[g]);
}

void zero_write_fetch_params(zero_writer *w, int g)
{
    bool is_here = w->piece[g] != ZERO_NO_BUFFER || w->param[g] != ZERO_NO_BUFFER;
    if (is_here || !zero_offload_has_parameters(w->s, g)) return;
    zero_write_due(w, g);
    /* The blocks of a group are written before they are read. */
    int last = w->blocks.next - 1;
    while (last >= w->blocks.stored && w->blocks.list[last].group != g) last--;
    await_stores(w, last + 1);
    /* The place of a piece: its blocks lie there end to end. Pieces of `owner` differ
     * in length: no neighbour reads them, and in the window they would move what lies
     * after them. */
    const zero_group_state *state = &w->groups[g];
    bool slice = w->in->partition == ZERO_PARTITION_SLICE;
    bool is_read = slice && zero_schedule_shares(w->s);
    size_t bytes = 0;
    for (int k = 0; k < state->n_blocks; k++)
        bytes += w->s->buffers[state->first_param_block + k].bytes;
    int buffer =
        zero_hold_buffer(w->s, w->program, ZERO_CLASS_PARAMETERS, g, ZERO_HOLD_PIECE,
                         is_read ? ZERO_SPACE_PART : ZERO_SPACE_OWN, w->in->type);
    if (buffer != ZERO_NO_BUFFER) w->s->buffers[buffer].bytes = bytes;
    w->piece[g] = buffer;
    move_piece(w, ZERO_OP_FETCH_PARAM, g);
    if (w->in->serial) move_piece(w, ZERO_OP_FETCH_PARAM_WAIT, g);
}

int zero_write_await_piece(zero_writer *w, int g)
{
    if (!zero_offload_has_parameters(w->s, g)) return w->groups[g].param;
    zero_write_fetch_params(w, g);
    int piece = w->piece[g];
    if (!w->in->serial) move_piece(w, ZERO_OP_FETCH_PARAM_WAIT, g);
    w->piece[g] = ZERO_NO_BUFFER;
    return piece;
}
