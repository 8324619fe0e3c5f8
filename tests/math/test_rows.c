/* Rows of 16 bits: every call on them has the bits of the same call on the same numbers widened to
 * fp32, its results rounded once, for the oracle and for the cpu backend on each instruction set and
 * with several threads; and the cpu backend agrees with the oracle. */
#include "support/rows_test.h"

/* ---- biases ---- */

static void add_bias(call *c)
{
    const int64_t n = rows_of(c) * c->cols;
    numbers x = rows(c, n), bias = weights(c, c->cols);
    for (int half = 0; half < 2; half++)
        c->m->ops->add_bias(&c->m->math, &(zero_bias){.rows = rows_of(c),
                                                      .cols = c->cols,
                                                      .type = c->type,
                                                      .rows_type = type_at(c, half),
                                                      .bias = bias.half,
                                                      .x = at(&x, half)});
    check_rows(c, &x, n);
}

static void sum_rows(const call *c, zero_type type, const void *dy, bool accumulate,
                     float *dbias)
{
    c->m->ops->bias_backward(&c->m->math, &(zero_bias_grad){.rows = rows_of(c),
                                                            .cols = c->cols,
                                                            .rows_type = type,
                                                            .dy = dy,
                                                            .accumulate = accumulate,
                                                            .dbias = dbias});
}

static void bias_backward(call *c)
{
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        numbers dy = rows(c, rows_of(c) * c->cols);
        float *got = test_floats(c->pool, c->cols),
              *want = test_copy(c->pool, c->cols, got);
        sum_rows(c, ZERO_FP32, dy.wide, accumulate, want);
        sum_rows(c, c->type, dy.half, accumulate, got);
        check_floats(c, c->cols, got, want);
    }
}

/* y is made from x as it is stored: adding -0 changes no number. */
static void check_gelu(call *c, bool is_exact)
{
    const int64_t n = rows_of(c) * c->cols;
    numbers x = rows(c, n), y = rows(c, n), bias = weights(c, c->cols);
    float *zeros = test_floats(c->pool, c->cols);
    for (int64_t i = 0; i < c->cols; i++) zeros[i] = -0.0f;
    zero_bias b = {.rows = rows_of(c), .cols = c->cols, .type = c->type};
    b.bias = bias.half, b.x = x.wide;
    c->m->ops->add_bias(&c->m->math, &b);
    round_wide(&x, n);
    b.type = ZERO_FP32, b.bias = zeros, b.y = y.wide, b.is_exact = is_exact;
    c->m->ops->bias_gelu(&c->m->math, &b);
    b.type = b.rows_type = c->type, b.bias = bias.half, b.x = x.half, b.y = y.half;
    c->m->ops->bias_gelu(&c->m->math, &b);
    check_rows(c, &x, n);
    check_rows(c, &y, n);
}

static void bias_gelu(call *c)
{
    check_gelu(c, false);
    check_gelu(c, true);
}

/* dbias is the sum of dx as it is stored. */
static void bias_gelu_backward(call *c)
{
    const int64_t n = rows_of(c) * c->cols;
    for (int i = 0; i < 4; i++) {
        const bool accumulate = i % 2, is_exact = i / 2;
        numbers x = rows(c, n), dy = rows(c, n), dx = c->in_place ? dy : rows(c, n);
        float *got = test_floats(c->pool, c->cols),
              *want = test_copy(c->pool, c->cols, got),
              *other = test_floats(c->pool, c->cols);
        for (int half = 0; half < 2; half++)
            c->m->ops->bias_gelu_backward(&c->m->math,
                                          &(zero_bias_grad){.rows = rows_of(c),
                                                            .cols = c->cols,
                                                            .rows_type = type_at(c, half),
                                                            .x = at(&x, half),
                                                            .dy = at(&dy, half),
                                                            .dx = at(&dx, half),
                                                            .is_exact = is_exact,
                                                            .accumulate = accumulate,
                                                            .dbias = half ? got : other});
        check_rows(c, &dx, n);
        sum_rows(c, ZERO_FP32, dx.wide, accumulate, want);
        check_floats(c, c->cols, got, want);
    }
}

