/* Backward against finite differences of forward, layer by layer, on the oracle.
 *
 * The scalar is L = sum(w * y) with random w, summed in double. Along a random direction d
 * the derivative of L is the gradient times d; forward gives it by a central difference of
 * fourth order, (8 (L(h) - L(-h)) - (L(2h) - L(-2h))) / 12h. */
#include "support/math_test.h"

#include "math/backends.h"

#define STEP 0.02f

/* Single-precision outputs limit the difference: 6e-8 of their size divided by h, 1e-5; its error
 * of order h^4 is smaller. A wrong factor or a lost term is 1e-2. */
#define TOLERANCE 2e-4

#define MAX_INPUTS 5

typedef struct layer layer;
struct layer {
    void (*forward)(layer *l);  /* from in to out */
    void (*backward)(layer *l); /* from in, out and dout to the gradients */
    int64_t B, T, C, V;         /* V: a second width */
    zero_attention attention;
    zero_turn turn;
    int32_t *tokens;
    int n_inputs;
    int64_t len[MAX_INPUTS], out_len;
    float *in[MAX_INPUTS], *grad[MAX_INPUTS], *out, *dout;
    float *kept[3]; /* written forward, read backward; and workspace */
};

static const zero_backend *const ops = &zero_backend_naive;
static const zero_math math = {0};

static void add_input(test_pool *pool, layer *l, int64_t len)
{
    int i = l->n_inputs++;
    l->len[i] = len;
    l->in[i] = test_floats(pool, len);
    l->grad[i] = test_floats(pool, len);
    memset(l->grad[i], 0, (size_t)len * sizeof *l->grad[i]);
}

static void set_output(test_pool *pool, layer *l, int64_t len)
{
    l->out_len = len;
    l->out = test_floats(pool, len);
    l->dout = test_floats(pool, len);
}

/* L with input i moved by h along `direction` from `at`. */
static double moved(layer *l, int i, const float *at, const float *direction, float h)
{
    for (int64_t k = 0; k < l->len[i]; k++) l->in[i][k] = at[k] + h * direction[k];
    l->forward(l);
    double sum = 0.0;
    for (int64_t k = 0; k < l->out_len; k++) sum += (double)l->dout[k] * (double)l->out[k];
    return sum;
}

static void check_input(test_pool *pool, layer *l, int i)
{
    const int64_t n = l->len[i];
    const float *at = test_copy(pool, n, l->in[i]), *grad = l->grad[i];
    for (int trial = 0; trial < 3; trial++) {
        const float *d = test_floats(pool, n);
        double along = 0.0, size = 0.0;
        for (int64_t k = 0; k < n; k++) {
            along += (double)grad[k] * (double)d[k];
            size += (double)grad[k] * (double)grad[k];
        }
        double one = moved(l, i, at, d, STEP) - moved(l, i, at, d, -STEP);
        double two = moved(l, i, at, d, 2 * STEP) - moved(l, i, at, d, -2 * STEP);
        double found = (8.0 * one - two) / (12.0 * (double)STEP);
        if (!(fabs(along - found) <= TOLERANCE * (sqrt(size) + 1.0)))
            fail_msg("input %d: backward %g, difference %g, size %g", i, along, found,
                     sqrt(size));
    }
    memcpy(l->in[i], at, (size_t)n * sizeof *at);
}

static void check(test_pool *pool, layer *l)
{
    l->forward(l);
    l->backward(l);
    for (int i = 0; i < l->n_inputs; i++) check_input(pool, l, i);
}

static void product(const float *a, bool ta, const float *b, bool tb, const int64_t mnk[3],
                    float *c)
{
    zero_gemm g = {.transpose_a = ta, .transpose_b = tb, .a = a, .b = b, .c = c};
    g.m = mnk[0], g.n = mnk[1], g.k = mnk[2];
    ops->gemm(&math, &g);
}

/* y[rows,n] = x[rows,k] w[k,n] + bias */
static void linear(int64_t rows, int64_t k, int64_t n, const float *x, const float *w,
                   const float *bias, float *y)
{
    product(x, false, w, false, (const int64_t[]){rows, n, k}, y);
    ops->add_bias(
        &math,
        &(zero_bias){.rows = rows, .cols = n, .type = ZERO_FP32, .bias = bias, .x = y});
}

static void linear_backward(int64_t rows, int64_t k, int64_t n, const float *x,
                            const float *w, const float *dy, float *dx, float *dw,
                            float *dbias)
{
    product(dy, false, w, true, (const int64_t[]){rows, k, n}, dx);
    product(x, true, dy, false, (const int64_t[]){k, n, rows}, dw);
    ops->bias_backward(
        &math, &(zero_bias_grad){.rows = rows, .cols = n, .dy = dy, .dbias = dbias});
}

