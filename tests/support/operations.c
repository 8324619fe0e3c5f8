/* operations.c - the operations of a backend: the arrays of each, and its call. */
#include "support/calls.h"

static int64_t rows_of(const call *c)
{
    return c->s.B * c->s.T;
}

static int64_t numbers_of(const call *c)
{
    return rows_of(c) * c->s.C;
}

/* An array that begins as an earlier call has left it is not changed. */
static bool is_given(const call *c, const char *name)
{
    return c->given && array_named(c->given, name);
}

static zero_dropout dropout_of(const call *c)
{
    return (zero_dropout){
        {.seed = 5, .purpose = ZERO_RNG_TEST, .step = 9, .sample = 3, .tensor = 11},
        c->s.drops ? 0.3f : 0.0f};
}

static void clear(call *c)
{
    float *x = floats(c, "x", numbers_of(c), WRITTEN);
    MAKE(c, clear, numbers_of(c), x);
}

/* ---- biases and GELU ---- */

static zero_bias bias_of(call *c, const char *result)
{
    return (zero_bias){.rows = rows_of(c),
                       .cols = c->s.C,
                       .type = c->s.type,
                       .rows_type = c->s.rows,
                       .bias = weights(c, "bias", c->s.C),
                       .x = rows_like(c, result, "x", numbers_of(c), BOTH)};
}

static void add_bias(call *c)
{
    const zero_bias b = bias_of(c, "y");
    MAKE(c, add_bias, &b);
}

/* Some of x are far from zero. */
static void make_gelu(call *c, bool is_exact)
{
    zero_bias b = bias_of(c, "x");
    b.y = rows(c, "y", numbers_of(c), WRITTEN), b.is_exact = is_exact;
    if (c->s.rows == ZERO_FP32 && c->s.numbers == ZERO_FP32 && !is_given(c, "x"))
        for (int64_t i = 0; i < numbers_of(c); i += 5) ((float *)image(c, b.x))[i] *= 8.0f;
    MAKE(c, bias_gelu, &b);
}

static void bias_gelu(call *c)
{
    make_gelu(c, false);
}

static void bias_exact_gelu(call *c)
{
    make_gelu(c, true);
}

/* Of x as a call has stored it: adding -0 changes no number. */
static void make_gelu_alone(call *c, bool is_exact)
{
    zero_bias b = bias_of(c, "x");
    b.y = rows(c, "y", numbers_of(c), WRITTEN), b.is_exact = is_exact;
    for (int64_t i = 0; i < c->s.C; i++) ((float *)image(c, b.bias))[i] = -0.0f;
    MAKE(c, bias_gelu, &b);
}

static void gelu(call *c)
{
    make_gelu_alone(c, false);
}

static void exact_gelu(call *c)
{
    make_gelu_alone(c, true);
}

static zero_bias_grad bias_grad_of(call *c)
{
    return (zero_bias_grad){.rows = rows_of(c),
                            .cols = c->s.C,
                            .rows_type = c->s.rows,
                            .accumulate = c->s.accumulate,
                            .dbias = sums(c, "dbias", c->s.C)};
}

static void bias_backward(call *c)
{
    zero_bias_grad b = bias_grad_of(c);
    b.dy = rows(c, "dy", numbers_of(c), READ);
    MAKE(c, bias_backward, &b);
}

static void sum_of_dx(call *c)
{
    const call *given = c->given;
    c->given = NULL;
    zero_bias_grad b = bias_grad_of(c); /* begins as before */
    c->given = given;
    b.dy = rows(c, "dx", numbers_of(c), READ);
    MAKE(c, bias_backward, &b);
}

static void make_gelu_backward(call *c, bool is_exact)
{
    zero_bias_grad b = bias_grad_of(c);
    b.x = rows(c, "x", numbers_of(c), READ), b.is_exact = is_exact;
    b.dx = rows_from(c, "dx", "dy", numbers_of(c), &b.dy);
    MAKE(c, bias_gelu_backward, &b);
}

static void bias_gelu_backward(call *c)
{
    make_gelu_backward(c, false);
}