/* ---- dropout ---- */

static void add_branch(call *c)
{
    const int64_t n = rows_of(c) * c->cols;
    numbers residual = rows(c, n), bias = weights(c, c->cols);
    for (int with = 0; with < 2; with++) {
        numbers in = rows(c, n), out = c->in_place ? in : rows(c, n);
        for (int half = 0; half < 2; half++)
            c->m->ops->add_branch(&c->m->math,
                                  &(zero_branch){.dropout = dropout_of(with),
                                                 .B = c->B,
                                                 .T = c->T,
                                                 .cols = c->cols,
                                                 .type = c->type,
                                                 .rows_type = type_at(c, half),
                                                 .bias = bias.half,
                                                 .residual = at(&residual, half),
                                                 .in = at(&in, half),
                                                 .out = at(&out, half)});
        check_rows(c, &out, n);
    }
}

static void dropout(call *c)
{
    const int64_t n = rows_of(c) * c->cols;
    for (int with = 0; with < 2; with++) {
        const zero_dropout d = dropout_of(with);
        numbers x = rows(c, n), y = c->in_place ? x : rows(c, n);
        for (int half = 0; half < 2; half++)
            c->m->ops->dropout(&c->m->math, &d, type_at(c, half), c->B, c->T * c->cols,
                               at(&x, half), at(&y, half));
        check_rows(c, &y, n);
    }
}

/* ---- layer norm ---- */

static void layernorm(call *c)
{
    const int64_t n = rows_of(c) * c->cols;
    numbers x = rows(c, n), y = rows(c, n);
    numbers gain = weights(c, c->cols), bias = weights(c, c->cols);
    float *mean[2], *rstd[2];
    for (int half = 0; half < 2; half++) {
        mean[half] = test_floats(c->pool, rows_of(c));
        rstd[half] = test_floats(c->pool, rows_of(c));
        c->m->ops->layernorm(&c->m->math,
                             &(zero_layernorm_args){.eps = ZERO_LAYERNORM_EPS,
                                                    .rows = rows_of(c),
                                                    .C = c->cols,
                                                    .type = c->type,
                                                    .rows_type = type_at(c, half),
                                                    .x = at(&x, half),
                                                    .gain = gain.half,
                                                    .bias = bias.half,
                                                    .y = at(&y, half),
                                                    .mean = mean[half],
                                                    .rstd = rstd[half]});
    }
    check_rows(c, &y, n);
    check_floats(c, rows_of(c), mean[1], mean[0]);
    check_floats(c, rows_of(c), rstd[1], rstd[0]);
}

static void layernorm_backward(call *c)
{
    const int64_t n = rows_of(c) * c->cols;
    for (int accumulate = 0; accumulate < 2; accumulate++) {
        numbers x = rows(c, n), dy = rows(c, n), dx = rows(c, n),
                gain = weights(c, c->cols);
        const float *mean = test_floats(c->pool, rows_of(c)),
                    *rstd = test_floats(c->pool, rows_of(c));
        float *dgain[2] = {test_floats(c->pool, c->cols)},
              *dbias[2] = {test_floats(c->pool, c->cols)};
        dgain[1] = test_copy(c->pool, c->cols, dgain[0]);
        dbias[1] = test_copy(c->pool, c->cols, dbias[0]);
        for (int half = 0; half < 2; half++)
            c->m->ops->layernorm_backward(
                &c->m->math, &(zero_layernorm_grad_args){.rows = rows_of(c),
                                                         .C = c->cols,
                                                         .type = c->type,
                                                         .rows_type = type_at(c, half),
                                                         .x = at(&x, half),
                                                         .gain = gain.half,
                                                         .mean = mean,
                                                         .rstd = rstd,
                                                         .dy = at(&dy, half),
                                                         .dx = at(&dx, half),
                                                         .accumulate = accumulate,
                                                         .dgain = dgain[half],
                                                         .dbias = dbias[half]});
        check_rows(c, &dx, n);
        check_floats(c, c->cols, dgain[1], dgain[0]);
        check_floats(c, c->cols, dbias[1], dbias[0]);
    }
}