static void embedding_forward(layer *l)
{
    ops->embedding(&math, &(zero_embedding){.B = l->B,
                                            .T = l->T,
                                            .C = l->C,
                                            .tokens = l->tokens,
                                            .wte = l->in[0],
                                            .wpe = l->in[1],
                                            .out = l->out});
}

static void embedding_backward(layer *l)
{
    ops->embedding_backward(&math, &(zero_embedding_grad){.B = l->B,
                                                          .T = l->T,
                                                          .C = l->C,
                                                          .tokens = l->tokens,
                                                          .dout = l->dout,
                                                          .dwte = l->grad[0],
                                                          .dwpe = l->grad[1]});
}

TEST(embedding_has_the_gradient_of_its_forward)
{
    layer l = {embedding_forward, embedding_backward, .B = 3, .T = 7, .C = 5, .V = 11};
    l.tokens = test_tokens(*state, l.B * l.T, l.V);
    add_input(*state, &l, l.V * l.C);
    add_input(*state, &l, l.T * l.C);
    set_output(*state, &l, l.B * l.T * l.C);
    check(*state, &l);
}

static void linear_layer_forward(layer *l)
{
    linear(l->B * l->T, l->C, l->V, l->in[0], l->in[1], l->in[2], l->out);
}

static void linear_layer_backward(layer *l)
{
    linear_backward(l->B * l->T, l->C, l->V, l->in[0], l->in[1], l->dout, l->grad[0],
                    l->grad[1], l->grad[2]);
}

TEST(linear_has_the_gradient_of_its_forward)
{
    layer l = {linear_layer_forward, linear_layer_backward, .B = 2, .T = 5, .C = 7, .V = 9};
    add_input(*state, &l, l.B * l.T * l.C);
    add_input(*state, &l, l.C * l.V);
    add_input(*state, &l, l.V);
    set_output(*state, &l, l.B * l.T * l.V);
    check(*state, &l);
}

static void layernorm_forward(layer *l)
{
    ops->layernorm(&math, &(zero_layernorm_args){.eps = ZERO_LAYERNORM_EPS,
                                                 .rows = l->B * l->T,
                                                 .C = l->C,
                                                 .x = l->in[0],
                                                 .gain = l->in[1],
                                                 .bias = l->in[2],
                                                 .y = l->out,
                                                 .mean = l->kept[0],
                                                 .rstd = l->kept[1]});
}

static void layernorm_backward(layer *l)
{
    ops->layernorm_backward(&math, &(zero_layernorm_grad_args){.rows = l->B * l->T,
                                                               .C = l->C,
                                                               .x = l->in[0],
                                                               .gain = l->in[1],
                                                               .mean = l->kept[0],
                                                               .rstd = l->kept[1],
                                                               .dy = l->dout,
                                                               .dx = l->grad[0],
                                                               .dgain = l->grad[1],
                                                               .dbias = l->grad[2]});
}

TEST(layernorm_has_the_gradient_of_its_forward)
{
    layer l = {layernorm_forward, layernorm_backward, .B = 2, .T = 5, .C = 24};
    add_input(*state, &l, l.B * l.T * l.C);
    add_input(*state, &l, l.C);
    add_input(*state, &l, l.C);
    set_output(*state, &l, l.B * l.T * l.C);
    for (int i = 0; i < 2; i++) l.kept[i] = test_floats(*state, l.B * l.T);
    check(*state, &l);
}

/* kept[0]: x + bias */
static void bias_gelu_forward(layer *l)
{
    memcpy(l->kept[0], l->in[0], (size_t)l->out_len * sizeof(float));
    ops->bias_gelu(&math, &(zero_bias){.rows = l->T,
                                       .cols = l->C,
                                       .type = ZERO_FP32,
                                       .bias = l->in[1],
                                       .x = l->kept[0],
                                       .y = l->out});
}

static void bias_gelu_backward(layer *l)
{
    ops->bias_gelu_backward(&math, &(zero_bias_grad){.rows = l->T,
                                                     .cols = l->C,
                                                     .x = l->kept[0],
                                                     .dy = l->dout,
                                                     .dx = l->grad[0],
                                                     .dbias = l->grad[1]});
}

TEST(bias_and_gelu_have_the_gradient_of_their_forward)
{
    layer l = {bias_gelu_forward, bias_gelu_backward, .T = 7, .C = 33};
    add_input(*state, &l, l.T * l.C);
    add_input(*state, &l, l.C);
    set_output(*state, &l, l.T * l.C);
    l.kept[0] = test_floats(*state, l.T * l.C);
    check(*state, &l);
}