static void bias_exact_gelu_backward(call *c)
{
    make_gelu_backward(c, true);
}

/* ---- dropout ---- */

static void add_branch(call *c)
{
    zero_branch b = {.dropout = dropout_of(c), .B = c->s.B, .T = c->s.T, .cols = c->s.C};
    b.type = c->s.type, b.rows_type = c->s.rows;
    b.bias = c->s.lacks ? NULL : weights(c, "bias", c->s.C);
    b.residual = rows(c, "residual", numbers_of(c), READ);
    b.out = rows_from(c, "out", "in", numbers_of(c), &b.in);
    MAKE(c, add_branch, &b);
}

static void dropout(call *c)
{
    const zero_dropout d = dropout_of(c);
    const void *x;
    void *y = rows_from(c, "y", "x", numbers_of(c), &x);
    MAKE(c, dropout, &d, c->s.rows, c->s.B, c->s.T * c->s.C, x, y);
}

/* ---- norms ---- */

static void layernorm(call *c)
{
    const zero_layernorm_args n = {
        .rows = rows_of(c),
        .C = c->s.C,
        .type = c->s.type,
        .rows_type = c->s.rows,
        .eps = ZERO_LAYERNORM_EPS,
        .x = rows(c, "x", numbers_of(c), READ),
        .gain = weights(c, "gain", c->s.C),
        .bias = c->s.lacks ? NULL : weights(c, "bias", c->s.C),
        .y = rows(c, "y", numbers_of(c), WRITTEN),
        .mean = c->s.lacks ? NULL : floats(c, "mean", rows_of(c), WRITTEN),
        .rstd = floats(c, "rstd", rows_of(c), WRITTEN)};
    MAKE(c, layernorm, &n);
}

static void layernorm_backward(call *c)
{
    const zero_layernorm_grad_args n = {
        .rows = rows_of(c),
        .C = c->s.C,
        .type = c->s.type,
        .rows_type = c->s.rows,
        .x = rows(c, "x", numbers_of(c), READ),
        .gain = weights(c, "gain", c->s.C),
        .mean = c->s.lacks ? NULL : floats(c, "mean", rows_of(c), READ),
        .rstd = floats(c, "rstd", rows_of(c), READ),
        .dy = rows(c, "dy", numbers_of(c), READ),
        .dx = rows(c, "dx", numbers_of(c), BOTH),
        .accumulate = c->s.accumulate,
        .dgain = sums(c, "dgain", c->s.C),
        .dbias = c->s.lacks ? NULL : sums(c, "dbias", c->s.C)};
    MAKE(c, layernorm_backward, &n);
}

/* ---- gates and positions ---- */

static void swiglu(call *c)
{
    const zero_swiglu s = {.rows = rows_of(c),
                           .F = c->s.C,
                           .rows_type = c->s.rows,
                           .x = rows(c, "x", 2 * numbers_of(c), READ),
                           .y = rows(c, "y", numbers_of(c), WRITTEN)};
    MAKE(c, swiglu, &s);
}

static void swiglu_backward(call *c)
{
    const zero_swiglu s = {.rows = rows_of(c),
                           .F = c->s.C,
                           .rows_type = c->s.rows,
                           .x = rows(c, "x", 2 * numbers_of(c), READ),
                           .d = rows_like(c, "dx", "dy", 2 * numbers_of(c), BOTH)};
    MAKE(c, swiglu_backward, &s);
}

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

static void turn(call *c)
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

static void turn_backward(call *c)
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

static void attention(call *c)
{
    zero_attention a = attention_of(c);
    zero_attention_rows(&a, rows(c, "x", attended(c), READ), NULL);
    a.out = rows(c, "y", numbers_of(c), WRITTEN);
    a.lse = floats(c, "lse", rows_of(c) * a.H, WRITTEN);
    MAKE(c, attention, &a);
}

static void attention_backward(call *c)
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
    a.room = a.T + 2, a.rows_type = c->s.rows, a.past = c->s.past;
    for (int64_t b = 0; a.past && b < a.B; b++)
        a.room = zero_max(a.room, a.past[b] + a.T + 1);
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

