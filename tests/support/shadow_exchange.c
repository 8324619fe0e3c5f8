/* Gradients and parameters: rounded, added, reduced, gathered. */
#include "support/shadow_ops.h"

/* ---- gradients ---- */

static zero_type type_of(const shadow *w, int buffer)
{
    return shadow_plan(w)->buffers[buffer].type;
}

/* True if the range has piece p; it has whole pieces only. */
static bool covers(const shadow *w, const zero_instruction *i, int p)
{
    zero_range piece = shadow_piece(w, i->group, p);
    if (piece.begin >= i->range.end || i->range.begin >= piece.end) return false;
    shadow_expect(w, i->range.begin <= piece.begin && piece.end <= i->range.end);
    return piece.begin < piece.end;
}

void shadow_round(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    shadow_expect(w, type_of(w, i->in) == ZERO_FP32);
    for (int p = 0; p < w->job->n_ranks; p++) {
        if (!covers(w, i, p)) continue;
        term x = shadow_read_piece(w, i->group, i->in, p);
        shadow_write_piece(w, i->group, i->buffer, p, term_round(type_of(w, i->buffer), x));
    }
}

void shadow_accumulate(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    bool has_sum = i->sum != ZERO_NO_BUFFER;
    shadow_expect(w, type_of(w, i->in) == ZERO_FP32 && type_of(w, i->buffer) == ZERO_FP32);
    if (has_sum) shadow_expect(w, type_of(w, i->sum) == ZERO_FP32);
    for (int p = 0; p < w->job->n_ranks; p++) {
        if (!covers(w, i, p)) continue;
        term x = term_round(i->type, shadow_read_piece(w, i->group, i->in, p));
        if (has_sum) x = term_add(shadow_read_piece(w, i->group, i->sum, p), x);
        shadow_write_piece(w, i->group, i->buffer, p, x);
    }
}

/* ---- collectives: of all ranks at once ---- */

static size_t staging_bytes(const shadow *w, const zero_instruction *i)
{
    const zero_schedule *s = shadow_plan(w);
    return zero_schedule_staging(s, i->op, i->group,
                                 zero_schedule_collectives(s, i->group));
}

static void begin(shadow *w, shadow_exchange *x)
{
    shadow_expect(w, !x->is_under_way);
    x->is_under_way = true;
    for (int r = 0; r < w->job->n_ranks; r++, shadow_next_rank(w, r)) {
        const zero_instruction *i = shadow_now(w);
        x->begun[r] = *i;
        shadow_lock_staging(w, i->staging, staging_bytes(w, i));
    }
}

/* value[p] = the sum over ranks of their pieces p, rounded to where it goes. */
static void add_up(shadow *w, shadow_exchange *x, int g, int p)
{
    term terms[JOB_RANKS];
    for (int r = 0; r < w->job->n_ranks; r++, shadow_next_rank(w, r))
        terms[r] = shadow_read_piece(w, g, shadow_now(w)->in, p);
    term sum = term_tree(w->job->n_ranks, terms, 1);
    x->value[p] = term_round(type_of(w, shadow_now(w)->buffer), sum);
}

static void lock_sum(shadow *w, int g)
{
    const zero_instruction *i = shadow_now(w);
    for (int p = 0; p < w->job->n_ranks; p++) {
        if (shadow_is_empty(w, g, p)) continue;
        bool is_result = p == w->rank, is_in_place = i->in == i->buffer;
        if (is_result) shadow_lock_piece(w, g, i->buffer, p, SHADOW_WRITING);
        if (!is_result || !is_in_place) shadow_lock_piece(w, g, i->in, p, SHADOW_READING);
    }
}

void shadow_reduce(shadow *w)
{
    int g = shadow_now(w)->group;
    shadow_exchange *x = &w->reduce[g];
    begin(w, x);
    for (int p = 0; p < w->job->n_ranks; p++)
        if (!shadow_is_empty(w, g, p)) add_up(w, x, g, p);
    for (int r = 0; r < w->job->n_ranks; r++, shadow_next_rank(w, r)) lock_sum(w, g);
    w->reduces[g]++;
}

static void end_reduce(shadow *w, const shadow_exchange *x, int g)
{
    const zero_instruction *i = &x->begun[w->rank];
    shadow_expect(w, shadow_now(w)->buffer == i->buffer && shadow_now(w)->in == i->in);
    shadow_unlock_staging(w, i->staging);
    for (int p = 0; p < w->job->n_ranks; p++) {
        if (shadow_is_empty(w, g, p)) continue;
        bool is_result = p == w->rank, is_in_place = i->in == i->buffer;
        if (is_result) shadow_publish_piece(w, g, i->buffer, p, x->value[p]);
        if (!is_result || !is_in_place) shadow_unlock_piece(w, g, i->in, p);
    }
}

