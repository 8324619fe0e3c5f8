/* The end of a step: loss, norm, overflow and the update. */
#include "sharding/schedule_device.h"
#include "sharding/update.h"
#include "support/shadow_ops.h"

/* With a device rows are on the host now, and their copies have ended. */
static void await_rows(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    if (i->row_loss == ZERO_NO_BUFFER) return;
    shadow_unlock_plain(w, i->row_loss);
    shadow_unlock_staging(w, i->host);
}

/* Losses are put in order by the numbers that LOAD gave the microbatches. */
void shadow_loss(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    int mine = w->program == ZERO_PROGRAM_STEP ? shadow_plan(w)->input.accumulation : 1;
    shadow_expect(w, i->microbatch == mine - 1);
    for (int m = 0; m < mine; m++) {
        shadow_expect(w, *shadow_loss_of(w, w->rank, m));
        shadow_expect(w, *shadow_index_of(w, w->rank, m) ==
                             (int64_t)i->rank_stride * w->rank +
                                 (int64_t)i->microbatch_stride * m);
    }
    if (shadow_plan(w)->input.device) await_rows(w);
    w->losses += w->rank == 0;
}

/* With a device the squares of a group wait there, behind those of the groups before it. */
static void write_squares(shadow *w)
{
    const zero_schedule *s = shadow_plan(w);
    const zero_instruction *i = shadow_now(w);
    int64_t end = s->groups[i->group].first_square + zero_gradient_pieces(i->range);
    bool is_last = i->group == shadow_groups(w) - 1;
    int64_t all = (int64_t)(zero_schedule_changed_at(s) / sizeof(double));
    int64_t next = is_last ? all : s->groups[i->group + 1].first_square;
    bool is_spare = is_last && end == 0 && all == 1; /* for a rank that owns nothing */
    shadow_expect(w, i->buffer == s->squares && (end == next || is_spare));
    shadow_write(w, i->buffer, s->buffers[i->buffer].bytes, term_of(TERM_JUNK, 0, 0, 0));
}

static void fetch_squares(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    size_t bytes = shadow_plan(w)->buffers[i->in].bytes;
    shadow_write(w, i->host, bytes, shadow_read(w, i->in, bytes));
}

/* The gradient equals its definition, element by element. */
static void check_gradient(shadow *w, int g, int buffer, int p, const term *grad)
{
    shadow_expect(w, shadow_read_piece(w, g, buffer, p) ==
                         grad[(int64_t)g * shadow_pieces(w) + p]);
}

/* True if this rank holds states of piece p: it updates the piece, and copies it. */
static bool holds(const shadow *w, int g, int p)
{
    zero_range shard = zero_partition_shard(&shadow_plan(w)->groups[g].partition, p);
    return (shadow_updates_all(w) || p == shadow_own(w)) && zero_range_len(shard) > 0;
}

static void check_copied(const shadow *w, int g, int p)
{
    const zero_range shard = zero_partition_shard(&shadow_plan(w)->groups[g].partition, p);
    const zero_instruction *i = shadow_now(w);
    shadow_expect(w, i->range.begin <= shard.begin && shard.end <= i->range.end);
}

/* True if the host's CPU updates beside a device. */
static bool is_beside(const shadow *w)
{
    const zero_plan_input *in = &shadow_plan(w)->input;
    return in->device && in->offload != ZERO_OFFLOAD_OFF;
}

/* True if an update needs a gradient before NORM does. */
static bool is_early(const shadow *w)
{
    return shadow_plan(w)->input.offload == ZERO_OFFLOAD_BACKWARD;
}

/* The copy is on its way until NORM, or an early UPDATE. */
void shadow_fetch_grad(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    const zero_group_state *state = &shadow_plan(w)->groups[i->group];
    shadow_expect(w, i->in == state->grad && i->host == state->host_grad);
    for (int p = 0; p < shadow_pieces(w); p++) {
        if (!holds(w, i->group, p)) continue;
        check_copied(w, i->group, p);
        check_gradient(w, i->group, i->in, p, w->truth.grad);
        shadow_lock_piece(w, i->group, i->in, p, SHADOW_READING);
        shadow_lock_piece(w, i->group, i->host, p, SHADOW_WRITING);
    }
}