static void remember(call *c)
{
    zero_cached a = cached_of(c);
    test_cached_rows(&a, rows(c, "x", attended(c), READ));
    MAKE(c, remember, &a);
}

/* The last position of each text meets what is kept. */
static void recall(call *c)
{
    const int64_t past[] = {c->s.T - 1, c->s.T / 2, 0, c->s.T / 3};
    zero_cached a = cached_of(c);
    assert_true(a.past || a.B <= (int64_t)COUNT(past));
    if (!a.past) a.past = past;
    a.T = 1;
    test_cached_rows(&a, rows(c, "x", attended(c) / c->s.T, READ));
    a.out = rows(c, "y", c->s.B * c->s.C, WRITTEN);
    MAKE(c, recall, &a);
}

/* ---- embeddings ---- */

/* `words` of V words, from `first` on, are this rank's; 0: all. */
static void embedding(call *c)
{
    zero_embedding e = {.B = c->s.B, .T = c->s.T, .C = c->s.C};
    int64_t positions = e.T;
    e.first = c->s.first, e.words = c->s.words, e.type = c->s.type, e.rows_type = c->s.rows;
    e.past = c->s.past;
    for (int64_t b = 0; e.past && b < e.B; b++)
        positions = zero_max(positions, e.past[b] + e.T);
    e.tokens = tokens(c, rows_of(c), c->s.V);
    e.wte = weights(c, "wte", (e.words ? e.words : c->s.V) * e.C);
    e.wpe = c->s.lacks ? NULL : weights(c, "wpe", positions * e.C);
    e.out = rows(c, "out", numbers_of(c), WRITTEN);
    MAKE(c, embedding, &e);
}

static void embedding_backward(call *c)
{
    zero_embedding_grad e = {.B = c->s.B, .T = c->s.T, .C = c->s.C, .rows_type = c->s.rows};
    e.first = c->s.first, e.words = c->s.words;
    e.tokens = tokens(c, rows_of(c), c->s.V);
    e.dout = rows(c, "dout", numbers_of(c), READ);
    e.dwte = floats(c, "dwte", (e.words ? e.words : c->s.V) * e.C, BOTH);
    e.dwpe = c->s.lacks ? NULL : floats(c, "dwpe", e.T * e.C, BOTH);
    MAKE(c, embedding_backward, &e);
}

/* ---- losses: C words ---- */

static float *logits_of(call *c, const char *name)
{
    float *x =
        place(c, (array){name, "logits", 0, ZERO_FP32, BOTH, numbers_of(c), 0}, false);
    for (int64_t i = 0; !is_given(c, "logits") && i < numbers_of(c); i++)
        ((float *)image(c, x))[i] *= 4.0f;
    return x;
}

static void cross_entropy(call *c)
{
    const zero_cross_entropy e = {.rows = rows_of(c),
                                  .V = c->s.C,
                                  .targets = tokens(c, rows_of(c), c->s.C),
                                  .logits = logits_of(c, "logits"),
                                  .loss = floats(c, "loss", rows_of(c), WRITTEN)};
    MAKE(c, cross_entropy, &e);
}

static void cross_entropy_backward(call *c)
{
    const zero_cross_entropy e = {.rows = rows_of(c),
                                  .V = c->s.C,
                                  .targets = tokens(c, rows_of(c), c->s.C),
                                  .dscale = 0.75f,
                                  .logits = logits_of(c, "dlogits"),
                                  .loss = floats(c, "loss", rows_of(c), WRITTEN)};
    MAKE(c, cross_entropy, &e);
}

/* In two slices of one rank. */
static void softmax(call *c)
{
    const int64_t n = rows_of(c), ends[] = {c->s.C / 3, c->s.C};
    const zero_backend *ops = c->where->ops;
    if (!ops->softmax_slices || c->s.C < 3) return;
    zero_softmax s = {.rows = n, .V = c->s.C, .slices = 2, .ends = ends, .ranks = 1};
    s.targets = tokens(c, n, s.V), s.logits = logits_of(c, "logits"), s.dscale = 0.1f;
    s.all = s.stats = floats(c, "stats", 5 * n, WRITTEN);
    s.loss = floats(c, "loss", n, WRITTEN);
    while (next(c)) {
        ops->softmax_slices(&c->where->math, &s);
        ops->softmax_loss(&c->where->math, &s);
    }
}