void shadow_reduce_wait(shadow *w)
{
    int g = shadow_now(w)->group;
    shadow_exchange *x = &w->reduce[g];
    shadow_expect(w, x->is_under_way);
    x->is_under_way = false;
    for (int r = 0; r < w->job->n_ranks; r++, shadow_next_rank(w, r)) end_reduce(w, x, g);
}

static void lock_whole(shadow *w, int g)
{
    const zero_instruction *i = shadow_now(w);
    bool has_piece = !shadow_is_empty(w, g, w->rank);
    if (has_piece && i->in != i->buffer)
        shadow_lock_piece(w, g, i->in, w->rank, SHADOW_READING);
    for (int p = 0; p < w->job->n_ranks; p++)
        if (!shadow_is_empty(w, g, p))
            shadow_lock_piece(w, g, i->buffer, p, SHADOW_WRITING);
}

void shadow_gather(shadow *w)
{
    int g = shadow_now(w)->group;
    shadow_exchange *x = &w->gather[g];
    begin(w, x);
    for (int r = 0; r < w->job->n_ranks; r++, shadow_next_rank(w, r))
        if (!shadow_is_empty(w, g, r))
            x->value[r] = shadow_read_piece(w, g, shadow_now(w)->in, r);
    for (int r = 0; r < w->job->n_ranks; r++, shadow_next_rank(w, r)) lock_whole(w, g);
    w->gathers[g]++;
}

static void end_gather(shadow *w, const shadow_exchange *x, int g)
{
    const zero_instruction *i = &x->begun[w->rank];
    shadow_expect(w, shadow_now(w)->buffer == i->buffer);
    shadow_unlock_staging(w, i->staging);
    if (!shadow_is_empty(w, g, w->rank) && i->in != i->buffer)
        shadow_unlock_piece(w, g, i->in, w->rank);
    for (int p = 0; p < w->job->n_ranks; p++)
        if (!shadow_is_empty(w, g, p))
            shadow_publish_piece(w, g, i->buffer, p, x->value[p]);
}

/* A wait for a gather that ended in an earlier program is over at once. */
void shadow_gather_wait(shadow *w)
{
    int g = shadow_now(w)->group;
    shadow_exchange *x = &w->gather[g];
    if (!x->is_under_way) return;
    x->is_under_way = false;
    for (int r = 0; r < w->job->n_ranks; r++, shadow_next_rank(w, r)) end_gather(w, x, g);
}

void shadow_let_go(shadow *w)
{
    shadow_release(w, shadow_now(w)->group, shadow_now(w)->buffer);
}

/* ---- JOIN: of w->rank and its TP group ---- */

void shadow_join(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    const zero_schedule *s = shadow_plan(w);
    shadow_joining *joining = &w->joining[w->rank];
    bool is_in_place = i->in == i->buffer;
    shadow_expect(w, joining->begun.join < 0 && i->join >= 0 && i->join < s->n_joins);
    term joint = shadow_read(w, i->in, s->buffers[i->in].bytes);
    *joining = (shadow_joining){*i, term_of(TERM_JOINED, joint, 0, 0)};
    if (!is_in_place) shadow_lock_plain(w, i->in);
    shadow_lock_staging(w, i->buffer, s->buffers[i->buffer].bytes);
    if (i->staging != ZERO_NO_BUFFER)
        shadow_lock_staging(w, i->staging, s->buffers[i->staging].bytes);
}

void shadow_join_wait(shadow *w)
{
    const zero_instruction *i = shadow_now(w);
    shadow_joining *joining = &w->joining[w->rank];
    const zero_instruction *begun = &joining->begun;
    shadow_expect(w, begun->join >= 0 && begun->join == i->join);
    shadow_expect(w, begun->in == i->in && begun->buffer == i->buffer &&
                         begun->staging == i->staging);
    if (i->in != i->buffer) shadow_unlock_plain(w, i->in);
    shadow_unlock_staging(w, i->buffer);
    shadow_unlock_staging(w, i->staging);
    shadow_write(w, i->buffer, shadow_plan(w)->buffers[i->buffer].bytes, joining->value);
    joining->begun.join = -1;
}