/* ---- embeddings ---- */

#define WORDS 19

/* With shared words some tokens are of another rank. */
static void embedding(call *c)
{
    const int64_t n = rows_of(c) * c->cols;
    for (int is_shared = 0; is_shared < 2; is_shared++) {
        numbers wte = weights(c, WORDS * c->cols), wpe = weights(c, c->T * c->cols);
        numbers out = rows(c, n);
        zero_embedding e = {.B = c->B, .T = c->T, .C = c->cols, .type = c->type};
        e.tokens = test_tokens(c->pool, rows_of(c), WORDS);
        e.first = is_shared ? 5 : 0, e.words = is_shared ? 9 : 0;
        e.wte = wte.half, e.wpe = wpe.half;
        for (int half = 0; half < 2; half++) {
            e.rows_type = type_at(c, half), e.out = at(&out, half);
            c->m->ops->embedding(&c->m->math, &e);
        }
        check_rows(c, &out, n);
    }
}

static void embedding_backward(call *c)
{
    const int64_t n_wte = WORDS * c->cols, n_wpe = c->T * c->cols;
    for (int is_shared = 0; is_shared < 2; is_shared++) {
        numbers dout = rows(c, rows_of(c) * c->cols);
        float *dwte[2] = {test_floats(c->pool, n_wte)},
              *dwpe[2] = {test_floats(c->pool, n_wpe)};
        dwte[1] = test_copy(c->pool, n_wte, dwte[0]);
        dwpe[1] = test_copy(c->pool, n_wpe, dwpe[0]);
        zero_embedding_grad e = {.B = c->B, .T = c->T, .C = c->cols};
        e.tokens = test_tokens(c->pool, rows_of(c), WORDS);
        e.first = is_shared ? 5 : 0, e.words = is_shared ? 9 : 0;
        for (int half = 0; half < 2; half++) {
            e.rows_type = type_at(c, half), e.dout = at(&dout, half);
            e.dwte = dwte[half], e.dwpe = dwpe[half];
            c->m->ops->embedding_backward(&c->m->math, &e);
        }
        check_floats(c, n_wte, dwte[1], dwte[0]);
        check_floats(c, n_wpe, dwpe[1], dwpe[0]);
    }
}

/* ---- attention over what was kept ---- */

/* T positions are kept, then the last is asked for. Workspace in the cache is not compared. */
static void remember_and_recall(call *c)
{
    const int64_t room = c->T + 2, H = heads_of(c), C = c->cols;
    int64_t past[16];
    numbers qkv = rows(c, rows_of(c) * 3 * C), last = rows(c, c->B * 3 * C),
            out = rows(c, c->B * C);
    for (int64_t b = 0; b < c->B; b++) past[b] = c->T - 1;
    float *cache[2];
    for (int half = 0; half < 2; half++) {
        zero_cached a = {.B = c->B, .T = c->T, .H = H, .K = H, .D = C / H, .room = room};
        const int64_t len = zero_cache_floats(type_at(c, half), room, H, H, C / H);
        cache[half] = calloc((size_t)(c->B * len), sizeof **cache);
        a.rows_type = type_at(c, half), a.cache = cache[half];
        test_cached_rows(&a, at(&qkv, half));
        c->m->ops->remember(&c->m->math, &a);
        a.T = 1, a.past = past, a.out = at(&out, half);
        test_cached_rows(&a, at(&last, half));
        c->m->ops->recall(&c->m->math, &a);
    }
    for (int64_t b = 0; b < c->B; b++) {
        float *kept = test_floats(c->pool, 2 * room * C);
        zero_convert(c->type, ZERO_FP32, 2 * room * C,
                     cache[1] + b * zero_cache_floats(c->type, room, H, H, C / H), kept);
        check_floats(c, 2 * room * C, kept,
                     cache[0] + b * zero_cache_floats(ZERO_FP32, room, H, H, C / H));
    }
    for (int half = 0; half < 2; half++) free(cache[half]);
    check_rows(c, &out, c->B * C);
}

