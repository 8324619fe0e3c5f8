/* The end of a step: loss, norm, overflow and the update. */
#include "support/shadow_ops.h"

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
    w->losses += w->rank == 0;
}

static bool shard_is_empty(const shadow *w, int g, int p)
{
    return zero_range_len(zero_partition_shard(&shadow_plan(w)->groups[g].partition, p)) ==
           0;
}

/* The gradient equals its definition, element by element. */
static void check_gradient(shadow *w, int g, int buffer, int p)
{
    const shadow_truth *t = &w->truth;
    shadow_expect(w, shadow_read_piece(w, g, buffer, p) ==
                         t->grad[(int64_t)g * w->job->n_ranks + p]);
}

void shadow_norm(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    zero_range shard =
        zero_partition_shard(&shadow_plan(w)->groups[i->group].partition, w->rank);
    shadow_expect(w, i->group == w->norms); /* groups in order: one sum on all ranks */
    shadow_expect(w, i->range.begin == shard.begin && i->range.end == shard.end);
    if (zero_range_len(shard) > 0) check_gradient(w, i->group, i->grad[0], w->rank);
    w->norms += w->rank == w->job->n_ranks - 1;
}

void shadow_overflow(shadow *w)
{
    shadow_expect(w, w->norms == shadow_groups(w)); /* the norm is known */
    w->overflows += w->rank == w->job->n_ranks - 1;
}

/* A check needs all ranks' copies as they were in this step: whole, not in flight, not updated. */
void shadow_check(shadow *w)
{
    shadow_expect(w, w->overflows == 1);
    for (int g = 0; g < shadow_groups(w); g++) {
        shadow_expect(w, w->updates[g] == 0);
        shadow_expect(w, !w->gather[g].is_under_way && !w->reduce[g].is_under_way);
    }
}

/* UPDATE reads one value at a place, and leaves another there. */
static void renew(shadow *w, int g, int buffer, int p, const term *old, const term *new)
{
    shadow_expect(w, shadow_read_piece(w, g, buffer, p) == *old);
    shadow_write_piece(w, g, buffer, p, *new);
}

static bool updates_all(const shadow *w)
{
    return zero_stage_at(shadow_plan(w)->input.stage)->optimizer == ZERO_HOLD_WHOLE;
}

static void update_piece(shadow *w, const zero_instruction *i, int p)
{
    int g = i->group;
    int64_t at = (int64_t)g * w->job->n_ranks + p;
    shadow_truth *t = &w->truth;
    term master = t->master[at], momentum = t->momentum[at], variance = t->variance[at];
    term param = t->param[at];
    check_gradient(w, g, i->grad[0], p);
    truth_update(t, g, p);
    if (i->master == ZERO_NO_BUFFER) {
        renew(w, g, i->param[0], p, &master, &t->master[at]);
    } else {
        renew(w, g, i->master, p, &master, &t->master[at]);
        shadow_write_piece(w, g, i->param[0], p, t->param[at]);
    }
    renew(w, g, i->momentum, p, &momentum, &t->momentum[at]);
    renew(w, g, i->variance, p, &variance, &t->variance[at]);
    /* Where all ranks update everything, the others do the same with the same values. */
    if (!updates_all(w) || w->rank == w->job->n_ranks - 1) return;
    t->master[at] = master;
    t->momentum[at] = momentum;
    t->variance[at] = variance;
    t->param[at] = param;
}

void shadow_update(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    const zero_partition *part = &shadow_plan(w)->groups[i->group].partition;
    bool is_all = updates_all(w);
    zero_range own =
        is_all ? (zero_range){0, part->n_params} : zero_partition_shard(part, w->rank);
    shadow_expect(w, w->overflows == 1); /* no parameter has changed before */
    shadow_expect(w, i->range.begin == own.begin && i->range.end == own.end);
    shadow_expect(w, (i->master == ZERO_NO_BUFFER) ==
                         (shadow_plan(w)->input.type == ZERO_FP32));
    for (int p = 0; p < w->job->n_ranks; p++)
        if ((is_all || p == w->rank) && !shard_is_empty(w, i->group, p))
            update_piece(w, i, p);
    w->updates[i->group] += w->rank == 0;
}

/* RECORD reads what the group's UPDATE has just written. */
void shadow_record(shadow *w)
{
    const zero_instruction *i = shadow_now(w), *update = i - 1;
    shadow_expect(w, w->updates[i->group] == 1);
    shadow_expect(w, update->op == ZERO_OP_UPDATE && update->group == i->group);
    shadow_expect(w, update->master == i->master && update->momentum == i->momentum);
    shadow_expect(w, update->variance == i->variance && update->param[0] == i->param[0]);
    shadow_expect(w, update->range.begin == i->range.begin);
    shadow_expect(w, update->range.end == i->range.end);
}