/* ---- flat ranges ---- */

/* Moments are as any, or denormal, or at the limits below which they count as zero. */
static void adamw(call *c)
{
    static const float small[] = {0x1p-125f,  0x1.fffffep-126f, -0x1p-126f, 0x1p-149f,
                                  -0x1p-127f, 0x1p-90f,         0x1p-91f,   0.0f};
    const zero_adamw recipe = test_recipe();
    const int64_t n = numbers_of(c);
    zero_adamw_arrays a = {.n = n, .type = c->s.type, .grad = weights(c, "grad", n)};
    a.master = floats(c, "master", n, BOTH);
    a.m = floats(c, "m", n, BOTH), a.v = floats(c, "v", n, BOTH);
    if (a.type != ZERO_FP32) a.param = numbers(c, "param", "param", a.type, n, WRITTEN);
    float *m = image(c, a.m), *v = image(c, a.v);
    for (int64_t i = 0; i < n; i++) v[i] *= v[i];
    for (int64_t i = 0; c->s.is_odd && i < n; i += 5)
        m[i] = small[(size_t)(i / 5) % COUNT(small)];
    for (int64_t i = 2; c->s.is_odd && i < n; i += 7)
        v[i] = small[(size_t)(i / 7) % COUNT(small)];
    MAKE(c, adamw, &recipe, &a);
}

/* Room for numbers of 8 bytes, at a multiple of 8. */
static void *wide_sum(call *c, size_t bytes, usage access)
{
    const int shift = c->s.shift;
    c->s.shift = 0;
    void *sum =
        place(c, (array){"sum", "sum", 0, ZERO_FP32, access, (int64_t)bytes / 4, 0}, false);
    c->s.shift = shift;
    return sum;
}

static void sum_squares(call *c)
{
    const void *x = weights(c, "x", numbers_of(c));
    void *sum = wide_sum(c, sizeof(double), WRITTEN);
    MAKE(c, sum_squares, c->s.type, numbers_of(c), x, sum);
}

static void exact_squares(call *c)
{
    if (!c->where->ops->exact_squares) return;
    const void *x = weights(c, "x", numbers_of(c));
    zero_exact *sum = wide_sum(c, sizeof *sum, BOTH);
    memset(image(c, sum), 0, sizeof *sum);
    MAKE(c, exact_squares, c->s.type, numbers_of(c), x, sum);
}

static void round_numbers(call *c)
{
    const int64_t n = numbers_of(c);
    const float *in = numbers(c, "in", "in", ZERO_FP32, n, READ);
    void *out = numbers(c, "out", "out", c->s.type, n, WRITTEN);
    c->has_weights = true;
    MAKE(c, round, c->s.type, n, in, out);
}

/* Onto the leaf or onto the sum; or the leaf alone. */
static void accumulate(call *c)
{
    const int64_t n = numbers_of(c);
    const bool on_sum = c->s.in_place && c->s.accumulate && !c->s.lacks;
    const bool on_leaf = c->s.in_place && !on_sum;
    float *out = numbers(c, "out", on_sum ? "sum" : "leaf", ZERO_FP32, n,
                         c->s.in_place ? BOTH : WRITTEN);
    const float *leaf = on_leaf ? out : numbers(c, "leaf", "leaf", ZERO_FP32, n, READ);
    const float *sum = c->s.lacks ? NULL
                       : on_sum   ? out
                                  : numbers(c, "sum", "sum", ZERO_FP32, n, READ);
    c->has_weights = true;
    MAKE(c, accumulate, c->s.type, n, sum, leaf, out);
}

/* ---- products: rows by C by V ---- */