/* ---- what LLaMA's blocks add ---- */

static void swiglu(call *c)
{
    const int64_t n = rows_of(c) * c->cols;
    numbers x = rows(c, 2 * n), y = rows(c, n), d = rows(c, 2 * n);
    for (int half = 0; half < 2; half++) {
        const zero_swiglu s = {.rows = rows_of(c),
                               .F = c->cols,
                               .rows_type = type_at(c, half),
                               .x = at(&x, half),
                               .y = at(&y, half),
                               .d = at(&d, half)};
        c->m->ops->swiglu(&c->m->math, &s);
        c->m->ops->swiglu_backward(&c->m->math, &s);
    }
    check_rows(c, &y, n);
    check_rows(c, &d, 2 * n);
}

/* Rows of `cols` channels of queries, then as many of keys. */
static void turn(call *c)
{
    const int64_t H = heads_of(c), D = c->cols / H, n = rows_of(c) * 2 * c->cols;
    for (int with = 0; with < 2; with++) {
        numbers x = rows(c, n), y = c->in_place && !with ? x : rows(c, n), d = rows(c, n);
        numbers gain = weights(c, 2 * D);
        float *rstd[2], *sums[2] = {test_floats(c->pool, 2 * H * D)};
        sums[1] = test_copy(c->pool, 2 * H * D, sums[0]);
        for (int half = 0; half < 2; half++) {
            const zero_type type = type_at(c, half);
            zero_turn t = {.B = c->B, .T = c->T, .H = H, .K = H, .D = D, .R = D / 2 * 2};
            for (int64_t i = 0; i < zero_min(t.R / 2, ZERO_TURN_PAIRS); i++)
                t.frequency[i] = 1.0f / (float)(i + 1);
            if (t.R > 2 * ZERO_TURN_PAIRS) t.R = 2 * ZERO_TURN_PAIRS;
            t.type = c->type, t.rows_type = type, t.eps = 1e-5f;
            t.q = zero_heads_of(type, at(&x, half), 0, 2 * c->cols, D);
            t.k = zero_heads_of(type, at(&x, half), c->cols, 2 * c->cols, D);
            t.to_q = zero_heads_of(type, at(&y, half), 0, 2 * c->cols, D);
            t.to_k = zero_heads_of(type, at(&y, half), c->cols, 2 * c->cols, D);
            t.dq = zero_heads_of(type, at(&d, half), 0, 2 * c->cols, D);
            t.dk = zero_heads_of(type, at(&d, half), c->cols, 2 * c->cols, D);
            t.gain_q = with ? gain.half : NULL, t.gain_k = with ? gain.half + D : NULL;
            t.rstd = rstd[half] = test_floats(c->pool, rows_of(c) * 2 * H);
            t.slices = (int)H, t.accumulate = c->in_place, t.sums = sums[half];
            c->m->ops->turn(&c->m->math, &t);
            c->m->ops->turn_backward(&c->m->math, &t);
        }
        check_rows(c, &y, n);
        check_rows(c, &d, n);
        if (with) check_floats(c, rows_of(c) * 2 * H, rstd[1], rstd[0]);
        if (with) check_floats(c, 2 * H * D, sums[1], sums[0]);
    }
}

