/* The gradient of a step by its definition, and its update. */

#include "support/shadow.h"

/* ---- one microbatch ---- */

/* Groups are cut over the ranks that shard together. */
static int pieces_of(const zero_schedule *s)
{
    return s->input.shard_ranks > 0 ? s->input.shard_ranks : s->input.n_ranks;
}

static int64_t at(const shadow_truth *t, int g, int p)
{
    return (int64_t)g * pieces_of(t->s) + p;
}

static term read_group(const shadow_truth *t, term read, int g)
{
    for (int p = 0; p < pieces_of(t->s); p++) {
        zero_range piece = zero_partition_piece(&t->s->groups[g].partition, p);
        if (zero_range_len(piece) > 0)
            read = term_of(TERM_READ, read, truth_read(t)[at(t, g, p)], 0);
    }
    return read;
}

static term read_params(const shadow_truth *t, const zero_unit *unit)
{
    term read = 0;
    for (int k = 0; k < unit->n_groups; k++) read = read_group(t, read, unit->groups[k]);
    return read;
}

static term saved_of(const zero_unit *unit, term call)
{
    zero_unit_sizes size = unit->sizes(unit, 1, 1);
    return size.saved > 0 ? term_of(TERM_SAVED, call, 0, 0) : 0;
}

/* leaf[] += the unit's contribution; leaf[] is 0 before the first. */
static void contribute(const shadow_truth *t, const zero_unit *unit, term backward,
                       term *leaf)
{
    for (int k = 0; k < unit->n_groups; k++)
        for (int p = 0; p < pieces_of(t->s); p++) {
            term *x = &leaf[at(t, unit->groups[k], p)],
                 more = term_gradient(backward, k, p);
            *x = *x ? term_add(*x, more) : more;
        }
}

/* leaf[] = the gradient of the microbatch with these tokens, rounded. */
static void compute_leaf(const shadow_truth *t, term tokens, term *leaf)
{
    const zero_model *model = t->s->input.model;
    term *call = calloc((size_t)model->n_units, sizeof *call), stream = 0;
    assert_non_null(call);
    for (int u = 0; u < model->n_units; u++) {
        term in = u > 0 ? term_of(TERM_OUT, call[u - 1], 0, 0) : 0;
        call[u] = term_call(u, tokens, in, read_params(t, &model->units[u]));
    }
    memset(leaf, 0, (size_t)t->n * sizeof *leaf);
    for (int u = model->n_units - 1; u >= 0; u--) {
        const zero_unit *unit = &model->units[u];
        term in = u > 0 ? term_of(TERM_OUT, call[u - 1], 0, 0) : 0;
        term read = unit->backward_without_params ? 0 : read_params(t, unit);
        term backward = term_backward(tokens, in, saved_of(unit, call[u]), stream, read);
        contribute(t, unit, backward, leaf);
        stream = term_of(TERM_STREAM, backward, 0, 0);
    }
    for (int64_t i = 0; i < t->n; i++) leaf[i] = term_round(t->s->input.type, leaf[i]);
    free(call);
}

/* ---- the sum over all of them ---- */

/* Without --reproducible. Gradients held whole: a rank's microbatches one after the other, then
 * the tree over ranks. Gradients held in pieces: the tree over ranks, one microbatch after the
 * other. */
static term sum_in_sequence(const shadow_truth *t, const term *leaf)
{
    const zero_plan_input *in = &t->s->input;
    int N = in->n_ranks, M = in->accumulation;
    term sum[JOB_RANKS];
    bool is_whole = zero_stage_at(in->stage)->gradients == ZERO_HOLD_WHOLE;
    for (int r = 0; is_whole && r < N; r++) {
        sum[r] = leaf[(int64_t)r * M * t->n];
        for (int m = 1; m < M; m++) sum[r] = term_add(sum[r], leaf[(r * M + m) * t->n]);
    }
    if (is_whole) return term_tree(N, sum, 1);
    term all = term_tree(N, leaf, t->n);
    for (int m = 1; m < M; m++)
        all = term_add(all, term_tree(N, leaf + m * N * t->n, t->n));
    return all;
}