static void await_gradient(shadow *w, int g)
{
    const zero_group_state *state = &shadow_plan(w)->groups[g];
    for (int p = 0; p < shadow_pieces(w); p++) {
        if (!holds(w, g, p)) continue;
        shadow_unlock_piece(w, g, state->grad, p);
        shadow_publish_piece(w, g, state->host_grad, p,
                             shadow_read_piece(w, g, state->grad, p));
    }
}

/* Until here UPDATE has changed nothing that units read. */
void shadow_store_param(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    const zero_group_state *state = &shadow_plan(w)->groups[i->group];
    shadow_expect(w, i->host == state->host_param && i->buffer == state->param);
    if (!w->is_due) return;
    for (int p = 0; p < shadow_pieces(w); p++) {
        int64_t at = (int64_t)i->group * shadow_pieces(w) + p;
        if (!holds(w, i->group, p)) continue;
        check_copied(w, i->group, p);
        shadow_expect(w,
                      shadow_read_piece(w, i->group, i->buffer, p) == w->truth.param[at]);
        term value = shadow_read_piece(w, i->group, i->host, p);
        shadow_expect(w, value == w->truth.new_param[at]);
        shadow_write_piece(w, i->group, i->buffer, p, value);
    }
}

void shadow_norm(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    zero_range shard =
        zero_partition_shard(&shadow_plan(w)->groups[i->group].partition, shadow_own(w));
    bool counts = shadow_first(w) == 0; /* replicas have the same squares */
    shadow_expect(w, w->norms[i->group] == 0 && w->overflows == 0);
    if (counts)
        shadow_expect(w, i->range.begin == shard.begin && i->range.end == shard.end);
    else
        shadow_expect(w, zero_range_is_empty(i->range));
    shadow_expect(w, i->on_host == is_beside(w));
    if (i->on_host && !is_early(w)) await_gradient(w, i->group);
    if (zero_range_len(shard) > 0)
        check_gradient(w, i->group, i->grad[0], shadow_own(w), w->truth.grad);
    if (shadow_plan(w)->input.device && !i->on_host) write_squares(w);
    w->norms[i->group] += w->rank == w->job->n_ranks - 1;
}

void shadow_overflow(shadow *w)
{
    for (int g = 0; g < shadow_groups(w); g++) /* the norm is known */
        shadow_expect(w, w->norms[g] == 1);
    const zero_plan_input *in = &shadow_plan(w)->input;
    if (in->device && !is_beside(w)) fetch_squares(w);
    w->overflows += w->rank == w->job->n_ranks - 1;
}

/* True if this rank has updated all that it holds of group g; a lazy plan may have nothing due. */
static bool is_updated(const shadow *w, int g)
{
    for (int p = 0; p < shadow_pieces(w); p++) {
        zero_range shard = zero_partition_shard(&shadow_plan(w)->groups[g].partition, p);
        bool is_held = shadow_updates_all(w) || p == shadow_own(w);
        int64_t expected = w->is_due && is_held ? zero_range_len(shard) : 0;
        if (*shadow_updated_of(w, g, p) != expected) return false;
    }
    return true;
}

static bool is_untouched(const shadow *w, int g)
{
    for (int p = 0; p < shadow_pieces(w); p++)
        if (*shadow_updated_of(w, g, p) > 0) return false;
    return true;
}

/* A check needs all ranks' copies as they were in this step: whole, not in flight, not updated. */
void shadow_check(shadow *w)
{
    bool is_lazy = shadow_plan(w)->input.offload == ZERO_OFFLOAD_LAZY;
    shadow_expect(w, w->overflows == 1);
    for (int g = 0; g < shadow_groups(w); g++) {
        shadow_expect(w, is_lazy ? is_updated(w, g) : is_untouched(w, g));
        shadow_expect(w, !w->gather[g].is_under_way && !w->reduce[g].is_under_way &&
                             !w->all_reduce[g].is_under_way);
    }
}

