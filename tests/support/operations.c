/* operations.c - the operations of a backend: the arrays of each, and its call. */
#include "support/calls.h"

/* An array that begins as an earlier call has left it is not changed. */
static bool is_given(const call *c, const char *name)
{
    return c->given && array_named(c->given, name);
}

zero_dropout dropout_of(const call *c)
{
    return (zero_dropout){
        {.seed = 5, .purpose = ZERO_RNG_TEST, .step = 9, .sample = 3, .tensor = 11},
        c->s.p > 0.0f ? c->s.p
        : c->s.drops  ? 0.3f
                      : 0.0f};
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

static bool is_exact(const call *c)
{
    return strstr(c->op->name, "exact") != NULL;
}

/* Some of x are far from zero. */
static void bias_gelu(call *c)
{
    zero_bias b = bias_of(c, "x");
    b.y = rows(c, "y", numbers_of(c), WRITTEN), b.is_exact = is_exact(c);
    if (c->s.rows == ZERO_FP32 && c->s.numbers == ZERO_FP32 && !is_given(c, "x"))
        for (int64_t i = 0; i < numbers_of(c); i += 5) ((float *)image(c, b.x))[i] *= 8.0f;
    MAKE(c, bias_gelu, &b);
}

/* Of x as a call has stored it: adding -0 changes no number. */
static void gelu_alone(call *c)
{
    zero_bias b = bias_of(c, "x");
    b.y = rows(c, "y", numbers_of(c), WRITTEN), b.is_exact = is_exact(c);
    for (int64_t i = 0; i < c->s.C; i++) ((float *)image(c, b.bias))[i] = -0.0f;
    MAKE(c, bias_gelu, &b);
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

static void bias_gelu_backward(call *c)
{
    zero_bias_grad b = bias_grad_of(c);
    b.x = rows(c, "x", numbers_of(c), READ), b.is_exact = is_exact(c);
    b.dx = rows_from(c, "dx", "dy", numbers_of(c), &b.dy);
    MAKE(c, bias_gelu_backward, &b);
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

/* Their gradient is not asked for if `dscale` is 0. */
static void make_loss(call *c, const char *logits, float dscale)
{
    const int32_t *targets = tokens(c, rows_of(c), c->s.C);
    if (rows_of(c) > 2) ((int32_t *)image(c, targets))[1] = -1; /* it does not count */
    const zero_cross_entropy e = {.rows = rows_of(c),
                                  .V = c->s.C,
                                  .targets = targets,
                                  .dscale = dscale,
                                  .logits = logits_of(c, logits),
                                  .loss = floats(c, "loss", rows_of(c), WRITTEN)};
    MAKE(c, cross_entropy, &e);
}

static void cross_entropy(call *c)
{
    make_loss(c, "logits", 0.0f);
}

static void cross_entropy_backward(call *c)
{
    make_loss(c, "dlogits", 0.75f);
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

/* Room for numbers of 8 bytes, at a multiple of 8. */
static void *wide_number(call *c, const char *name, size_t bytes, usage access)
{
    const int shift = c->s.shift;
    c->s.shift = 0;
    const array x = {name, name, 0, ZERO_FP32, access, (int64_t)bytes / 4, 0};
    void *at = place(c, x, false);
    c->s.shift = shift;
    return at;
}

/* Moments are as any, or denormal, or at the limits below which they count as zero, or move
 * nothing: without a gradient, a master of zero shows it. */
static void make_odd(call *c, const zero_adamw_arrays *a)
{
    static const float small[] = {0x1p-125f, 0x1.fffffep-126f, -0x1p-126f,
                                  0x1p-149f, -0x1p-127f,       0x1p-90f,
                                  0x1p-91f,  0x1.2p-90f,       0.0f};
    const size_t size = zero_type_size(a->type);
    float *m = image(c, a->m), *v = image(c, a->v), *master = image(c, a->master);
    for (int64_t i = 0; i < a->n; i += 5) {
        m[i] = small[(size_t)(i / 5) % COUNT(small)];
        if (i % 2) continue;
        master[i] = 0.0f;
        memset((char *)image(c, a->grad) + size * (size_t)i, 0, size);
    }
    for (int64_t i = 2; i < a->n; i += 7) v[i] = small[(size_t)(i / 7) % COUNT(small)];
}

/* Parameters are the masters; a bit of two differs, or of none. */
static void tell(call *c, zero_adamw_arrays *a)
{
    const int64_t low = a->n / 3, high = a->n - 1;
    a->param = place(c, (array){"param", "master", 0, a->type, BOTH, a->n, 0}, false);
    a->changed = wide_number(c, "changed", sizeof(uint64_t), BOTH);
    a->first = INT64_C(1) << 40;
    *(uint64_t *)image(c, a->changed) = 0;
    uint16_t *param = image(c, a->param);
    zero_convert(ZERO_FP32, a->type, a->n, image(c, a->master), param);
    if (c->s.tells > 1 && a->n > 0)
        param[high] ^= 0x8000, param[low] ^= low == high ? 0x8001 : 1;
}

static void adamw(call *c)
{
    const zero_adamw usual = test_recipe(), *recipe = c->s.recipe ? c->s.recipe : &usual;
    const int64_t n = numbers_of(c);
    zero_adamw_arrays a = {.n = n, .type = c->s.type, .grad = weights(c, "grad", n)};
    a.master = floats(c, "master", n, BOTH);
    a.m = floats(c, "m", n, BOTH), a.v = floats(c, "v", n, BOTH);
    float *v = image(c, a.v);
    for (int64_t i = 0; i < n; i++) v[i] *= v[i];
    if (c->s.is_odd) make_odd(c, &a);
    if (a.type != ZERO_FP32 && c->s.tells)
        tell(c, &a);
    else if (a.type != ZERO_FP32)
        a.param = numbers(c, "param", "param", a.type, n, WRITTEN);
    MAKE(c, adamw, recipe, &a);
}

/* Parameters are the masters, rounded. */
static void params_of_masters(call *c)
{
    const int64_t n = numbers_of(c);
    const float *master = floats(c, "master", n, READ);
    float *param = floats(c, "param", n, WRITTEN);
    MAKE(c, round, ZERO_FP32, n, master, param);
}

static void sum_squares(call *c)
{
    const void *x = weights(c, "x", numbers_of(c));
    void *sum = wide_number(c, "sum", sizeof(double), WRITTEN);
    MAKE(c, sum_squares, c->s.type, numbers_of(c), x, sum);
}

static void exact_squares(call *c)
{
    if (!c->where->ops->exact_squares) return;
    const void *x = weights(c, "x", numbers_of(c));
    zero_exact *sum = wide_number(c, "sum", sizeof *sum, BOTH);
    *(zero_exact *)image(c, sum) = (zero_exact){{3, 0, 1, 5}}; /* what is there already */
    MAKE(c, exact_squares, c->s.type, numbers_of(c), x, sum);
}

static void round_numbers(call *c)
{
    const int64_t n = numbers_of(c);
    const bool in_place = c->s.in_place && c->s.type == ZERO_FP32;
    void *out = numbers(c, "out", "in", c->s.type, n, in_place ? BOTH : WRITTEN);
    const float *in = in_place ? out : numbers(c, "in", "in", ZERO_FP32, n, READ);
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
    {.name = "bias_gelu",
     .make = bias_gelu,
     .near = "y",
     .later = "y",
     .again = gelu_alone},
    {.name = "bias_gelu_backward",
     .make = bias_gelu_backward,
     .near = "dx dbias",
     .later = "dbias",
     .again = sum_of_dx},
    {.name = "bias_exact_gelu",
     .make = bias_gelu,
     .near_on_gpu = "y",
     .later = "y",
     .again = gelu_alone},
    {.name = "bias_exact_gelu_backward",
     .make = bias_gelu_backward,
     .near = "dbias",
     .near_on_gpu = "dx",
     .later = "dbias",
     .again = sum_of_dx},
    {.name = "layernorm", .make = layernorm, .near = "y mean rstd"},
    {.name = "layernorm_backward", .make = layernorm_backward, .near = "dx dgain dbias"},
    {.name = "swiglu", .make = make_swiglu, .near = "y"},
    {.name = "swiglu_backward", .make = make_swiglu_backward, .near = "dx"},
    {.name = "turn", .make = make_turn, .near = "y rstd"},
    {.name = "turn_backward", .make = make_turn_backward, .near = "dx dgain"},
    {.name = "attention", .make = make_attention, .near = "y lse"},
    {.name = "attention_backward",
     .make = make_attention_backward,
     .near = "dx",
     .first = make_attention},
    {.name = "remember", .make = make_remember},
    {.name = "recall", .make = make_recall, .near = "y"},
    {.name = "embedding", .make = embedding},
    {.name = "embedding_backward", .make = embedding_backward},
    {.name = "cross_entropy", .make = cross_entropy, .near = "loss"},
    {.name = "cross_entropy_backward",
     .make = cross_entropy_backward,
     .near = "dlogits loss"},
    {.name = "softmax", .make = softmax, .near = "stats logits loss"},
    {.name = "adamw", .make = adamw, .later = "param", .again = params_of_masters},
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