static void attention_forward(layer *l)
{
    ops->attention(&math, &l->attention);
}

static void attention_backward(layer *l)
{
    ops->attention_backward(&math, &l->attention);
}

static void check_attention(test_pool *pool, float p, int64_t H, int64_t K)
{
    zero_rng stream = {.seed = 9, .purpose = ZERO_RNG_TEST};
    zero_attention s = {.B = 2, .T = 9, .H = H, .K = K, .D = 4, .dropout = {stream, p}};
    layer l = {attention_forward, attention_backward, .B = s.B};
    add_input(pool, &l, s.B * s.T * (s.H + 2 * s.K) * s.D);
    set_output(pool, &l, s.B * s.T * s.H * s.D);
    s.out = l.out, s.dout = l.dout;
    zero_attention_rows(&s, l.in[0], l.grad[0]);
    s.lse = test_floats(pool, s.B * s.H * s.T);
    s.work = test_floats(pool, zero_attention_workspace(&s));
    l.attention = s;
    check(pool, &l);
}

TEST(attention_has_the_gradient_of_its_forward)
{
    check_attention(*state, 0.0f, 3, 3);
    for (int64_t K = 1; K <= 4; K++)
        if (4 % K == 0) check_attention(*state, 0.0f, 4, K);
}

TEST(attention_with_dropout_has_the_gradient_of_its_forward)
{
    check_attention(*state, 0.4f, 3, 3);
    check_attention(*state, 0.4f, 4, 2);
}

/* in: x, w1, b1, w2, b2; kept: before and after gelu, gradient of either */
static void mlp_forward(layer *l)
{
    const int64_t rows = l->B * l->T, mnk[] = {rows, l->V, l->C};
    product(l->in[0], false, l->in[1], false, mnk, l->kept[0]);
    ops->bias_gelu(&math, &(zero_bias){.rows = rows,
                                       .cols = l->V,
                                       .type = ZERO_FP32,
                                       .bias = l->in[2],
                                       .x = l->kept[0],
                                       .y = l->kept[1]});
    linear(rows, l->V, l->C, l->kept[1], l->in[3], l->in[4], l->out);
}

static void mlp_backward(layer *l)
{
    const int64_t rows = l->B * l->T;
    float *d = l->kept[2];
    linear_backward(rows, l->V, l->C, l->kept[1], l->in[3], l->dout, d, l->grad[3],
                    l->grad[4]);
    ops->bias_gelu_backward(&math, &(zero_bias_grad){.rows = rows,
                                                     .cols = l->V,
                                                     .x = l->kept[0],
                                                     .dy = d,
                                                     .dx = d,
                                                     .dbias = l->grad[2]});
    product(d, false, l->in[1], true, (const int64_t[]){rows, l->C, l->V}, l->grad[0]);
    product(l->in[0], true, d, false, (const int64_t[]){l->C, l->V, rows}, l->grad[1]);
}

TEST(mlp_has_the_gradient_of_its_forward)
{
    layer l = {mlp_forward, mlp_backward, .B = 2, .T = 3, .C = 6, .V = 24};
    add_input(*state, &l, l.B * l.T * l.C);
    add_input(*state, &l, l.C * l.V);
    add_input(*state, &l, l.V);
    add_input(*state, &l, l.V * l.C);
    add_input(*state, &l, l.C);
    set_output(*state, &l, l.B * l.T * l.C);
    for (int i = 0; i < 3; i++) l.kept[i] = test_floats(*state, l.B * l.T * l.V);
    check(*state, &l);
}

/* in: rows of queries and keys, and gains of both */
static void turn_forward(layer *l)
{
    const zero_turn *t = &l->turn;
    zero_turn call = *t;
    const int64_t row = (t->H + t->K) * t->D;
    call.to_q = zero_heads_of(ZERO_FP32, l->out, 0, row, t->D);
    call.to_k = zero_heads_of(ZERO_FP32, l->out, t->H * t->D, row, t->D);
    ops->turn(&math, &call);
}

static void turn_backward(layer *l)
{
    const zero_turn *t = &l->turn;
    zero_turn call = *t;
    const int64_t row = (t->H + t->K) * t->D;
    memcpy(l->grad[0], l->dout, (size_t)l->len[0] * sizeof *l->dout);
    call.dq = zero_heads_of(ZERO_FP32, l->grad[0], 0, row, t->D);
    call.dk = zero_heads_of(ZERO_FP32, l->grad[0], t->H * t->D, row, t->D);
    call.slices = 1, call.sums = l->grad[1];
    ops->turn_backward(&math, &call);
}

