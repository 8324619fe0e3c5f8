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
    for (int p = 0; p < shadow_pieces(w); p++) {
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
    for (int p = 0; p < shadow_pieces(w); p++) {
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
    return zero_exchange_staging(s, i->op, i->group,
                                 zero_exchange_collectives(s, i->op, i->group));
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

static void end(shadow *w, const shadow_exchange *x)
{
    const zero_instruction *i = &x->begun[w->rank];
    shadow_expect(w, shadow_now(w)->buffer == i->buffer);
    shadow_unlock_staging(w, i->staging);
}

/* The result of w->rank: the sum over `n` ranks, `apart` from each other, of their pieces,
 * rounded to where it goes. */
static void add_up(shadow *w, shadow_exchange *x, int first, int n, int apart)
{
    int rank = w->rank, g = shadow_now(w)->group, p = shadow_own(w);
    term terms[JOB_RANKS];
    for (int k = 0; k < n; k++) {
        w->rank = first + k * apart;
        terms[k] = shadow_read_piece(w, g, shadow_now(w)->in, p);
    }
    w->rank = rank;
    x->value[rank] = term_round(type_of(w, shadow_now(w)->buffer), term_tree(n, terms, 1));
}

static void lock_sum(shadow *w, int g)
{
    const zero_instruction *i = shadow_now(w);
    for (int p = 0; p < shadow_pieces(w); p++) {
        if (shadow_is_empty(w, g, p)) continue;
        bool is_result = p == shadow_own(w), is_in_place = i->in == i->buffer;
        if (is_result) shadow_lock_piece(w, g, i->buffer, p, SHADOW_WRITING);
        if (!is_result || !is_in_place) shadow_lock_piece(w, g, i->in, p, SHADOW_READING);
    }
}

/* Until all replicas have added theirs nothing may be rounded. */
static void expect_exact(const shadow *w)
{
    if (shadow_pieces(w) < w->job->n_ranks)
        shadow_expect(w, type_of(w, shadow_now(w)->buffer) == ZERO_FP32);
}

void shadow_reduce(shadow *w)
{
    int g = shadow_now(w)->group;
    shadow_exchange *x = &w->reduce[g];
    begin(w, x);
    for (int r = 0; r < w->job->n_ranks; r++, shadow_next_rank(w, r)) {
        expect_exact(w);
        if (!shadow_is_empty(w, g, shadow_own(w)))
            add_up(w, x, shadow_first(w), shadow_pieces(w), 1);
    }
    for (int r = 0; r < w->job->n_ranks; r++, shadow_next_rank(w, r)) lock_sum(w, g);
    w->reduces[g]++;
}

static void end_reduce(shadow *w, const shadow_exchange *x, int g)
{
    const zero_instruction *i = &x->begun[w->rank];
    end(w, x);
    shadow_expect(w, shadow_now(w)->in == i->in);
    for (int p = 0; p < shadow_pieces(w); p++) {
        if (shadow_is_empty(w, g, p)) continue;
        bool is_result = p == shadow_own(w), is_in_place = i->in == i->buffer;
        if (is_result) shadow_publish_piece(w, g, i->buffer, p, x->value[w->rank]);
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

/* ---- among replicas ---- */

void shadow_all_reduce(shadow *w)
{
    int g = shadow_now(w)->group, R = shadow_pieces(w);
    shadow_exchange *x = &w->all_reduce[g];
    for (int k = 0; k < shadow_groups(w); k++) /* one at a time */
        shadow_expect(w, !w->all_reduce[k].is_under_way);
    begin(w, x);
    for (int r = 0; r < w->job->n_ranks; r++, shadow_next_rank(w, r)) {
        shadow_expect(w, shadow_now(w)->in == shadow_now(w)->buffer);
        shadow_expect(w, type_of(w, shadow_now(w)->buffer) == ZERO_FP32);
        if (!shadow_is_empty(w, g, shadow_own(w)))
            add_up(w, x, shadow_own(w), w->job->n_ranks / R, R);
    }
    for (int r = 0; r < w->job->n_ranks; r++, shadow_next_rank(w, r))
        if (!shadow_is_empty(w, g, shadow_own(w)))
            shadow_lock_piece(w, g, shadow_now(w)->buffer, shadow_own(w), SHADOW_WRITING);
    w->all_reduces[g]++;
}

void shadow_all_reduce_wait(shadow *w)
{
    int g = shadow_now(w)->group;
    shadow_exchange *x = &w->all_reduce[g];
    shadow_expect(w, x->is_under_way);
    x->is_under_way = false;
    for (int r = 0; r < w->job->n_ranks; r++, shadow_next_rank(w, r)) {
        end(w, x);
        if (!shadow_is_empty(w, g, shadow_own(w)))
            shadow_publish_piece(w, g, x->begun[r].buffer, shadow_own(w), x->value[r]);
    }
}

/* ---- parameters ---- */

static void lock_whole(shadow *w, int g)
{
    const zero_instruction *i = shadow_now(w);
    bool has_piece = !shadow_is_empty(w, g, shadow_own(w));
    if (has_piece && i->in != i->buffer)
        shadow_lock_piece(w, g, i->in, shadow_own(w), SHADOW_READING);
    for (int p = 0; p < shadow_pieces(w); p++)
        if (!shadow_is_empty(w, g, p))
            shadow_lock_piece(w, g, i->buffer, p, SHADOW_WRITING);
}

void shadow_gather(shadow *w)
{
    int g = shadow_now(w)->group;
    shadow_exchange *x = &w->gather[g];
    begin(w, x);
    for (int r = 0; r < w->job->n_ranks; r++, shadow_next_rank(w, r))
        if (!shadow_is_empty(w, g, shadow_own(w)))
            x->value[r] = shadow_read_piece(w, g, shadow_now(w)->in, shadow_own(w));
    for (int r = 0; r < w->job->n_ranks; r++, shadow_next_rank(w, r)) lock_whole(w, g);
    w->gathers[g]++;
}

static void end_gather(shadow *w, const shadow_exchange *x, int g)
{
    const zero_instruction *i = &x->begun[w->rank];
    end(w, x);
    if (!shadow_is_empty(w, g, shadow_own(w)) && i->in != i->buffer)
        shadow_unlock_piece(w, g, i->in, shadow_own(w));
    for (int p = 0; p < shadow_pieces(w); p++)
        if (!shadow_is_empty(w, g, p))
            shadow_publish_piece(w, g, i->buffer, p, x->value[shadow_first(w) + p]);
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
