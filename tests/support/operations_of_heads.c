/* operations_of_heads.c - operations whose rows have heads: turns, attention, and keys and values
 * that are kept; and gates. */
#include "support/calls.h"

/* Queries and keys, whose heads have C / H numbers; four fifths of these turn, if that is
 * not none. */
static zero_turn turn_of(call *c)
{
    const int64_t H = c->s.H, K = c->s.K, D = c->s.C / H;
    zero_turn t = {.B = c->s.B, .T = c->s.T, .H = H, .K = K, .D = D};
    t.R = zero_min(zero_max(D * 4 / 5 / 2 * 2, D / 2 * 2 > 2 ? 2 : D / 2 * 2),
                   2 * ZERO_TURN_PAIRS);
    t.type = c->s.type, t.rows_type = c->s.rows, t.eps = 1e-5f;
    for (int64_t i = 0; i < t.R / 2; i++) t.frequency[i] = 1.0f / (float)(1 + 3 * i);
    if (c->s.lacks) return t;
    t.gain_q = weights(c, "gain", 2 * D);
    t.gain_k = (const char *)t.gain_q + zero_type_size(t.type) * (size_t)D;
    return t;
}

static int64_t turned(const call *c)
{
    return rows_of(c) * (c->s.H + c->s.K) * (c->s.C / c->s.H);
}

static void set_heads(const zero_turn *t, const void *x, zero_heads *q, zero_heads *k)
{
    const int64_t row = (t->H + t->K) * t->D;
    *q = zero_heads_of(t->rows_type, x, 0, row, t->D);
    *k = zero_heads_of(t->rows_type, x, t->H * t->D, row, t->D);
}

void make_turn(call *c)
{
    zero_turn t = turn_of(c);
    const void *x;
    void *y = rows_from(c, "y", "x", turned(c), &x);
    t.past = c->s.past;
    if (t.gain_q) t.rstd = floats(c, "rstd", rows_of(c) * (t.H + t.K), WRITTEN);
    set_heads(&t, x, &t.q, &t.k);
    set_heads(&t, y, &t.to_q, &t.to_k);
    MAKE(c, turn, &t);
}

void make_turn_backward(call *c)
{
    zero_turn t = turn_of(c);
    t.slices = c->s.slices ? c->s.slices : 1, t.accumulate = c->s.accumulate;
    if (t.gain_q) t.rstd = floats(c, "rstd", rows_of(c) * (t.H + t.K), READ);
    if (t.gain_q) t.sums = sums(c, "dgain", 2 * t.slices * t.D);
    set_heads(&t, rows(c, "x", turned(c), READ), &t.q, &t.k);
    set_heads(&t, rows_like(c, "dx", "dy", turned(c), BOTH), &t.dq, &t.dk);
    MAKE(c, turn_backward, &t);
}

/* ---- attention ---- */

static int64_t attended(const call *c)
{
    return rows_of(c) * (c->s.H + 2 * c->s.K) * (c->s.C / c->s.H);
}

static zero_attention attention_of(call *c)
{
    const int threads = c->where->math.threads > 1 ? c->where->math.threads : 1;
    zero_attention a = {
        .B = c->s.B, .T = c->s.T, .H = c->s.H, .K = c->s.K, .D = c->s.C / c->s.H};
    a.first_head = 3, a.dropout = dropout_of(c), a.factors = c->s.factors,
    a.rows_type = c->s.rows;
    if (c->where->ops->attention_workspace)
        a.work = floats(c, "work", threads * c->where->ops->attention_workspace(&a), WORK);
    return a;
}

void make_attention(call *c)
{
    zero_attention a = attention_of(c);
    zero_attention_rows(&a, rows(c, "x", attended(c), READ), NULL);
    a.out = rows(c, "y", numbers_of(c), WRITTEN);
    a.lse = floats(c, "lse", rows_of(c) * a.H, WRITTEN);
    MAKE(c, attention, &a);
}

void make_attention_backward(call *c)
{
    zero_attention a = attention_of(c);
    zero_attention_rows(&a, rows(c, "x", attended(c), READ),
                        rows(c, "dx", attended(c), WRITTEN));
    a.out = rows(c, "y", numbers_of(c), READ);
    a.dout = rows(c, "dy", numbers_of(c), READ);
    a.lse = floats(c, "lse", rows_of(c) * a.H, READ);
    MAKE(c, attention_backward, &a);
}

/* Keys and values of each text as arrays "kept", within a cache that has a workspace,
 * too. */
static zero_cached cached_of(call *c)
{
    const int64_t D = c->s.C / c->s.H;
    zero_cached a = {.B = c->s.B, .T = c->s.T, .H = c->s.H, .K = c->s.K, .D = D};
    a.room = c->s.past ? LONGEST_PAST + a.T : a.T + 2;
    a.rows_type = c->s.rows, a.past = c->s.past;
    a.cache =
        floats(c, "cache", a.B * zero_cache_floats(a.rows_type, a.room, a.H, a.K, D), WORK);
    for (int64_t b = 0; b < a.B; b++) {
        array kept = {"kept", "kept", (int)b, a.rows_type, BOTH, 2 * a.room * a.K * D, 0};
        kept.at = (size_t)((const char *)zero_cached_part(&a, b) - c->where->memory);
        begin_array(c, &kept, true);
        assert_true(c->n_arrays < MOST_ARRAYS);
        c->arrays[c->n_arrays++] = kept;
    }
    return a;
}

/* Queries, keys and values of rows as zero_attention_rows() has them. */
static void set_rows(zero_cached *a, const void *qkv)
{
    zero_attention whole = {.H = a->H, .K = a->K, .D = a->D, .rows_type = a->rows_type};
    zero_attention_rows(&whole, qkv, NULL);
    a->q = whole.q, a->k = whole.k, a->v = whole.v;
}

void make_remember(call *c)
{
    zero_cached a = cached_of(c);
    set_rows(&a, rows(c, "x", attended(c), READ));
    MAKE(c, remember, &a);
}

/* The last position of each text meets what is kept. */
void make_recall(call *c)
{
    const int64_t past[] = {c->s.T - 1, c->s.T / 2, 0, c->s.T / 3};
    zero_cached a = cached_of(c);
    assert_true(a.past || a.B <= (int64_t)COUNT(past));
    if (!a.past) a.past = past;
    a.T = 1;
    set_rows(&a, rows(c, "x", attended(c) / c->s.T, READ));
    a.out = rows(c, "y", c->s.B * c->s.C, WRITTEN);
    MAKE(c, recall, &a);
}

/* ---- gates ---- */

void make_swiglu(call *c)
{
    const zero_swiglu s = {.rows = rows_of(c),
                           .F = c->s.C,
                           .rows_type = c->s.rows,
                           .x = rows(c, "x", 2 * numbers_of(c), READ),
                           .y = rows(c, "y", numbers_of(c), WRITTEN)};
    MAKE(c, swiglu, &s);
}

void make_swiglu_backward(call *c)
{
    const zero_swiglu s = {.rows = rows_of(c),
                           .F = c->s.C,
                           .rows_type = c->s.rows,
                           .x = rows(c, "x", 2 * numbers_of(c), READ),
                           .d = rows_like(c, "dx", "dy", 2 * numbers_of(c), BOTH)};
    MAKE(c, swiglu_backward, &s);
}