TEST(turning_has_the_gradient_of_its_forward)
{
    for (int with = 0; with < 2; with++) {
        zero_turn t = {.B = 2, .T = 5, .H = 4, .K = 2, .D = 6, .R = 4, .eps = 1e-3f};
        layer l = {turn_forward, turn_backward, .B = t.B};
        const int64_t row = (t.H + t.K) * t.D;
        t.frequency[0] = 1.0f, t.frequency[1] = 0.1f;
        add_input(*state, &l, t.B * t.T * row);
        add_input(*state, &l, 2 * t.D);
        set_output(*state, &l, l.len[0]);
        t.q = zero_heads_of(ZERO_FP32, l.in[0], 0, row, t.D);
        t.k = zero_heads_of(ZERO_FP32, l.in[0], t.H * t.D, row, t.D);
        t.rstd = test_floats(*state, t.B * t.T * (t.H + t.K));
        if (with) t.gain_q = l.in[1], t.gain_k = l.in[1] + t.D;
        l.turn = t;
        check(*state, &l);
    }
}

static void swiglu_forward(layer *l)
{
    ops->swiglu(&math, &(zero_swiglu){.rows = l->B, .F = l->C, .x = l->in[0], .y = l->out});
}

static void swiglu_backward(layer *l)
{
    for (int64_t r = 0; r < l->B; r++)
        memcpy(l->grad[0] + 2 * r * l->C, l->dout + r * l->C,
               (size_t)l->C * sizeof *l->dout);
    ops->swiglu_backward(
        &math, &(zero_swiglu){.rows = l->B, .F = l->C, .x = l->in[0], .d = l->grad[0]});
}

TEST(swiglu_has_the_gradient_of_its_forward)
{
    layer l = {swiglu_forward, swiglu_backward, .B = 7, .C = 9};
    add_input(*state, &l, l.B * 2 * l.C);
    set_output(*state, &l, l.B * l.C);
    check(*state, &l);
}

/* in: x and gain */
static void rms_norm_forward(layer *l)
{
    ops->layernorm(&math, &(zero_layernorm_args){.rows = l->B,
                                                 .C = l->C,
                                                 .eps = 1e-2f,
                                                 .x = l->in[0],
                                                 .gain = l->in[1],
                                                 .y = l->out,
                                                 .rstd = l->kept[0]});
}

static void rms_norm_backward(layer *l)
{
    ops->layernorm_backward(&math, &(zero_layernorm_grad_args){.rows = l->B,
                                                               .C = l->C,
                                                               .x = l->in[0],
                                                               .gain = l->in[1],
                                                               .rstd = l->kept[0],
                                                               .dy = l->dout,
                                                               .dx = l->grad[0],
                                                               .dgain = l->grad[1]});
}

TEST(rms_norm_has_the_gradient_of_its_forward)
{
    layer l = {rms_norm_forward, rms_norm_backward, .B = 5, .C = 12};
    add_input(*state, &l, l.B * l.C);
    add_input(*state, &l, l.C);
    set_output(*state, &l, l.B * l.C);
    l.kept[0] = test_floats(*state, l.B);
    check(*state, &l);
}

/* The sum of the rows' losses: every dout is the scale that the gradient was made with. */
static void cross_entropy_forward(layer *l)
{
    ops->cross_entropy(&math, &(zero_cross_entropy){.rows = l->B,
                                                    .V = l->V,
                                                    .targets = l->tokens,
                                                    .dscale = 0.0f,
                                                    .logits = l->in[0],
                                                    .loss = l->out});
}

static void cross_entropy_backward(layer *l)
{
    memcpy(l->grad[0], l->in[0], (size_t)l->len[0] * sizeof *l->grad[0]);
    ops->cross_entropy(&math, &(zero_cross_entropy){.rows = l->B,
                                                    .V = l->V,
                                                    .targets = l->tokens,
                                                    .dscale = l->dout[0],
                                                    .logits = l->grad[0],
                                                    .loss = l->out});
}

TEST(cross_entropy_has_the_gradient_of_its_forward)
{
    layer l = {cross_entropy_forward, cross_entropy_backward, .B = 6, .V = 19};
    l.tokens = test_tokens(*state, l.B, l.V);
    add_input(*state, &l, l.B * l.V);
    set_output(*state, &l, l.B);
    for (int64_t r = 0; r < l.B; r++) l.dout[r] = 0.75f;
    check(*state, &l);
}