static zero_gemm product_of(call *c)
{
    const shape *s = &c->s;
    const int64_t pad = s->ways & STRIDES ? 3 : 0;
    const bool few = s->ways & FEW_ROWS;
    zero_gemm g = {
        .m = rows_of(c), .n = s->C, .k = s->V, .few_rows = few, .factors = s->factors};
    g.transpose_a = (s->ways & TURN_A) && !few, g.transpose_b = s->ways & TURN_B;
    g.accumulate = s->accumulate && !few && s->slices == 0;
    g.slices = s->slices, g.slice_parts = s->parts;
    g.lda = (g.transpose_a ? g.m : g.k) + pad;
    g.ldb = (g.transpose_b ? g.k : g.n) + 2 * pad;
    g.ldc = g.n + pad;
    g.a_type = s->ways & WIDE_A || g.accumulate ? ZERO_FP32 : s->rows, g.b_type = s->type;
    g.c_type = s->ways & WIDE_C || g.accumulate ? ZERO_FP32 : s->rows;
    return g;
}

static void gemm(call *c)
{
    zero_gemm g = product_of(c);
    c->has_weights = c->has_rows = true;
    g.a = numbers(c, "a", "a", g.a_type, g.lda * (g.transpose_a ? g.k : g.m), READ);
    g.b = numbers(c, "b", "b", g.b_type, g.ldb * (g.transpose_b ? g.n : g.k), READ);
    g.c = numbers(c, "c", "c", g.c_type, g.m * g.ldc, g.accumulate ? BOTH : WRITTEN);
    MAKE(c, gemm, &g);
}

const operation operations[] = {
    {.name = "clear", .make = clear},
    {.name = "gemm", .make = gemm, .near = "c"},
    {.name = "add_bias", .make = add_bias},
    {.name = "bias_backward", .make = bias_backward, .near = "dbias"},
    {.name = "add_branch", .make = add_branch},
    {.name = "dropout", .make = dropout},
    {.name = "bias_gelu", .make = bias_gelu, .near = "y", .later = "y", .again = gelu},
    {.name = "bias_gelu_backward",
     .make = bias_gelu_backward,
     .near = "dx dbias",
     .later = "dbias",
     .again = sum_of_dx},
    {.name = "bias_exact_gelu",
     .make = bias_exact_gelu,
     .near_on_gpu = "y",
     .later = "y",
     .again = exact_gelu},
    {.name = "bias_exact_gelu_backward",
     .make = bias_exact_gelu_backward,
     .near = "dbias",
     .near_on_gpu = "dx",
     .later = "dbias",
     .again = sum_of_dx},
    {.name = "layernorm", .make = layernorm, .near = "y mean rstd"},
    {.name = "layernorm_backward", .make = layernorm_backward, .near = "dx dgain dbias"},
    {.name = "swiglu", .make = swiglu, .near = "y"},
    {.name = "swiglu_backward", .make = swiglu_backward, .near = "dx"},
    {.name = "turn", .make = turn, .near = "y rstd"},
    {.name = "turn_backward", .make = turn_backward, .near = "dx dgain"},
    {.name = "attention", .make = attention, .near = "y lse"},
    {.name = "attention_backward",
     .make = attention_backward,
     .near = "dx",
     .first = attention},
    {.name = "remember", .make = remember},
    {.name = "recall", .make = recall, .near = "y"},
    {.name = "embedding", .make = embedding},
    {.name = "embedding_backward", .make = embedding_backward},
    {.name = "cross_entropy", .make = cross_entropy, .near = "loss"},
    {.name = "cross_entropy_backward",
     .make = cross_entropy_backward,
     .near = "dlogits loss"},
    {.name = "softmax", .make = softmax, .near = "stats logits loss"},
    {.name = "adamw", .make = adamw},
    {.name = "sum_squares", .make = sum_squares},
    {.name = "exact_squares", .make = exact_squares},
    {.name = "round", .make = round_numbers},
    {.name = "accumulate", .make = accumulate},
};
const int n_operations = (int)COUNT(operations);

const operation *operation_named(const char *name)
{
    for (int i = 0; i < n_operations; i++)
        if (strcmp(operations[i].name, name) == 0) return &operations[i];
    fail_msg("there is no operation %s", name);
    return NULL;
}
