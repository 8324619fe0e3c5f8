/* The file of each rank: blocks of optimizer states and parameters, and outputs of units. */

#include "support/shadow_ops.h"

/* ---- contents ---- */

/* The elements of block k of group g, padding included. */
static zero_range range_of(const shadow *w, int g, int k)
{
    const zero_partition *part = &shadow_plan(w)->groups[g].partition;
    int64_t first =
        shadow_updates_all(w) ? 0 : zero_partition_piece(part, shadow_own(w)).begin;
    int64_t end = shadow_updates_all(w) ? part->padded
                                        : zero_partition_piece(part, shadow_own(w)).end;
    int64_t begin = first + ZERO_OFFLOAD_BLOCK * k;
    shadow_expect(w, begin < end);
    return (zero_range){begin, zero_min(begin + ZERO_OFFLOAD_BLOCK, end)};
}

static bool has_piece(const shadow *w, int g, int p, zero_range range)
{
    zero_range shard = zero_partition_shard(&shadow_plan(w)->groups[g].partition, p);
    return !zero_range_is_empty(zero_range_overlap(range, shard));
}

/* The states of a block: those of all pieces that it has a part of. fp32: without masters. */
static term states_of(const shadow *w, int g, int k, const term *master,
                      const term *momentum, const term *variance)
{
    bool is_exact = shadow_plan(w)->input.type == ZERO_FP32;
    term all = term_of(TERM_BLOCK, (term)g, (term)k, 0);
    for (int p = 0; p < shadow_pieces(w); p++) {
        int64_t at = (int64_t)g * shadow_pieces(w) + p;
        if (!has_piece(w, g, p, range_of(w, g, k))) continue;
        all = term_of(TERM_BLOCK, all, is_exact ? 0 : master[at], 0);
        all = term_of(TERM_BLOCK, all, momentum[at], variance[at]);
    }
    return all;
}

/* The parameters of a block, which are part of this rank's piece. */
static term params_of(const shadow *w, int g, int k, const term *param)
{
    bool is_padding = !has_piece(w, g, shadow_own(w), range_of(w, g, k));
    return is_padding ? term_of(TERM_BLOCK, 1, 0, 0)
                      : param[(int64_t)g * shadow_pieces(w) + shadow_own(w)];
}

/* True if this rank's piece of the group lies in the file. */
static bool has_params(const shadow *w, int g)
{
    return shadow_plan(w)->groups[g].param == ZERO_NO_BUFFER;
}

/* ---- transfers ---- */

static shadow_block *block_of(const shadow *w, int file)
{
    const zero_schedule *s = shadow_plan(w);
    shadow_expect(w, file >= 0 && file < s->n_buffers);
    shadow_expect(w, s->buffers[file].space == ZERO_SPACE_FILE);
    return &w->file[w->rank].blocks[file];
}

static void begin(shadow *w, int file, shadow_lock lock)
{
    shadow_file *f = &w->file[w->rank];
    shadow_block *block = block_of(w, file);
    shadow_expect(w, block->lock == SHADOW_FREE);
    if (lock == SHADOW_READING) shadow_expect(w, block->value != 0);
    block->lock = lock;
    f->n_in_flight++;
    shadow_expect(w, f->n_in_flight <= zero_offload_in_flight(shadow_plan(w)));
}

static void end(shadow *w, int file, shadow_lock lock)
{
    shadow_block *block = block_of(w, file);
    shadow_expect(w, block->lock == lock);
    block->lock = SHADOW_FREE;
    w->file[w->rank].n_in_flight--;
}

static term begin_read(shadow *w, int file)
{
    begin(w, file, SHADOW_READING);
    return block_of(w, file)->value;
}

static void begin_write(shadow *w, int file, term value)
{
    begin(w, file, SHADOW_WRITING);
    block_of(w, file)->value = value;
}

/* ---- optimizer states ---- */