bool shadow_updates_all(const shadow *w)
{
    return zero_stage_at(shadow_plan(w)->input.stage)->optimizer == ZERO_HOLD_WHOLE;
}

void shadow_check_updates(shadow *w)
{
    for (int g = 0; g < shadow_groups(w); g++) shadow_expect(w, is_updated(w, g));
}

/* UPDATE reads one value at a place, and leaves another there. */
static void renew(shadow *w, int g, int buffer, int p, const term *old, const term *new)
{
    int64_t at = (int64_t)g * shadow_pieces(w) + p;
    shadow_expect(w, shadow_read_piece(w, g, buffer, p) == old[at]);
    shadow_write_piece(w, g, buffer, p, new[at]);
}

/* Blocks of a piece are updated one after the other. Until the last one its parameters are neither
 * old nor new. */
static void renew_part(shadow *w, int g, int buffer, int p, int64_t n)
{
    const shadow_truth *t = &w->truth;
    zero_type type = shadow_plan(w)->input.type;
    int64_t at = (int64_t)g * shadow_pieces(w) + p, *updated = shadow_updated_of(w, g, p);
    zero_range shard = zero_partition_shard(&shadow_plan(w)->groups[g].partition, p);
    term mixed = term_round(type, term_of(TERM_JUNK, 1, 0, 0));
    *updated += n;
    if (buffer == ZERO_NO_BUFFER) return;
    if (type == ZERO_FP32)
        shadow_expect(w, shadow_read_piece(w, g, buffer, p) ==
                             (*updated == n ? t->master[at] : mixed));
    bool is_whole = *updated == zero_range_len(shard);
    shadow_write_piece(w, g, buffer, p, is_whole ? t->new_param[at] : mixed);
}

static void update_piece(shadow *w, const zero_instruction *i, int p, int64_t n)
{
    const shadow_truth *t = &w->truth;
    int g = i->group;
    check_gradient(w, g, i->grad[0], p, t->due);
    bool is_in_blocks = i->file != ZERO_NO_BUFFER && i->master != ZERO_NO_BUFFER;
    if (i->master != ZERO_NO_BUFFER && !is_in_blocks)
        renew(w, g, i->master, p, t->master, t->new_master);
    if (i->momentum != ZERO_NO_BUFFER) {
        renew(w, g, i->momentum, p, t->momentum, t->new_momentum);
        renew(w, g, i->variance, p, t->variance, t->new_variance);
    }
    renew_part(w, g, is_in_blocks ? i->master : i->param[0], p, n);
}

/* The elements of an UPDATE: all that the rank holds, or its block, without padding. */
static zero_range range_expected(const shadow *w, const zero_instruction *i)
{
    const zero_schedule *s = shadow_plan(w);
    const zero_partition *part = &s->groups[i->group].partition;
    bool is_all = shadow_updates_all(w);
    zero_range own = is_all ? (zero_range){0, part->n_params}
                            : zero_partition_shard(part, shadow_own(w));
    if (i->file == ZERO_NO_BUFFER) return own;
    int64_t first = is_all ? 0 : zero_partition_piece(part, shadow_own(w)).begin;
    int64_t begin =
        first + ZERO_OFFLOAD_BLOCK * (i->file - s->groups[i->group].first_block);
    return zero_range_overlap(own, (zero_range){begin, begin + ZERO_OFFLOAD_BLOCK});
}