/* Without a mean and biases; a branch without a bias, words without positions. */
static void less(call *c)
{
    const int64_t n = rows_of(c) * c->cols, C = c->cols;
    numbers x = rows(c, n), y = rows(c, n), dx = rows(c, n), out = rows(c, n);
    numbers gain = weights(c, C), wte = weights(c, 3 * C), words = rows(c, n);
    int32_t *tokens = test_tokens(c->pool, rows_of(c), 3);
    float *rstd[2], *dgain[2] = {test_floats(c->pool, C)}, *dwte[2];
    dgain[1] = test_copy(c->pool, C, dgain[0]);
    dwte[0] = test_floats(c->pool, 3 * C), dwte[1] = test_copy(c->pool, 3 * C, dwte[0]);
    for (int half = 0; half < 2; half++) {
        const zero_backend *ops = c->m->ops;
        const zero_type type = type_at(c, half);
        rstd[half] = test_floats(c->pool, rows_of(c));
        zero_layernorm_args norm = {rows_of(c),   C,         c->type, type,         1e-6f,
                                    at(&x, half), gain.half, NULL,    at(&y, half), NULL,
                                    NULL};
        norm.rstd = rstd[half];
        ops->layernorm(&c->m->math, &norm);
        zero_layernorm_grad_args grad = {.rows = rows_of(c), .C = C, .type = c->type};
        grad.rows_type = type, grad.x = at(&x, half), grad.gain = gain.half;
        grad.rstd = rstd[half], grad.dy = at(&out, half), grad.dx = at(&dx, half);
        grad.accumulate = c->in_place, grad.dgain = dgain[half];
        ops->layernorm_backward(&c->m->math, &grad);
        zero_branch branch = {.dropout = dropout_of(c->in_place), .B = c->B, .T = c->T};
        branch.cols = C, branch.type = c->type, branch.rows_type = type;
        branch.residual = at(&x, half), branch.in = branch.out = at(&out, half);
        ops->add_branch(&c->m->math, &branch);
        zero_embedding e = {
            .B = c->B, .T = c->T, .C = C, .tokens = tokens, .type = c->type};
        e.rows_type = type, e.wte = wte.half, e.out = at(&words, half);
        ops->embedding(&c->m->math, &e);
        zero_embedding_grad de = {.B = c->B, .T = c->T, .C = C, .tokens = tokens};
        de.rows_type = type, de.dout = at(&x, half), de.dwte = dwte[half];
        ops->embedding_backward(&c->m->math, &de);
    }
    check_rows(c, &y, n);
    check_rows(c, &dx, n);
    check_rows(c, &out, n);
    check_rows(c, &words, n);
    check_floats(c, rows_of(c), rstd[1], rstd[0]);
    check_floats(c, C, dgain[1], dgain[0]);
    check_floats(c, 3 * C, dwte[1], dwte[0]);
}

/* ---- all of them, everywhere ---- */

static operation *const pointwise[] = {
    add_bias,
    bias_backward,
    bias_gelu,
    bias_gelu_backward,
    add_branch,
    dropout,
    layernorm,
    layernorm_backward,
    embedding,
    embedding_backward,
    remember_and_recall,
    swiglu,
    turn,
    less,
};

static void check_all(test_pool *pool, const machine *m, int n)
{
    for (size_t i = 0; i < COUNT(pointwise); i++) check_operation(pool, pointwise[i], m, n);
}

TEST(results_are_rounded_once_by_every_instruction_set)
{
    machine m[MACHINES];
    check_all(*state, m, make_machines(*state, m));
}

/* Each thread has a scratch. */
TEST(results_are_rounded_once_by_several_threads)
{
    machine m[2] = {{&zero_backend_naive, {0}}, {&zero_backend_cpu, {0}}};
    const int64_t bytes = 3 * zero_math_scratch() * (int64_t)sizeof(float);
    m[1].math.scratch = test_bytes(*state, bytes);
    memset(m[1].math.scratch, 0xff, (size_t)bytes);
    assert_ok(zero_backend_cpu.open(&m[1].math));
    for (int threads = 1; threads <= 3; threads++) {
        m[1].math.threads = threads;
        check_all(*state, m, 2);
    }
}