static shadow_slot *slot_of(shadow *w, const zero_instruction *i)
{
    const zero_schedule *s = shadow_plan(w);
    int k = i->buffer - s->first_slot;
    shadow_expect(w, k >= 0 && k < s->n_slots);
    return &w->file[w->rank].slots[k];
}

static int number_of(const shadow *w, const zero_instruction *i)
{
    const zero_group_state *state = &shadow_plan(w)->groups[i->group];
    int k = i->file - state->first_block;
    shadow_expect(w, k >= 0 && k < state->n_blocks);
    return k;
}

/* The block of parameters that travels with the states, or ZERO_NO_BUFFER. */
static int with_states(const shadow *w, const zero_instruction *i)
{
    if (!has_params(w, i->group)) return ZERO_NO_BUFFER;
    return shadow_plan(w)->groups[i->group].first_param_block + number_of(w, i);
}

static bool fetches_params(const shadow *w, const zero_instruction *i)
{
    return has_params(w, i->group) && shadow_plan(w)->input.type == ZERO_FP32;
}

static size_t bytes_of_slot(const shadow *w, const zero_instruction *i)
{
    const zero_buffer *all = shadow_plan(w)->buffers;
    int params = with_states(w, i);
    return all[i->file].bytes + (params == ZERO_NO_BUFFER ? 0 : all[params].bytes);
}

void shadow_fetch(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    shadow_slot *slot = slot_of(w, i);
    if (!w->is_due) return;
    shadow_expect(w, slot->file == ZERO_NO_BUFFER); /* the last block has been written */
    shadow_lock_staging(w, i->buffer, bytes_of_slot(w, i));
    *slot = (shadow_slot){.file = i->file, .states = begin_read(w, i->file)};
    if (fetches_params(w, i)) slot->params = begin_read(w, with_states(w, i));
}

void shadow_fetch_wait(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    shadow_slot *slot = slot_of(w, i);
    if (!w->is_due) return;
    shadow_expect(w, slot->file == i->file && !slot->is_here);
    slot->is_here = true;
    end(w, i->file, SHADOW_READING);
    if (fetches_params(w, i)) end(w, with_states(w, i), SHADOW_READING);
    shadow_unlock_staging(w, i->buffer);
    shadow_write(w, i->buffer, bytes_of_slot(w, i), slot->states);
}

void shadow_update_block(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    const shadow_truth *t = &w->truth;
    shadow_slot *slot = slot_of(w, i);
    int g = i->group, k = number_of(w, i);
    shadow_expect(w, slot->file == i->file && slot->is_here);
    shadow_expect(w, shadow_read(w, i->buffer, bytes_of_slot(w, i)) == slot->states);
    shadow_expect(w,
                  slot->states == states_of(w, g, k, t->master, t->momentum, t->variance));
    if (fetches_params(w, i))
        shadow_expect(w, slot->params == params_of(w, g, k, t->param));
    slot->states = states_of(w, g, k, t->new_master, t->new_momentum, t->new_variance);
    if (has_params(w, g)) slot->params = params_of(w, g, k, t->new_param);
    shadow_write(w, i->buffer, bytes_of_slot(w, i), slot->states);
}

void shadow_store(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    shadow_slot *slot = slot_of(w, i);
    int params = with_states(w, i);
    if (!w->is_due) return;
    shadow_expect(w, slot->file == i->file && slot->is_here);
    shadow_expect(w, shadow_lock_plain(w, i->buffer) == slot->states);
    begin_write(w, i->file, slot->states);
    if (params != ZERO_NO_BUFFER) begin_write(w, params, slot->params);
    slot->is_here = false;
}

void shadow_store_wait(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    shadow_slot *slot = slot_of(w, i);
    int params = with_states(w, i);
    if (!w->is_due) return;
    shadow_expect(w, slot->file == i->file && !slot->is_here);
    end(w, i->file, SHADOW_WRITING);
    if (params != ZERO_NO_BUFFER) end(w, params, SHADOW_WRITING);
    shadow_unlock_plain(w, i->buffer);
    *slot = (shadow_slot){.file = ZERO_NO_BUFFER};
}