void shadow_update(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    const zero_schedule *s = shadow_plan(w);
    zero_range range = range_expected(w, i);
    bool is_late =
        s->input.offload == ZERO_OFFLOAD_OFF || s->input.offload == ZERO_OFFLOAD_END;
    if (is_late) shadow_expect(w, w->overflows == 1); /* no parameter has changed before */
    shadow_expect(w, (i->file == ZERO_NO_BUFFER) == (s->n_slots == 0));
    shadow_expect(w, zero_range_is_empty(range) == zero_range_is_empty(i->range));
    if (!zero_range_is_empty(range))
        shadow_expect(w, range.begin == i->range.begin && range.end == i->range.end);
    bool is_exact = s->input.type == ZERO_FP32, is_block = i->file != ZERO_NO_BUFFER;
    bool has_masters = is_block ? is_exact && is_beside(w) : !is_exact || is_beside(w);
    shadow_expect(w, (i->master != ZERO_NO_BUFFER) == has_masters);
    shadow_expect(w, i->on_host == is_beside(w));
    if (!w->is_due) return;
    bool is_first = !is_block || i->file == s->groups[i->group].first_block;
    if (i->on_host && is_early(w) && is_first) await_gradient(w, i->group);
    if (i->file != ZERO_NO_BUFFER) shadow_update_block(w);
    for (int p = 0; p < shadow_pieces(w); p++) {
        zero_range part = zero_range_overlap(
            range, zero_partition_shard(&s->groups[i->group].partition, p));
        if (!zero_range_is_empty(part)) update_piece(w, i, p, zero_range_len(part));
    }
}

/* `delayed`: the pieces that this rank updates, from one place to another. */
static void copy_pieces(shadow *w, const term *expected)
{
    const zero_instruction *i = shadow_now(w);
    for (int p = 0; p < shadow_pieces(w); p++) {
        zero_range shard =
            zero_partition_shard(&shadow_plan(w)->groups[i->group].partition, p);
        bool is_held = shadow_updates_all(w) || p == shadow_own(w);
        if (!is_held || zero_range_is_empty(shard)) continue;
        term value = shadow_read_piece(w, i->group, i->in, p);
        shadow_expect(w, value == expected[(int64_t)i->group * shadow_pieces(w) + p]);
        shadow_expect(w, i->range.begin <= shard.begin && shard.end <= i->range.end);
        shadow_write_piece(w, i->group, i->buffer, p, value);
    }
}

/* No unit of this step sees the new parameters. */
void shadow_publish(shadow *w)
{
    const zero_group_state *state = &shadow_plan(w)->groups[shadow_now(w)->group];
    shadow_expect(w, w->overflows == (w->program == ZERO_PROGRAM_STEP));
    shadow_expect(w, shadow_now(w)->in == state->late_param);
    shadow_expect(w, shadow_now(w)->buffer == state->param);
    shadow_expect(w, is_updated(w, shadow_now(w)->group));
    if (w->is_due) copy_pieces(w, w->truth.new_param);
}

/* The last step's gradient has been used. */
void shadow_delay(shadow *w)
{
    const zero_group_state *state = &shadow_plan(w)->groups[shadow_now(w)->group];
    shadow_expect(w, shadow_now(w)->in == (is_beside(w) ? state->host_grad : state->grad));
    shadow_expect(w, shadow_now(w)->buffer == state->late_grad);
    shadow_expect(w, w->overflows == 1 && is_updated(w, shadow_now(w)->group));
    copy_pieces(w, w->truth.grad);
}

/* RECORD reads what the group's UPDATEs have written. */
void shadow_record(shadow *w)
{
    const zero_instruction *i = shadow_now(w), *update = i;
    shadow_expect(w, is_updated(w, i->group));
    bool is_moved = shadow_plan(w)->n_slots > 0;
    if (is_moved && shadow_plan(w)->groups[i->group].n_blocks == 0) return;
    while (update->op != ZERO_OP_UPDATE) update--;
    shadow_expect(w, update->group == i->group);
    shadow_expect(w, update->master == i->master && update->momentum == i->momentum);
    shadow_expect(w, update->variance == i->variance && update->param[0] == i->param[0]);
    if (update->file != ZERO_NO_BUFFER) return; /* a block of what is recorded */
    shadow_expect(w, update->range.begin == i->range.begin);
    shadow_expect(w, update->range.end == i->range.end);
}