void truth_compute(shadow_truth *t, int64_t step)
{
    const zero_plan_input *in = &t->s->input;
    int n_leaves = in->n_ranks * in->accumulation;
    term *leaf = calloc((size_t)(n_leaves * t->n), sizeof *leaf);
    assert_non_null(leaf);
    for (int i = 0; i < n_leaves; i++)
        compute_leaf(t, truth_tokens(step, i), leaf + i * t->n);
    bool is_tree = in->reproducible || in->accumulation == 1;
    for (int64_t i = 0; i < t->n; i++) {
        term sum =
            is_tree ? term_tree(n_leaves, leaf + i, t->n) : sum_in_sequence(t, leaf + i);
        t->grad[i] = term_round(in->type, sum);
    }
    free(leaf);
}

term truth_tokens(int64_t step, int64_t index)
{
    return term_of(TERM_TOKENS, (term)step, (term)index, 0);
}

/* ---- parameters ---- */

const term *truth_read(const shadow_truth *t)
{
    return t->reads_new ? t->new_param : t->param;
}

/* A piece of padding is never updated. */
static void update(shadow_truth *t, int64_t i)
{
    int n = pieces_of(t->s);
    zero_range shard = zero_partition_shard(&t->s->groups[i / n].partition, (int)(i % n));
    if (zero_range_len(shard) == 0) return;
    term old = term_of(TERM_UPDATE, t->master[i], t->momentum[i], t->variance[i]);
    t->new_master[i] = term_of(TERM_UPDATE, old, t->grad[i], 1);
    t->new_momentum[i] = term_of(TERM_UPDATE, old, t->grad[i], 2);
    t->new_variance[i] = term_of(TERM_UPDATE, old, t->grad[i], 3);
    t->new_param[i] = term_round(t->s->input.type, t->new_master[i]);
}

void truth_prepare(shadow_truth *t)
{
    size_t bytes = (size_t)t->n * sizeof(term);
    memcpy(t->due, t->grad, bytes);
    memcpy(t->new_param, t->param, bytes);
    for (int64_t i = 0; i < t->n; i++) update(t, i);
}

void truth_commit(shadow_truth *t)
{
    size_t bytes = (size_t)t->n * sizeof(term);
    memcpy(t->param, t->new_param, bytes);
    memcpy(t->master, t->new_master, bytes);
    memcpy(t->momentum, t->new_momentum, bytes);
    memcpy(t->variance, t->new_variance, bytes);
    t->reads_new = false;
}

static term *new_terms(const shadow_truth *t, term number)
{
    term *x = calloc((size_t)t->n, sizeof *x);
    assert_non_null(x);
    for (int64_t i = 0; i < t->n; i++) x[i] = term_of(TERM_INITIAL, (term)i, number, 0);
    return x;
}

void truth_open(shadow_truth *t, const zero_schedule *s)
{
    *t = (shadow_truth){.s = s, .n = (int64_t)s->input.model->n_groups * pieces_of(s)};
    t->master = new_terms(t, 1);
    t->momentum = new_terms(t, 2);
    t->variance = new_terms(t, 3);
    t->param = new_terms(t, 1);
    t->grad = new_terms(t, 4);
    t->due = new_terms(t, 4);
    t->new_master = new_terms(t, 1);
    t->new_momentum = new_terms(t, 2);
    t->new_variance = new_terms(t, 3);
    t->new_param = new_terms(t, 1);
    for (int64_t i = 0; i < t->n; i++)
        t->param[i] = term_round(s->input.type, t->master[i]);
}

void truth_close(shadow_truth *t)
{
    free(t->param);
    free(t->master);
    free(t->momentum);
    free(t->variance);
    free(t->grad);
    free(t->due);
    free(t->new_param);
    free(t->new_master);
    free(t->new_momentum);
    free(t->new_variance);
}