/* ---- parameters ---- */

void shadow_fetch_param(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    const zero_group_state *state = &shadow_plan(w)->groups[i->group];
    for (int k = 0; k < state->n_blocks; k++) begin_read(w, state->first_param_block + k);
    if (state->n_blocks > 0)
        shadow_lock_piece(w, i->group, i->buffer, shadow_own(w), SHADOW_WRITING);
}

/* The blocks of a piece that is not padding alone have one term: that of the piece. */
static term join_blocks(const shadow *w, int g)
{
    const zero_group_state *state = &shadow_plan(w)->groups[g];
    term piece = w->truth.param[(int64_t)g * shadow_pieces(w) + shadow_own(w)];
    for (int k = 0; k < state->n_blocks; k++) {
        term value = block_of(w, state->first_param_block + k)->value;
        if (!has_piece(w, g, shadow_own(w), range_of(w, g, k))) continue;
        if (k > 0) shadow_expect(w, value == piece);
        piece = value;
    }
    return piece;
}

void shadow_fetch_param_wait(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    const zero_group_state *state = &shadow_plan(w)->groups[i->group];
    for (int k = 0; k < state->n_blocks; k++)
        end(w, state->first_param_block + k, SHADOW_READING);
    if (state->n_blocks > 0)
        shadow_publish_piece(w, i->group, i->buffer, shadow_own(w),
                             join_blocks(w, i->group));
}

/* ---- outputs of units ---- */

void shadow_save(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    shadow_expect(w, shadow_plan(w)->buffers[i->file].bytes ==
                         shadow_plan(w)->buffers[i->buffer].bytes);
    begin_write(w, i->file, shadow_lock_plain(w, i->buffer));
}

void shadow_save_wait(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    end(w, i->file, SHADOW_WRITING);
    shadow_unlock_plain(w, i->buffer);
}

void shadow_restore(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    (void)begin_read(w, i->file);
    shadow_lock_staging(w, i->buffer, shadow_plan(w)->buffers[i->file].bytes);
}

void shadow_restore_wait(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    end(w, i->file, SHADOW_READING);
    shadow_unlock_staging(w, i->buffer);
    shadow_write(w, i->buffer, shadow_plan(w)->buffers[i->file].bytes,
                 block_of(w, i->file)->value);
}

/* ---- begin and end ---- */

static void initialize_group(shadow *w, int g)
{
    const zero_group_state *state = &shadow_plan(w)->groups[g];
    const shadow_truth *t = &w->truth;
    for (int k = 0; k < state->n_blocks; k++) {
        block_of(w, state->first_block + k)->value =
            states_of(w, g, k, t->master, t->momentum, t->variance);
        if (has_params(w, g))
            block_of(w, state->first_param_block + k)->value = params_of(w, g, k, t->param);
    }
}

void shadow_file_open(shadow *w)
{
    shadow_file *f = &w->file[w->rank];
    f->blocks = calloc((size_t)shadow_plan(w)->n_buffers + 1, sizeof *f->blocks);
    assert_non_null(f->blocks);
    for (int k = 0; k < ZERO_OFFLOAD_MAX_DEPTH; k++) f->slots[k].file = ZERO_NO_BUFFER;
    for (int g = 0; g < shadow_groups(w); g++) initialize_group(w, g);
}

void shadow_file_close(shadow *w)
{
    free(w->file[w->rank].blocks);
}

void shadow_file_finish(shadow *w)
{
    const shadow_file *f = &w->file[w->rank];
    shadow_expect(w, f->n_in_flight == 0);
    for (int k = 0; k < shadow_plan(w)->n_slots; k++)
        shadow_expect(w, f->slots[k].file == ZERO_NO_BUFFER);
}
